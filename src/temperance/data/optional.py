"""Packages that only some formats need."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from temperance.data.stored import wrong

__all__ = ["require"]


def require(module: str, extra: str, path: Path) -> Any:
    """Return a module, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise wrong(
            path, "", f'a {path.suffix} file needs the package {package}: pip install "temperance[{extra}]"'
        ) from error
