"""Writing rows block by block, to a file that appears only when it is complete."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from temperance.data.formats.columns import NAMELESS, STEMS
from temperance.data.formats.csv import with_quote
from temperance.data.read_options import MARK_KEY
from temperance.errors import file_error
from temperance.files import atomic_file, check_writable
from temperance.inputs.validation import check_choice
from temperance.loaders import import_optional

Arrays = list[NDArray[Any]]
Put = Callable[..., Any]
"""Writes the next rows, with ids before them and labels and decisions behind: lists of arrays."""
DECISION = "decision"
"""The column, or array, of decisions."""
_GROUP_BYTES = 1 << 25  # per row group of a .parquet: each row group has an entry per column


@dataclass
class Writer:
    """Writes blocks of rows, in order; `labels` and `ids` are lists of one array, or empty."""

    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    labels: list[NDArray[np.int64]]
    class_names: tuple[str, ...] | None
    ids: list[NDArray[Any]]
    id_column: str
    mark: str | None
    decided: bool = False
    """Whether each block comes with its decisions."""
    put: Put = field(init=False)
    """The function of the format."""
    n_written: int = field(default=0, init=False)

    def columns(self) -> list[str]:
        """Names of the columns."""
        stem = STEMS[self.key]
        classes = self.class_names or [str(k) for k in range(self.shape[-1])]
        scores = [stem] if len(self.shape) == 1 else [f"{stem}_{name}" for name in classes]
        behind = (
            ["label"] * len(self.labels) + [DECISION] * self.decided + [MARK_KEY] * (self.mark is not None)
        )
        return [self.id_column] * len(self.ids) + scores + behind

    def label_cells(self, labels: NDArray[np.int64]) -> NDArray[Any]:
        """Labels as written to a table: class names, if there are any."""
        return labels if self.class_names is None else np.array(self.class_names)[labels]

    def decision_cells(self, decisions: NDArray[np.intp]) -> NDArray[Any]:
        """Decisions as written to a table: classes, or that a person is to be asked."""
        classes = self.class_names or tuple(str(k) for k in range(self.shape[-1]))
        return np.array([*classes, "ask a person"])[decisions]  # ASK_A_PERSON is -1, the last

    def beside(self) -> dict[str, NDArray[Any]]:
        """Arrays that are written with the scores to a file of arrays."""
        held = {"labels": [self.label_cells(labels) for labels in self.labels], "ids": self.ids}
        found = {key: arrays[0] for key, arrays in held.items() if arrays}
        if self.class_names is not None:
            found["classes"] = np.array(self.class_names)
        if self.mark is not None:
            found[MARK_KEY] = np.array([self.mark])
        return found

    def write(self, block: ArrayLike, decisions: NDArray[np.intp] | None = None) -> None:
        """Write the next rows, with the column that was decided on, or -1, per row."""
        rows = np.ascontiguousarray(block, self.dtype)
        end = self.n_written + len(rows)
        if rows.shape[1:] != self.shape[1:] or end > self.shape[0]:
            raise ValueError(
                f"blocks must make up an array of shape {self.shape}; found one of shape {rows.shape} "
                f"after {self.n_written} rows."
            )
        if len(rows):
            part = slice(self.n_written, end)
            ids = [ids[part] for ids in self.ids]
            labels = [self.label_cells(labels[part]) for labels in self.labels]
            self.put(rows, ids, labels, [] if decisions is None else [decisions])
        self.n_written = end


@contextmanager
def open_writer(
    path: str | Path,
    *,
    key: str = "probs",
    shape: tuple[int, ...],
    dtype: DTypeLike,
    labels: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    ids: ArrayLike | None = None,
    id_column: str | None = None,
    mark: str | None = None,
    decided: bool = False,
    overwrite: bool = False,
) -> Iterator[Writer]:
    """Open `path` (.npz, .npy, .csv or .parquet) for rows that come block by block.

    The file appears when the context ends, with all rows, or not at all. A .npy holds only the numbers.

    Parameters
    ----------
    path : path
        The file to write.
    key : {"probs", "logits"}
        What the numbers are.
    shape : tuple of int
        (N, K) of all rows together. Arrays can have more axes, in blocks along the first.
    dtype : dtype
        Type of the numbers.
    labels : array-like of shape (N,), optional
        Columns of the true classes; of an array with more axes, in its shape without the classes.
    class_names : sequence of str, optional
        Names of the columns of a table, and of its labels.
    ids : array-like of shape (N,), optional
        Names of the rows.
    id_column : str, optional
        The column for `ids`.
    mark : str, optional
        Which calibrator made the probabilities.
    decided : bool
        Whether each block comes with its decisions.
    overwrite : bool
        Whether to replace an existing file.

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
    held = _one_for_each_row("labels", None if labels is None else np.asarray(labels, np.int64), shape)
    names = _one_for_each_row("ids", None if ids is None else np.asarray(ids), shape)
    classes = None if class_names is None else tuple(class_names)
    column = "id" if id_column is None or id_column in NAMELESS else id_column
    writer = Writer(key, shape, np.dtype(dtype), held, classes, names, column, mark, decided)
    with atomic_file(path, overwrite=overwrite) as file, WRITERS[path.suffix.lower()](file, writer) as put:
        writer.put = put
        yield writer
        if writer.n_written != shape[0]:
            raise ValueError(f"{shape[0]} rows must be written; found {writer.n_written}.")


