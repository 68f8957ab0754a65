"""Packages that Placet can do without: imported where they are used, or an error that says how to install them."""

from importlib import import_module
from typing import Any


def import_optional(name: str, why: str, install: str) -> Any:
    """Import a package, or raise an ``ImportError`` that says why it is needed and how to install it.

    >>> import_optional("no_such_package", "pictures need no_such_package", "pip install 'placet[pictures]'")
    Traceback (most recent call last):
    ImportError: pictures need no_such_package; install it with: pip install 'placet[pictures]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{why}; install it with: {install}") from None
