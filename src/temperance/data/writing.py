"""Writing rows block by block, to a file that appears when all are there, and not before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from temperance.data.formats.columns import STEMS
from temperance.data.lazy_array import file_error
from temperance.files import atomic_file, check_writable
from temperance.loaders import import_optional
from temperance.validation import check_choice

Put = Callable[..., Any]
"""Writes the next rows, and their labels if there are any."""
_GROUP_BYTES = 1 << 25  # in a row group of a .parquet: each one costs the file an entry for every column


@dataclass(frozen=True)
class _TableLayout:
    """What will be written; `labels` holds an array of them, or nothing."""

    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    labels: list[NDArray[np.int64]]

    def columns(self) -> list[str]:
        """Names of the columns."""
        stem = STEMS[self.key]
        scores = [stem] if len(self.shape) == 1 else [f"{stem}_{k}" for k in range(self.shape[1])]
        return scores + ["label"] * len(self.labels)


class Writer:
    """Takes blocks of rows, in order."""

    def __init__(self, put: Put, table: _TableLayout) -> None:
        self._put, self._table, self._written = put, table, 0

    def write(self, block: ArrayLike) -> None:
        """Write the next rows."""
        shape, rows = self._table.shape, np.ascontiguousarray(block, self._table.dtype)
        end = self._written + len(rows)
        if rows.shape[1:] != shape[1:] or end > shape[0]:
            raise ValueError(
                f"blocks must make up an array of shape {shape}; found one of shape {rows.shape} "
                f"after {self._written} rows."
            )
        if len(rows):
            self._put(rows, *(labels[self._written : end] for labels in self._table.labels))
        self._written = end

    def finish(self) -> None:
        """Raise unless all rows are there."""
        if self._written != self._table.shape[0]:
            raise ValueError(f"{self._table.shape[0]} rows must be written; found {self._written}.")


@contextmanager
def open_writer(
    path: str | Path,
    *,
    key: str = "probs",
    shape: tuple[int, ...],
    dtype: DTypeLike,
    labels: ArrayLike | None = None,
    overwrite: bool = False,
) -> Iterator[Writer]:
    """Open `path` (.npz, .npy, .csv or .parquet) for rows that come block by block.

    The file is there when the context ends, with all rows, or not at all.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open_writer(f"{folder.name}/probs.npz", shape=(4, 2), dtype=float) as out:
    ...     out.write([[0.5, 0.5], [0.9, 0.1]])
    ...     out.write([[0.2, 0.8], [0.3, 0.7]])
    >>> np.load(f"{folder.name}/probs.npz")["probs"].shape
    (4, 2)
    >>> folder.cleanup()
    """
    path = Path(path)
    check_output(path, labels=labels is not None, overwrite=overwrite)
    check_choice("key", key, tuple(STEMS))
    held = [] if labels is None else [np.asarray(labels, np.int64)]
    if held and held[0].shape != shape[:1]:
        raise ValueError(f"labels must be one for each of the {shape[0]} rows; found shape {held[0].shape}.")
    table = _TableLayout(key, shape, np.dtype(dtype), held)
    with atomic_file(path, overwrite=overwrite) as file, WRITERS[path.suffix.lower()](file, table) as put:
        writer = Writer(put, table)
        yield writer
        writer.finish()


def check_output(path: str | Path, *, labels: bool = False, overwrite: bool = False) -> None:
    """Raise unless `open_writer` can write `path`: to be asked before the work whose result goes there."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise file_error(path, f"must be one of {', '.join(WRITERS)} to be written; found {path.suffix!r}.")
    if labels and suffix == ".npy":
        raise file_error(path, "a .npy holds one array and cannot take the labels too. Write a .npz.")
    if suffix in (".parquet", ".pq"):
        import_optional("pyarrow.parquet", "io", f"{path}: a {path.suffix} file")
    check_writable(path, overwrite=overwrite)


@contextmanager
def _npy(file: IO[bytes], table: _TableLayout) -> Iterator[Put]:
    header = {"descr": npy.dtype_to_descr(table.dtype), "fortran_order": False, "shape": table.shape}
    npy.write_array_header_1_0(file, header)
    yield lambda rows, *labels: file.write(rows.reshape(-1).view(np.uint8).data)


@contextmanager
def _npz(file: BinaryIO, table: _TableLayout) -> Iterator[Put]:
    # Not compressed, so that it can be mapped. zipfile is not told the sizes; force_zip64 leaves them room.
    with ZipFile(file, "w", ZIP_STORED) as archive:
        with archive.open(f"{table.key}.npy", "w", force_zip64=True) as member, _npy(member, table) as put:
            yield put
        for labels in table.labels:
            with archive.open("labels.npy", "w", force_zip64=True) as member:
                npy.write_array(member, labels)


@contextmanager
def _csv(file: BinaryIO, table: _TableLayout) -> Iterator[Put]:
    file.write((",".join(table.columns()) + "\n").encode())

    def put(rows: NDArray[Any], *labels: NDArray[np.int64]) -> None:
        for row, *label in zip(rows.reshape(len(rows), -1), *labels, strict=True):
            # Python's floats, as text, have the digits it takes to read the same number back.
            file.write((",".join(map(str, row.tolist() + label)) + "\n").encode())

    yield put


@contextmanager
def _parquet(file: BinaryIO, table: _TableLayout) -> Iterator[Put]:
    import pyarrow as arrow
    from pyarrow import parquet

    kind = arrow.from_numpy_dtype(table.dtype)
    schema = arrow.schema([(name, arrow.int64() if name == "label" else kind) for name in table.columns()])
    group_rows = max(1, _GROUP_BYTES // (table.dtype.itemsize * math.prod(table.shape[1:])))
    held: list[tuple[NDArray[Any], ...]] = []

    # No dictionary and no statistics: probabilities hardly repeat, and nobody looks them up.
    options = {"use_dictionary": False, "write_statistics": False, "write_page_checksum": True}
    with parquet.ParquetWriter(file, schema, **options) as writer:

        def flush() -> None:
            rows, *labels = map(np.concatenate, zip(*held, strict=True))
            columns = [*np.asfortranarray(rows.reshape(len(rows), -1)).T, *labels]
            writer.write_table(arrow.table([arrow.array(column) for column in columns], schema=schema))
            held.clear()

        def put(rows: NDArray[Any], *labels: NDArray[np.int64]) -> None:
            held.append((np.array(rows), *labels))  # the caller may use its memory again
            if sum(len(rows) for rows, *_ in held) >= group_rows:
                flush()

        yield put
        if held:
            flush()


WRITERS: dict[str, Callable[[BinaryIO, _TableLayout], AbstractContextManager[Put]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
    ".pq": _parquet,
}
