"""Compile kernels once, as whole as they are called, and cache them in the first writable folder on disk.

Numba only notices changes in a kernel's own file.  Here the stamp of a kernel covers every kernel module that it
imports, directly or indirectly, so an edit recompiles exactly the kernels that depend on it.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
import numba
from numba.core import caching, compiler, compiler_machinery, typed_passes, types
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher

FOLDER = Path(__file__).parent
IMPORT = re.compile(r"^(?:from placet\.kernels\.|import placet\.kernels\.)([\w.]+) (?:import|as) ", re.MULTILINE)


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` that releases the GIL and caches on disk if a folder is writable."""
    return partial(_compile, options)


def _compile(options: dict[str, Any], kernel: Callable[..., Any]) -> Any:
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(kernel)
    if not numba.config.DISABLE_JIT:
        dispatcher.__class__ = _Kernel
        dispatcher._cache = _KernelCache(kernel, _FileCache)
        dispatcher._compiler._customize_flags = _Flags
        dispatcher._options = options
    return dispatcher


class _Kernel(CPUDispatcher):
    """A kernel: called from Python it is machine code of its own; what other kernels call is its part.

    Numba makes machine code of everything that a kernel calls, and then again within the kernel, and again within
    those that call it.  A part is only lowered; it is optimized and translated within the kernels that Python calls.
    """

    @cached_property
    def _part(self) -> Any:
        options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
        part = numba.njit(**options, **self._options)(self.py_func)
        part._cache = _KernelCache(self.py_func, _PartFileCache)
        part._compiler._customize_flags = _Flags
        return part

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self._part)

    def add_overload(self, cres: Any) -> None:
        for env in cres._find_referenced_environments():  # of its parts, which no other machine code holds
            cres.library.codegen.set_env(env.env_name, env)
        super().add_overload(cres)


_DEFAULTS = {name: option.default for name, option in compiler.Flags.options.items()}
_ALIKE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options that make no difference to what a kernel calls, such as ``np.empty``: it is compiled once for all."""


class _Flags(compiler.Flags):
    """Options of a compilation.  Numba compares them at every operation, one by one: a tenth of all the time."""

    __slots__ = ()

    def values(self) -> dict[str, Any]:
        return {**_DEFAULTS, **self._values, **_ALIKE}

    def __hash__(self) -> int:
        return _HASH


_HASH = hash(compiler.Flags())  # that of the names of the options, which is the same for all


class _NoEngine:
    """Where a part would be known as machine code."""

    def set_env(self, name: str, env: Any) -> None:
        pass


class _PartLibrary(JITCodeLibrary):
    """Code that is linked into that of kernels, and never run by itself."""

    codegen = _NoEngine()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def serialize_using_object_code(self) -> Any:
        return self.serialize_using_bitcode()


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=True)
class _IntoParts(compiler_machinery.AnalysisPass):
    """Lower into a `_PartLibrary`."""

    _name = "placet_into_parts"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class _PartCompiler(compiler.CompilerBase):
    def define_pipelines(self) -> list[Any]:
        steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state, "nopython")
        steps.add_pass_after(_IntoParts, typed_passes.IRLegalization)
        steps.finalize()
        return [steps]


@cache
def source_stamp(module: str) -> str:
    """Hash of the source of a kernel module and of all kernel modules that it imports, at any depth."""
    seen: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = FOLDER / f"{name.replace('.', '/')}.py"
        if name in seen or not file.exists():
            continue
        seen[name] = file.read_bytes()
        waiting += IMPORT.findall(seen[name].decode())
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name] + b"\0")
    return digest.hexdigest()


@cache
def cache_folder() -> Path | None:
    """The first writable of these folders: NUMBA_CACHE_DIR, next to the kernels, the user's cache, a private temporary
    folder.  None if none is writable: kernels are then compiled in every process."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places: list[Callable[[], Path]] = [
        lambda: FOLDER / "__pycache__",
        lambda: Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "placet",
        lambda: Path(tempfile.gettempdir()) / f"placet-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}",
    ]
    if chosen:
        places.insert(0, lambda: Path(chosen) / "placet")
    for place in places:
        try:
            folder = place()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _ours(folder):
                continue
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except (OSError, RuntimeError):  # not writable, or no home folder at all: try the next one
            continue
    return None


def _ours(folder: Path) -> bool:
    """Whether no other user can write to the folder, as compiled code is loaded from it."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & 0o022


def _module_name(file: Path) -> str:
    """The dotted name of a kernel module below ``FOLDER``; its own name if it lies elsewhere."""
    inside = file.is_relative_to(FOLDER)
    return ".".join(file.relative_to(FOLDER).with_suffix("").parts) if inside else file.stem


class _Locator(caching._CacheLocator):
    """Tells Numba where to find a compiled kernel and whether it is out of date."""

    def __init__(self, module: str, line: int, folder: Path) -> None:
        self.module, self.line, self.folder = module, line, folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator | None":
        folder = cache_folder()
        if folder is None:
            return None
        return cls(_module_name(Path(py_file)), py_func.__code__.co_firstlineno, folder)

    def get_cache_path(self) -> str:
        return str(self.folder / f"{self.module}-{self.get_source_stamp()[:12]}")

    def ensure_cache_path(self) -> None:
        own = Path(self.get_cache_path())
        if not own.exists() and self.folder.parent == FOLDER:  # next to the kernels, old versions are useless
            for old in self.folder.glob(f"{self.module}-*"):
                shutil.rmtree(old, ignore_errors=True)
        own.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return source_stamp(self.module)

    def get_disambiguator(self) -> str:
        return str(self.line)


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _FileCache(caching.FunctionCache):
    _impl_class = _Implementation

    def __init__(self, kernel: Callable[..., Any]) -> None:
        """Name files of compiled code by the process too: two that compile one kernel at once do not share a number."""
        super().__init__(kernel)
        files = self._cache_file
        files._data_name_pattern = files._data_name_pattern.replace("{number", f"{os.getpid()}-{{number")


class _PartLocator(_Locator):
    def get_disambiguator(self) -> str:
        return f"{self.line}-part"


class _PartImplementation(_Implementation):
    _locator_classes = (_PartLocator,)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """As Numba does, but into a `_PartLibrary`."""
        (name, _, code), fndesc, env, signature, _, _, annotation, _, envs = payload
        library = _PartLibrary(target_context.codegen(), name)
        library._final_module = llvmlite.binding.parse_bitcode(code)
        library._finalize_final_module()
        return compiler.compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            library=library,
            environment=env,
            entry_point=target_context.get_executable(library, fndesc, env),
            fndesc=fndesc,
            type_annotation=annotation,
            signature=signature,
            objectmode=False,
            lifted=(),
            referenced_envs=envs,
        )


class _PartFileCache(_FileCache):
    _impl_class = _PartImplementation


class _KernelCache(caching.NullCache):
    """The cache of one kernel, opened on its first call, since most kernels of a module are never called."""

    def __init__(self, kernel: Callable[..., Any], kind: Any) -> None:
        self.kernel, self.kind = kernel, kind

    @cached_property
    def files(self) -> caching._Cache:
        """The cache on disk, or a null cache if no folder is writable."""
        return caching.NullCache() if cache_folder() is None else self.kind(self.kernel)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return self.files.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        self.files.save_overload(sig, data)
