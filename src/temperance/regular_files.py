"""Files that are read as a whole: of bounded size, and never a device or a pipe.

A prediction service imports this, so it uses `os` rather than `pathlib`, which takes longer to import.
"""

from __future__ import annotations

import os
import stat

from temperance.errors import InputError


def read_regular_file(path: str | os.PathLike[str], *, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes."""
    check_regular(path)
    with open(path, "rb") as file:  # noqa: PTH123
        content = file.read(most + 1)
        size = os.fstat(file.fileno()).st_size
    if len(content) > most:
        raise InputError(
            f"must have at most {most >> 20} MB; found {size >> 20} MB. Choose another file.",
            where=os.fspath(path),
        )
    return content


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise for a pipe or a device, whose content may never arrive or never end."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return  # opening it raises the error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(
            "must be a file; found a device or a pipe. Save it to a file first.", where=os.fspath(path)
        )
