"""Numba kernels: arrays in, numbers out; no checks, no strings, no objects.

``from placet.kernels import pairs`` gives a stand-in that imports the module, and with it Numba, on first attribute
access, so code that runs no kernel starts without Numba.  Kernel modules themselves ``import
placet.kernels.losses.pairs``. The modules are never modified after import.
"""

import builtins
import gc
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any


class _Later(ModuleType):
    """A kernel module that is imported on first attribute access; its namespace is then copied into this one.

    Nothing is copied while the import is still running in any thread, so no thread sees a half-initialized module.
    """

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        _listen()
        if not getattr(module.__spec__, "_initializing", False):
            vars(self).update(vars(module))
            self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(module, name)


_tell: list[Callable[[], None]] = []


def tell_when_compiling(tell: Callable[[], None]) -> None:
    """Call ``tell`` once, just before the first kernel is compiled; never if all kernels are cached on disk."""
    if tell not in _tell:
        _tell.append(tell)
    if "numba" in sys.modules:
        _listen()


def _listen() -> None:
    """Listen for Numba compilations if a callback is registered.

    Compilation creates hundreds of thousands of objects and keeps most of them, so garbage collection, a tenth of the
    compile time, is disabled meanwhile.
    """
    if not _tell:
        return
    from numba.core import event

    class Told(event.Listener):
        under_way = 0
        collects = True

        def on_start(self, event: Any) -> None:
            while _tell:
                _tell.pop()()
            if self.under_way == 0:
                self.collects = gc.isenabled()
                gc.disable()
            self.under_way += 1

        def on_end(self, event: Any) -> None:
            self.under_way -= 1
            if self.under_way == 0 and self.collects:
                gc.enable()

    if not _listening:
        _listening.append(Told())
        event.register("numba:compile", _listening[0])


_listening: list[Any] = []


def modules_on_use(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a folder of kernels: stand-ins for its modules."""

    def stand_in(name: str) -> Any:
        full = f"{package}.{name}"
        if name.startswith("__") or find_spec(full) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return _Later(full)

    return stand_in


__getattr__ = modules_on_use(__name__)


FEW_ROWS = 12
"""Number of rows up to which `for_rows` takes plain Python: about 10 microseconds a row, and no import of Numba."""


def for_rows(module: Any, rows: int) -> Any:
    """The kernels of a module for this many rows: as plain Python for few, else compiled.

    The number of rows alone decides, as plain Python has no fused multiply-add, so that the last digits may differ.
    """
    return interpreted(module.__name__.removeprefix(f"{__name__}.")) if rows <= FEW_ROWS else module


@cache
def interpreted(name: str) -> SimpleNamespace:
    """Load a kernel module, and those that it imports, as plain Python functions.

    For inputs so small that plain Python finishes before Numba is imported (0.4 CPU seconds, 0.2 more for the first
    kernel, and seconds for each kernel that must be compiled).  The source is the same, so there is only one version to
    maintain.
    """
    full = f"{__name__}.{name}"
    spec = find_spec(full)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"there is no module of kernels {name!r}")

    def import_plain(module: str, *rest: Any) -> Any:
        if module in _PLAIN:
            return _PLAIN[module]
        if module.startswith(f"{__name__}."):
            return interpreted(module.removeprefix(f"{__name__}."))
        return builtins.__import__(module, *rest)

    space: dict[str, Any] = {"__name__": full, "__builtins__": {**vars(builtins), "__import__": import_plain}}
    exec(spec.loader.get_code(full), space)  # type: ignore[attr-defined]
    return SimpleNamespace(**space)


def _leave(*functions: Any, **options: Any) -> Any:
    """A decorator, with or without options, that leaves functions as they are."""
    return functions[0] if functions else _leave


_PLAIN = {
    f"{__name__}.jit": SimpleNamespace(jit=_leave),
    "numba": SimpleNamespace(njit=_leave, config=SimpleNamespace(DISABLE_JIT=True), types=None),
    "numba.extending": SimpleNamespace(intrinsic=_leave),
}
"""Stand-ins for what kernel modules import to be compiled."""
