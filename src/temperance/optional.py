"""Packages that only some of the work needs."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from temperance.errors import InputError

__all__ = ["MissingPackageError", "import_optional"]


class MissingPackageError(InputError, ImportError):
    """A package is not installed; the message says how to install it."""


def import_optional(module: str, extra: str, user: str) -> ModuleType:
    """Return a module, or say which extra brings it to its `user`."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f'{user} needs the package {package}: pip install "temperance[{extra}]"'
        ) from error
