"""Compile kernels once and cache them in the first writable folder on disk.

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

import numba
from numba.core import caching

FOLDER = Path(__file__).parent
IMPORT = re.compile(r"^(?:from placet\.kernels\.|import placet\.kernels\.)([\w.]+) (?:import|as) ", re.MULTILINE)


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` that releases the GIL and caches on disk if a folder is writable."""
    return partial(_compile, options)


def _compile(options: dict[str, Any], kernel: Callable[..., Any]) -> Any:
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(kernel)
    if not numba.config.DISABLE_JIT:
        dispatcher._cache = _KernelCache(kernel)
    return dispatcher


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


class _KernelCache(caching.NullCache):
    """The cache of one kernel, opened on its first call, since most kernels of a module are never called."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel

    @cached_property
    def files(self) -> caching._Cache:
        """The cache on disk, or a null cache if no folder is writable."""
        return caching.NullCache() if cache_folder() is None else _FileCache(self.kernel)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return self.files.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        self.files.save_overload(sig, data)
