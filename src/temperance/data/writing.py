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

Put = Callable[[NDArray[Any]], None]
_GROUP_BYTES = 1 << 25  # in a row group of a .parquet: each one costs the file an entry for every column


@dataclass(frozen=True)
class _TableLayout:
    """What will be written."""

    path: Path
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    labels: NDArray[np.int64] | None

    def columns(self) -> list[str]:
        """Names of the columns of the scores."""
        stem = STEMS[self.key]
        return [stem] if len(self.shape) == 1 else [f"{stem}_{k}" for k in range(self.shape[1])]

    def label_block(self, start: int, count: int) -> NDArray[np.int64] | None:
        """Labels of some of the rows."""
        return None if self.labels is None else self.labels[start : start + count]


class Writer:
    """Takes blocks of rows, in order."""

    def __init__(self, put: Put, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._put = put
        self._shape = shape
        self._dtype = dtype
        self._written = 0

    def write(self, block: ArrayLike) -> None:
        """Write the next rows."""
        rows = np.ascontiguousarray(block, self._dtype)
        if rows.shape[1:] != self._shape[1:] or self._written + len(rows) > self._shape[0]:
            raise ValueError(
                f"blocks must make up an array of shape {self._shape}; found one of shape {rows.shape} "
                f"after {self._written} rows."
            )
        if len(rows):
            self._put(rows)
        self._written += len(rows)

    def finish(self) -> None:
        """Raise unless all rows are there."""
        if self._written != self._shape[0]:
            raise ValueError(f"{self._shape[0]} rows must be written; found {self._written}.")


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
    held = None if labels is None else np.asarray(labels, np.int64)
    if held is not None and held.shape != shape[:1]:
        raise ValueError(f"labels must be one for each of the {shape[0]} rows; found shape {held.shape}.")
    table = _TableLayout(path, key, shape, np.dtype(dtype), held)
    with atomic_file(path, overwrite=overwrite) as file, WRITERS[path.suffix.lower()](file, table) as put:
        writer = Writer(put, shape, table.dtype)
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


def _npy_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, header)


@contextmanager
def _npy(file: BinaryIO, table: _TableLayout) -> Iterator[Put]:
    _npy_header(file, table.shape, table.dtype)
    yield lambda rows: _write(file, rows)


@contextmanager
def _npz(file: BinaryIO, table: _TableLayout) -> Iterator[Put]:
    # Not compressed, so that it can be mapped. zipfile is not told the sizes; force_zip64 leaves them room.
    with ZipFile(file, "w", ZIP_STORED) as archive:
        with archive.open(f"{table.key}.npy", "w", force_zip64=True) as member:
            _npy_header(member, table.shape, table.dtype)
            yield lambda rows: _write(member, rows)
        if table.labels is not None:
            with archive.open("labels.npy", "w", force_zip64=True) as member:
                _npy_header(member, table.labels.shape, table.labels.dtype)
                _write(member, np.ascontiguousarray(table.labels))


def _write(file: IO[bytes], rows: NDArray[Any]) -> None:
    file.write(rows.reshape(-1).view(np.uint8).data)


@contextmanager
def _csv(file: BinaryIO, table: _TableLayout) -> Iterator[Put]:
    written = 0
    names = table.columns() + ([] if table.labels is None else ["label"])
    file.write((",".join(names) + "\n").encode())

    def put(rows: NDArray[Any]) -> None:
        nonlocal written
        labels = table.label_block(written, len(rows))
        ends = [""] * len(rows) if labels is None else [f",{label}" for label in labels.tolist()]
        for row, end in zip(rows.reshape(len(rows), -1), ends, strict=True):
            # Python's floats, as text, have the digits it takes to read the same number back.
            file.write(f"{','.join(map(repr, row.tolist()))}{end}\n".encode())
        written += len(rows)

    yield put


@contextmanager
def _parquet(file: BinaryIO, table: _TableLayout) -> Iterator[Put]:
    import pyarrow as arrow
    from pyarrow import parquet

    kind = arrow.from_numpy_dtype(table.dtype)
    fields = [(name, kind) for name in table.columns()]
    if table.labels is not None:
        fields.append(("label", arrow.int64()))
    schema = arrow.schema(fields)
    group_rows = max(1, _GROUP_BYTES // (table.dtype.itemsize * math.prod(table.shape[1:])))
    held: list[NDArray[Any]] = []
    written = 0

    # No dictionary and no statistics: probabilities hardly repeat, and nobody looks them up.
    options = {"use_dictionary": False, "write_statistics": False, "write_page_checksum": True}
    with parquet.ParquetWriter(file, schema, **options) as writer:

        def flush() -> None:
            nonlocal written
            rows = np.concatenate(held).reshape(sum(map(len, held)), -1)
            labels = table.label_block(written, len(rows))
            columns = [*np.asfortranarray(rows).T, *([] if labels is None else [labels])]
            writer.write_table(arrow.table([arrow.array(column) for column in columns], schema=schema))
            written += len(rows)
            held.clear()

        def put(rows: NDArray[Any]) -> None:
            held.append(np.array(rows))  # the caller may use its memory again
            if sum(map(len, held)) >= group_rows:
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
