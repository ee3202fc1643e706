""".h5 and .hdf5: datasets by name; `logits` in a group `val` becomes `logits_val`. `classes` can be text.

We never leave the file: links to other files, external storage and virtual datasets raise an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temperance.data.lazy_array import TEXT, LazyArray, SlicedArray, UnreadableArray
from temperance.data.read_options import PARTS, ReadOptions
from temperance.errors import library_errors
from temperance.loaders import import_optional


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the datasets of the file by their keys."""
    with _opened(path) as file:
        found = {name: name for name in file}
        for part in PARTS:
            if part in file and _is_inside(file, part) and hasattr(file[part], "keys"):
                del found[part]
                found |= {f"{name}_{part}": f"{part}/{name}" for name in file[part]}
        return {key: _stored(path, key, file, place) for key, place in found.items()}


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    h5py = import_optional("h5py", "io", f"{path}: a {path.suffix} file")
    wrong = "is not an HDF5 file, or is damaged ({}). Copy it again."
    # No lock: the file might be in a read-only folder.
    with library_errors(path, wrong), h5py.File(path, "r", locking=False) as file:
        yield file


def _is_inside(file: Any, place: str) -> bool:
    """Say whether a name refers to an object in this file, not elsewhere."""
    return type(file.get(place, getlink=True)).__name__ == "HardLink"


def _stored(path: Path, key: str, file: Any, place: str) -> LazyArray:
    if not _is_inside(file, place):
        return UnreadableArray(
            path, key, "is a link, which is not followed. Save the dataset itself under this name."
        )
    dataset = file[place]
    if not hasattr(dataset, "shape") or dataset.shape is None:
        return UnreadableArray(path, key, "is a group or an empty dataset. Save an array under this name.")
    if dataset.is_virtual or dataset.external:
        return UnreadableArray(
            path, key, "stores its numbers in other files, which are not read. Copy them into this one."
        )
    # Without chunks nothing is compressed, and HDF5 would fill missing numbers with whatever is in memory.
    if dataset.id.get_storage_size() < (min(1, dataset.nbytes) if dataset.chunks else dataset.nbytes):
        return UnreadableArray(
            path, key, f"has the shape {dataset.shape}, and not all of its numbers are there. Save it again."
        )
    from h5py import check_string_dtype

    is_text = check_string_dtype(dataset.dtype) is not None
    if is_text and not dataset.shape:
        return UnreadableArray(path, key, "is a single text. Save an array under this name.")

    @contextmanager
    def opened() -> Iterator[Any]:
        with _opened(path) as again:
            yield again[place].asstr() if is_text else again[place]

    return SlicedArray(path, key, dataset.shape, TEXT if is_text else dataset.dtype, opened)
