"""A classifier that is not a valid ONNX model: damage can make its reader fail anywhere, with any error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from google.protobuf.message import DecodeError, EncodeError
from onnx import checker, shape_inference

from temperance.errors import InputError

_DAMAGE = (
    DecodeError,
    EncodeError,
    checker.ValidationError,
    shape_inference.InferenceError,
    UnicodeError,  # text that is not UTF-8
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    RuntimeError,
    RecursionError,
)


@contextmanager
def classifier_damage_explained(path: Path) -> Iterator[None]:
    """Turn errors of reading a classifier into one about its file."""
    try:
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0][:200].rstrip(".")
        raise InputError(
            f"{path} must be a valid ONNX model; ONNX says: {reason}. Export it again."
        ) from error
