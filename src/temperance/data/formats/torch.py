""".pt: tensors as torch.save writes them, and nothing that could run code.

torch.load with weights_only reads tensors, numbers and containers, and rejects whatever else a pickle can
hold. The file is mapped anew per block, and the map is dropped afterwards, so a pass keeps little of it in
memory.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.lazy_array import LazyArray, SlicedArray, UnreadableArray, in_memory, widened
from temperance.data.read_options import CLASS_KEYS, PARTS, ReadOptions
from temperance.errors import file_error, reason_of
from temperance.loaders import import_optional

_HOW = 'Save only tensors: torch.save({"logits": logits, "labels": labels}, path).'
_LABELS = ("labels", *(f"labels_{part}" for part in PARTS))


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the tensors of the file: by key, one without a key, or a pair of logits and labels.

    Labels and class names can be lists.
    """
    return {key: _stored(path, key, value) for key, value in _values(path).items()}


def _stored(path: Path, key: str, tensor: Any) -> LazyArray:
    if _is_plain_list(tensor):
        return in_memory(path, key, np.array(tensor))
    if not hasattr(tensor, "layout"):
        wanted = "must be a tensor, or a list of whole numbers or of text"
        return UnreadableArray(path, key, f"{wanted}; found {_described(tensor)}. {_HOW}")
    try:
        dtype = _numpy(tensor[:0] if tensor.ndim else tensor).dtype
    except (TypeError, RuntimeError):  # sparse, quantized, or of a type that NumPy lacks
        what = f"a tensor of {tensor.dtype} and layout {tensor.layout}".replace("torch.", "")
        return UnreadableArray(path, key, f"is {what}, which is not read. Save it dense and as float32.")
    shape = tuple(tensor.shape)

    @contextmanager
    def opened() -> Iterator[NDArray[Any]]:
        again = _values(path).get(key)
        if again is None or tuple(again.shape) != shape:
            raise file_error(path, "the file changed while it was read.", key)
        yield _numpy(again)

    # A tensor that is not mapped is already in memory.
    stored: LazyArray = SlicedArray(path, key, shape, dtype, opened)
    if not _is_zip(path):
        stored = in_memory(path, key, _numpy(tensor))
    return widened(stored) if _is_bfloat16(tensor) else stored


def _values(path: Path) -> dict[str, Any]:
    torch = import_optional("torch", "torch", f"{path}: a {path.suffix} file")
    # Files of PyTorch before 1.6 are not zip archives and cannot be mapped.
    mapped = _is_zip(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how the file was pickled
        try:
            content = torch.load(str(path), map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:
            raise file_error(path, _why(error)) from error
    if isinstance(content, torch.Tensor):
        return {"": content}
    if isinstance(content, (list, tuple)) and len(content) == 2:
        content = _pair(path, *content)
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise file_error(
            path, f"must hold a dict of tensors, one tensor, or logits and labels; found a {kind}. {_HOW}"
        )
    return {
        str(key): value
        for key, value in content.items()
        if isinstance(value, torch.Tensor)
        or (key in _LABELS and value is not None)  # rejected later if they are not an array
        or (key in CLASS_KEYS and _is_plain_list(value))
    }


def _pair(path: Path, scores: Any, labels: Any) -> dict[str, Any]:
    """Return what a pair holds; the user cannot name its parts, so their roles must be unambiguous."""
    is_right = (
        hasattr(scores, "is_floating_point")
        and scores.is_floating_point()
        and (_is_plain_list(labels) or (hasattr(labels, "ndim") and labels.ndim == 1))
        and not (hasattr(labels, "is_floating_point") and labels.is_floating_point())
    )
    if not is_right:
        raise file_error(
            path,
            f"a pair must be floats (N, K) and their labels, integers (N,), in this order; found "
            f"{_described(scores)} and {_described(labels)}. {_HOW}",
        )
    return {"": scores, "labels": labels}


def _described(value: Any) -> str:
    if hasattr(value, "is_floating_point"):
        return f"{value.dtype} {tuple(value.shape)}".replace("torch.", "")
    kind = type(value).__name__
    if not isinstance(value, (list, tuple)):
        return f"a {kind}"
    return f"a {kind} of {' and '.join(sorted({type(item).__name__ for item in value}))}"


def _is_plain_list(value: Any) -> bool:
    """Say whether this is a list of text or of whole numbers."""
    return isinstance(value, (list, tuple)) and (
        all(type(item) is str for item in value) or all(type(item) is int for item in value)
    )


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _why(error: Exception) -> str:
    """Say why the reader failed: something that is not a tensor, or damage."""
    refused = re.search(r"GLOBAL ([\w.]+)", str(error))
    if refused:
        return (
            f"holds a pickled {refused[1]}; unpickling it could run code, so it is not read. {_HOW} "
            "Convert NumPy arrays with torch.from_numpy."
        )
    if type(error).__name__ == "UnpicklingError":
        return f"must hold only tensors; it holds other objects, which could run code, or is damaged. {_HOW}"
    return (
        f"cannot be read as a PyTorch file; it might be damaged ({reason_of(error)}). Copy it again. {_HOW}"
    )


def _is_bfloat16(tensor: Any) -> bool:
    return str(tensor.dtype) == "torch.bfloat16"


def _numpy(tensor: Any) -> NDArray[Any]:
    """Return the numbers of a tensor; bfloat16, which NumPy lacks, as integers."""
    held = tensor.detach()
    if _is_bfloat16(held):
        return np.asarray(held.view(sys.modules["torch"].int16).numpy()).view(np.uint16)
    return np.asarray(held.numpy())
