""".npy: one array without a name, in NumPy's own format."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from temperance.data.lazy_array import LazyArray, Mapped, damage_explained, file_error
from temperance.data.read_options import ReadOptions


@dataclass(frozen=True)
class Header:
    """The header of a .npy, and its size in bytes."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int

    @property
    def data_bytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the array of a .npy, under the empty key."""
    total = path.stat().st_size
    with path.open("rb") as file:
        header = read_header(path, "", file, total)
    return {"": Mapped(path, "", header.shape, header.dtype, header.size, fortran=header.fortran)}


def read_header(path: Path, key: str, file: IO[bytes], total: int) -> Header:
    """Read the header of a .npy of `total` bytes; `file` is then at its first number."""
    wrong = "is not a .npy array, or is damaged ({}). Copy or save it again."
    with damage_explained(path, wrong.format, key), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about files of Python 2, which can be read too
        header = _parse(file)
    # For objects the type is the error, and their pickle may have any size.
    if not header.dtype.hasobject and header.size + header.data_bytes != total:
        raise file_error(
            path,
            f"is damaged: an array of shape {header.shape} and type {header.dtype} must have "
            f"{header.data_bytes} bytes; found {total - header.size}. Copy or save it again.",
            key,
        )
    return header


def _parse(file: IO[bytes]) -> Header:
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} is for arrays of records")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if any(length < 0 for length in shape):
        raise ValueError(f"shape {shape}")
    return Header(shape, fortran, dtype, file.tell())
