"""Packages that only some formats need."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from temperance.data.lazy_array import file_error

__all__ = ["import_optional"]


def import_optional(module: str, extra: str, path: Path) -> Any:
    """Return a module, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise file_error(
            path, "", f'a {path.suffix} file needs the package {package}: pip install "temperance[{extra}]"'
        ) from error