def _one_for_each_row(what: str, array: NDArray[Any] | None, shape: tuple[int, ...]) -> list[NDArray[Any]]:
    if array is not None and array.shape[:1] != shape[:1]:
        raise ValueError(f"{what} must have one value per row, {shape[0]}; found shape {array.shape}.")
    return [] if array is None else [array]


def check_output(path: str | Path, *, labels: bool = False, overwrite: bool = False) -> None:
    """Raise unless `open_writer` can write `path`; call it before the work begins."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise file_error(path, f"must be one of {', '.join(WRITERS)} to be written; found {path.suffix!r}.")
    if labels and suffix == ".npy":
        raise file_error(path, "a .npy holds one array, so it has no place for labels. Write a .npz.")
    if suffix in (".parquet", ".pq"):
        import_optional("pyarrow.parquet", "io", f"{path}: a {path.suffix} file")
    check_writable(path, overwrite=overwrite)


@contextmanager
def _npy(file: IO[bytes], table: Writer) -> Iterator[Put]:
    header = {"descr": npy.dtype_to_descr(table.dtype), "fortran_order": False, "shape": table.shape}
    npy.write_array_header_1_0(file, header)
    yield lambda rows, *beside: file.write(rows.reshape(-1).view(np.uint8).data)


@contextmanager
def _npz(file: BinaryIO, table: Writer) -> Iterator[Put]:
    # Not compressed, so that it can be memory-mapped. zipfile does not know the sizes; force_zip64 leaves
    # room.
    held: Arrays = []
    with ZipFile(file, "w", ZIP_STORED) as archive:
        with archive.open(f"{table.key}.npy", "w", force_zip64=True) as member, _npy(member, table) as put:

            def put_and_hold(rows: NDArray[Any], ids: Arrays, labels: Arrays, decisions: Arrays) -> None:
                held.extend(decisions)
                put(rows)

            yield put_and_hold
        decided = {DECISION: np.concatenate(held)} if held else {}
        for key, array in (table.beside() | decided).items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


@contextmanager
def _csv(file: BinaryIO, table: Writer) -> Iterator[Put]:
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(with_quote, table.columns()))

    def put(rows: NDArray[Any], ids: Arrays, labels: Arrays, decisions: Arrays) -> None:
        decided = map(table.decision_cells, decisions)
        before, behind = (
            [list(map(with_quote, array.tolist())) for array in arrays]
            for arrays in (ids, [*labels, *decided])
        )
        if table.mark is not None:  # in each row, so that it stays when the file is converted or split
            behind.append([table.mark] * len(rows))
        # Python writes floats with enough digits to read back the same number.
        for at, row in enumerate(rows.reshape(len(rows), -1)):
            writer.writerow(
                [column[at] for column in before] + row.tolist() + [column[at] for column in behind]
            )

    yield put
    text.flush()
    text.detach()  # the caller closes the file


@contextmanager
def _parquet(file: BinaryIO, table: Writer) -> Iterator[Put]:
    import pyarrow as arrow
    from pyarrow import parquet

    text = arrow.string()
    kinds = [text if ids.dtype.kind == "U" else arrow.from_numpy_dtype(ids.dtype) for ids in table.ids]
    kinds += [arrow.from_numpy_dtype(table.dtype)] * math.prod(table.shape[1:])
    kinds += [arrow.int64() if table.class_names is None else text] * len(table.labels)
    kinds += [text] * table.decided
    marks = [] if table.mark is None else [table.mark]
    kinds += [arrow.dictionary(arrow.int32(), text)] * len(marks)
    schema = arrow.schema(list(zip(table.columns(), kinds, strict=True)))
    group_rows = max(1, _GROUP_BYTES // (table.dtype.itemsize * math.prod(table.shape[1:])))
    held: list[tuple[NDArray[Any], ...]] = []

    # No dictionary and no statistics: probabilities hardly repeat, and are not searched.
    options = {"use_dictionary": False, "write_statistics": False, "write_page_checksum": True}
    with parquet.ParquetWriter(file, schema, **options) as writer:

        def flush() -> None:
            rows, *beside = map(np.concatenate, zip(*held, strict=True))
            scores = np.asfortranarray(rows.reshape(len(rows), -1)).T
            n_ids = len(table.ids)
            columns = [*beside[:n_ids], *scores, *beside[n_ids:], *([mark] * len(rows) for mark in marks)]
            filled = [arrow.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
            writer.write_table(arrow.table(filled, schema=schema))
            held.clear()

        def put(rows: NDArray[Any], ids: Arrays, labels: Arrays, decisions: Arrays) -> None:
            decided = map(table.decision_cells, decisions)
            held.append((np.array(rows), *ids, *labels, *decided))  # the caller might reuse its memory
            if sum(len(rows) for rows, *_ in held) >= group_rows:
                flush()

        yield put
        if held:
            flush()


WRITERS: dict[str, Callable[[BinaryIO, Writer], AbstractContextManager[Put]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
    ".pq": _parquet,
}
