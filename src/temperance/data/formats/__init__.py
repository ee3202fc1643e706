"""The formats that can be read: one module each, with `members`, and here which suffix is whose.

To add one, write such a module and give it a line in FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from temperance.data.formats import arrow, csv, excel, hdf5, json_lines, npy, npz, parquet, safetensors, torch
from temperance.data.formats.columns import ANY_COLUMNS, ColumnChoice
from temperance.data.lazy_array import LazyArray, file_error
from temperance.errors import Remedy

FORMATS: dict[str, Callable[[Path, ColumnChoice], dict[str, LazyArray]]] = {
    ".npz": npz.members,
    ".npy": npy.members,
    ".csv": csv.members,
    ".parquet": parquet.members,
    ".pq": parquet.members,
    ".arrow": arrow.members,
    ".feather": arrow.members,
    ".xlsx": excel.members,
    ".h5": hdf5.members,
    ".hdf5": hdf5.members,
    ".safetensors": safetensors.members,
    ".pt": torch.members,
    ".pth": torch.members,
    ".jsonl": json_lines.members,
    ".jsonl.gz": json_lines.members,
    ".ndjson": json_lines.members,
    ".ndjson.gz": json_lines.members,
}

KINDS = ("logits", "probs")
"""What an array of scores is called, and begins with in a task file."""


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format: the last, or the last two of a packed file."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


def open_members(path: str | Path, choice: ColumnChoice = ANY_COLUMNS) -> dict[str, LazyArray]:
    """Return the arrays of a file by their keys, none of them read yet; the empty key has no name.

    `choice` names columns of a table; files of arrays have none.
    """
    path = Path(path)
    _check_file(path)
    if choice.length_normalised and FORMATS[suffix_of(path)] is not json_lines.members:
        raise file_error(
            path,
            "must be samples of lm-evaluation-harness, a .jsonl, to be normalised by length.",
            remedy=Remedy("length_normalised"),
        )
    try:
        members = FORMATS[suffix_of(path)](path, choice)
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror or error}.") from error
    _name_classes(path, members)
    if not members:
        raise file_error(path, "holds no arrays. It needs one of logits or of probs.")
    return members


def _name_classes(path: Path, members: dict[str, LazyArray]) -> None:
    """Give the texts under `classes` to the scores: they are the names of the columns."""
    if "classes" not in members or members["classes"].dtype.kind != "U":
        return
    names = tuple(members.pop("classes").labels().ravel().tolist())
    for key, stored in members.items():
        n_columns = stored.shape[1] if len(stored.shape) == 2 else 2
        if not key.startswith(KINDS):
            continue
        if len(names) != n_columns or len(set(names)) != n_columns:
            raise file_error(
                path,
                f"classes must name each of the {n_columns} columns of {key}, each by another name; found "
                f"{len(names)} names, {len(set(names))} of them different. Correct or drop classes.",
            )
        stored.class_names = names


def _check_file(path: Path) -> None:
    if not path.exists():
        raise file_error(path, "there is no such file. Check its name and folder.")
    if path.is_dir():
        raise file_error(path, "is a folder. Give the name of a file in it.")
    if suffix_of(path) not in FORMATS:
        raise file_error(
            path,
            f"must be one of {', '.join(FORMATS)}; found the suffix {suffix_of(path)!r}. "
            "Save it as one of them.",
        )
    if path.stat().st_size == 0:
        raise file_error(path, "is empty. Copy or save it again.")
