"""Writing rows block by block, to a file that appears only when it is complete."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from temperance.data.formats.columns import NAMELESS
from temperance.data.formats.csv import with_quote
from temperance.data.read_options import MARK_KEY
from temperance.errors import file_error
from temperance.files import atomic_file
from temperance.inputs.names import STEMS
from temperance.inputs.validation import check_choice
from temperance.loaders import import_optional

Put = Callable[[NDArray[Any], int, NDArray[np.intp] | None], None]
"""Writes the next rows, from the one with this number, with their decisions if there are any."""
DECISION = "decision"
"""The column, or array, of decisions."""


@dataclass
class Writer:
    """Writes blocks of rows, in order."""

    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    labels: NDArray[np.int64] | None
    class_names: tuple[str, ...] | None
    ids: NDArray[Any] | None
    id_column: str
    mark: str | None
    put: Put = field(init=False)
    """The function of the format."""
    n_written: int = field(default=0, init=False)

    def label_cells(self, labels: NDArray[np.int64]) -> NDArray[Any]:
        """Labels as they are written: class names, if there are any."""
        return labels if self.class_names is None else np.array(self.class_names)[labels]

    def columns(
        self, rows: NDArray[Any], first: int, decisions: NDArray[np.intp] | None
    ) -> list[tuple[str, NDArray[Any]]]:
        """Return the columns of a table for the next rows, with their names."""
        part, stem = slice(first, first + len(rows)), STEMS[self.key]
        classes = self.class_names or tuple(str(k) for k in range(self.shape[-1]))
        names = [stem] if len(self.shape) == 1 else [f"{stem}_{name}" for name in classes]
        found = [] if self.ids is None else [(self.id_column, self.ids[part])]
        found += zip(names, np.asfortranarray(rows.reshape(len(rows), -1)).T, strict=True)
        if self.labels is not None:
            found.append(("label", self.label_cells(self.labels[part])))
        if decisions is not None:  # ASK_A_PERSON is -1, the last
            found.append((DECISION, np.array([*classes, "ask a person"])[decisions]))
        if self.mark is not None:  # in each row, so that it stays when the file is converted or split
            found.append((MARK_KEY, np.full(len(rows), self.mark)))
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
            self.put(rows, self.n_written, decisions)
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
    check_output(path, labels=labels is not None)
    check_choice("key", key, tuple(STEMS))
    given = {"labels": labels, "ids": ids}
    held = {what: None if values is None else np.asarray(values) for what, values in given.items()}
    for what, array in held.items():
        if array is not None and array.shape[:1] != shape[:1]:
            raise ValueError(f"{what} must have one value per row, {shape[0]}; found shape {array.shape}.")
    classes = None if class_names is None else tuple(class_names)
    column = "id" if id_column is None or id_column in NAMELESS else id_column
    writer = Writer(key, shape, np.dtype(dtype), held["labels"], classes, held["ids"], column, mark)
    with atomic_file(path, overwrite=overwrite) as file, WRITERS[path.suffix.lower()](file, writer) as put:
        writer.put = put
        yield writer
        if writer.n_written != shape[0]:
            raise ValueError(f"{shape[0]} rows must be written; found {writer.n_written}.")


def check_output(path: str | Path, *, labels: bool = False) -> None:
    """Raise unless `open_writer` can write this format; call it before the work begins."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise file_error(path, f"must be one of {', '.join(WRITERS)} to be written; found {path.suffix!r}.")
    if labels and suffix == ".npy":
        raise file_error(path, "a .npy holds one array, so it has no place for labels. Write a .npz.")
    if suffix in (".parquet", ".pq"):
        import_optional("pyarrow.parquet", "io", f"{path}: a {path.suffix} file")


@contextmanager
def _npy(file: IO[bytes], table: Writer) -> Iterator[Put]:
    header = {"descr": npy.dtype_to_descr(table.dtype), "fortran_order": False, "shape": table.shape}
    npy.write_array_header_1_0(file, header)

    def put(rows: NDArray[Any], first: int, decisions: NDArray[np.intp] | None) -> None:
        file.write(rows.reshape(-1).view(np.uint8).data)

    yield put


@contextmanager
def _npz(file: BinaryIO, table: Writer) -> Iterator[Put]:
    beside: dict[str, NDArray[Any]] = {}
    if table.labels is not None:
        beside["labels"] = table.label_cells(table.labels)
    if table.ids is not None:
        beside["ids"] = table.ids
    if table.class_names is not None:
        beside["classes"] = np.array(table.class_names)
    if table.mark is not None:
        beside[MARK_KEY] = np.array([table.mark])
    decided: list[NDArray[np.intp]] = []
    # zipfile does not know the sizes; force_zip64 leaves room.
    with ZipFile(file, "w", ZIP_STORED) as archive:
        with archive.open(f"{table.key}.npy", "w", force_zip64=True) as member, _npy(member, table) as put:

            def put_and_hold(rows: NDArray[Any], first: int, decisions: NDArray[np.intp] | None) -> None:
                decided.extend([] if decisions is None else [decisions])
                put(rows, first, None)

            yield put_and_hold
        if decided:
            beside[DECISION] = np.concatenate(decided)
        for key, array in beside.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


@contextmanager
def _csv(file: BinaryIO, table: Writer) -> Iterator[Put]:
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")

    def put(rows: NDArray[Any], first: int, decisions: NDArray[np.intp] | None) -> None:
        columns = table.columns(rows, first, decisions)
        if first == 0:
            writer.writerow(with_quote(name) for name, _ in columns)
        # Python writes floats with enough digits to read back the same number.
        cells = [
            list(map(with_quote, column.tolist())) if column.dtype.kind == "U" else column.tolist()
            for _, column in columns
        ]
        writer.writerows(zip(*cells, strict=True))

    yield put
    text.flush()
    text.detach()  # the caller closes the file


@contextmanager
def _parquet(file: BinaryIO, table: Writer) -> Iterator[Put]:
    import pyarrow as arrow
    from pyarrow import parquet

    # No dictionary and no statistics: probabilities hardly repeat, and are not searched.
    options = {"use_dictionary": False, "write_statistics": False, "write_page_checksum": True}
    writer: Any = None
    with ExitStack() as until_complete:

        def put(rows: NDArray[Any], first: int, decisions: NDArray[np.intp] | None) -> None:
            nonlocal writer
            names, columns = zip(*table.columns(rows, first, decisions), strict=True)
            arrays = [arrow.array(column) for column in columns]
            if table.mark is not None:
                arrays[-1] = arrays[-1].dictionary_encode()
            made = arrow.table(arrays, names=names)
            if writer is None:
                writer = until_complete.enter_context(parquet.ParquetWriter(file, made.schema, **options))
            writer.write_table(made)

        yield put


WRITERS: dict[str, Callable[[BinaryIO, Writer], AbstractContextManager[Put]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
    ".pq": _parquet,
}
