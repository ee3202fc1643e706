"""Writing a file so that there is either the old one or the new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: str | Path, content: bytes, *, overwrite: bool = False) -> None:
    """Write `content` to `path`: to a temporary file beside it first, which then takes its name."""
    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists already. Choose another name, or pass overwrite=True.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist. Make it first.")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is private; what the user asked for has the usual permissions.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
