"""The formats that we read: one module each, with a function `members`. FORMATS maps suffixes to them.

To add a format, write such a module and add a line to ARRAYS or to TABLES.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from temperance.data.formats import arrow, csv, excel, harness, hdf5, npy, safetensors, torch
from temperance.data.formats.compression import check_unpacked_size, unless_inflated
from temperance.data.lazy_array import LazyArray
from temperance.data.read_options import ReadOptions
from temperance.errors import Remedy, file_error, missing_file
from temperance.files import check_regular

Members = Callable[[Path, ReadOptions], dict[str, LazyArray]]
"""The arrays of a file by their keys."""
ARRAYS: dict[str, Members] = {
    ".npz": npy.archive_members,
    ".npy": npy.members,
    ".safetensors": safetensors.members,
    ".pt": torch.members,
    ".pth": torch.members,
    ".h5": hdf5.members,
    ".hdf5": hdf5.members,
}
"""Formats with arrays by key, without columns."""
TABLES: dict[str, Members] = {
    ".csv": csv.members,
    ".csv.gz": csv.members,
    ".tsv": csv.members,
    ".tsv.gz": csv.members,
    ".parquet": arrow.members,
    ".pq": arrow.members,
    ".arrow": arrow.members,
    ".feather": arrow.members,
    ".xlsx": excel.members,
    ".jsonl": harness.members,
    ".jsonl.gz": harness.members,
    ".ndjson": harness.members,
    ".ndjson.gz": harness.members,
}
"""Formats with columns, or records."""
FORMATS = ARRAYS | TABLES
READ_ANY = ReadOptions()


def format_of(path: Path) -> str:
    """Return the suffix of a known format, such as .csv or .csv.gz; empty if there is none."""
    return next((suffix for suffix in FORMATS if path.name.lower().endswith(suffix)), "")


def open_members(path: str | Path, choice: ReadOptions = READ_ANY) -> dict[str, LazyArray]:
    """Return the arrays of a file by key, without reading them; the key of an unnamed array is empty.

    `choice` names columns of a table; files of arrays have no columns.
    """
    path = Path(path)
    if not path.exists():
        raise missing_file(path)
    if path.is_dir():
        raise file_error(path, "is a folder. Pass the name of a file in it.")
    check_regular(path)
    if not format_of(path):
        raise file_error(
            path,
            f"must be one of {', '.join(FORMATS)}; found the suffix {path.suffix!r}. Save it as one of them.",
        )
    if path.stat().st_size == 0:
        raise file_error(path, "is empty. Copy or save it again.")
    argument = (
        "label_column" if choice.label_column is not None else "id_column" if choice.id_column else None
    )
    if argument is not None and format_of(path) in ARRAYS:
        raise file_error(path, "is not a table and has no columns.", remedy=Remedy(argument))
    if choice.length_normalised and FORMATS[format_of(path)] is not harness.members:
        raise file_error(
            path,
            "must hold samples of lm-evaluation-harness, a .jsonl, to be normalised by length.",
            remedy=Remedy("length_normalised"),
        )
    try:
        if path.suffix.lower() == ".gz":
            check_unpacked_size(path)
        members = FORMATS[format_of(path)](path, choice)
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror or error}.") from error
    if not members:
        raise file_error(path, "holds no arrays. It needs one of logits or of probs.")
    size = path.stat().st_size
    return {key: unless_inflated(array, size) for key, array in members.items()}
