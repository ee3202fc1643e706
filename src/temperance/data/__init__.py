"""Sources of logits: files, a built-in task, and a simulator whose true probabilities are known."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temperance.data.rows_file import RowFile, open_rows
    from temperance.data.tasks import demo_task, simulate

# Imported on first use: the simulator needs no files, and a command's help needs no NumPy.
_PLACES = {
    "RowFile": "rows_file",
    "demo_task": "tasks",
    "open_rows": "rows_file",
    "simulate": "tasks",
}
__all__ = ["RowFile", "demo_task", "open_rows", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'temperance.data' has no attribute {name!r}")
    return getattr(import_module(f"temperance.data.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
