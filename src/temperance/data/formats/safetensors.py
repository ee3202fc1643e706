""".safetensors: the length of a header (8 bytes), the header as JSON, then the numbers.

We do not use the safetensors package. As of 0.8, slices of its NumPy reader fail for bfloat16 ("data type
'bfloat16' not understood"), and it rejects a whole file for one tensor of an unknown type. It maps the file
and keeps what a pass has read in memory, but copies an array that is read as a whole.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from temperance.data.lazy_array import LazyArray, UnreadableArray, mapped, widened
from temperance.data.read_options import ReadOptions
from temperance.errors import file_error, library_errors

_NUMBERS = ("F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")
_TYPES = {name: f"<{name[0].lower()}{int(name[1:]) // 8}" for name in _NUMBERS}
_TYPES |= {"BOOL": "|b1", "BF16": "<u2"}


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the tensors of the file by their keys."""
    total = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if total < 8 or length > total - 8:
            raise file_error(
                path,
                f"is not a .safetensors file, or is incomplete: its header should have {length} bytes, "
                f"and the file has {total}. Copy or save it again.",
            )
        header = _header(path, file.read(length))
    return {key: _tensor(path, key, entry, 8 + length, total) for key, entry in header.items()}


def _header(path: Path, text: bytes) -> dict[str, Any]:
    wrong = "has a damaged header ({}). Copy or save the file again."
    # RecursionError: damage can look like deeply nested brackets.
    with library_errors(path, wrong, of=(ValueError, RecursionError)):
        header = json.loads(text)
    if not isinstance(header, dict):
        raise file_error(path, "has a header that is not a JSON object. Copy or save the file again.")
    header.pop("__metadata__", None)
    return header


def _tensor(path: Path, key: str, entry: Any, start: int, total: int) -> LazyArray:
    shape, name, (begin, end) = _entry(path, key, entry)
    if name not in _TYPES:
        return UnreadableArray(path, key, f"is of type {name}, which is not read. Save it as F32.")
    held = np.dtype(_TYPES[name])
    size = math.prod(shape) * held.itemsize
    if end - begin != size or start + end > total:
        raise file_error(
            path,
            f"is damaged: shape {shape} of {name} takes {size} bytes; the header places it at bytes {begin} "
            f"to {end} of {total - start}. Copy or save the file again.",
            key,
        )
    stored = mapped(path, key, shape, held, start + begin)
    return widened(stored) if name == "BF16" else stored


def _entry(path: Path, key: str, entry: Any) -> tuple[tuple[int, ...], str, tuple[int, int]]:
    try:
        shape, (begin, end), name = entry["shape"], entry["data_offsets"], entry["dtype"]
        lengths = [*shape, begin, end]
        if isinstance(name, str) and all(type(length) is int and length >= 0 for length in lengths):
            return tuple(shape), name, (begin, end)
    except (KeyError, TypeError, ValueError):
        pass
    raise file_error(
        path,
        "must have a dtype, a shape and two data_offsets in the header. Copy or save the file again.",
        key,
    )
