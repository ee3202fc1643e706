"""Where logits come from: files, a built-in task, and a simulator whose true probabilities are known."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from temperance.data.simulate import SimulatedTask, simulate

if TYPE_CHECKING:
    from temperance.data.builtin import Task, demo_task
    from temperance.data.rows_file import RowFile, open_rows, parts
    from temperance.data.writing import open_writer

__all__ = [
    "RowFile",
    "SimulatedTask",
    "Task",
    "demo_task",
    "open_rows",
    "open_writer",
    "parts",
    "simulate",
]

# The simulator needs no files, so the readers are imported on first use. A name that is not listed here is in
# rows_file.
_PLACES = {"Task": "builtin", "demo_task": "builtin", "open_writer": "writing"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'temperance.data' has no attribute {name!r}")
    return getattr(import_module(f"temperance.data.{_PLACES.get(name, 'rows_file')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
