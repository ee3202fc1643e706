"""Files that claim far more than they hold: memory and time must stay in proportion to the file."""

from __future__ import annotations

import math
from pathlib import Path

from temperance.data.lazy_array import LazyArray, UnreadableArray

ALWAYS_FINE = 1 << 28  # bytes: small enough, whatever the size of the file
MOST_PER_BYTE = 200  # the outputs of a classifier compress to about half; only constants come close to this


def is_inflated(unpacked: int, packed: int) -> bool:
    """Say whether a file claims implausibly many bytes for its size."""
    return unpacked > max(ALWAYS_FINE, MOST_PER_BYTE * packed)


def without_inflated(path: Path, members: dict[str, LazyArray]) -> dict[str, LazyArray]:
    """Return the arrays of a file; those that claim too much cannot be read."""
    size = path.stat().st_size
    return {key: _if_honest(array, size) for key, array in members.items()}


def _if_honest(array: LazyArray, size: int) -> LazyArray:
    claimed = math.prod(array.shape) * array.dtype.itemsize
    if not is_inflated(claimed, size):
        return array
    reason = (
        f"must not claim more than {MOST_PER_BYTE} times the bytes of its file; found shape {array.shape}, "
        f"{claimed / 1e9:.2g} GB, in a file of {size / 1e6:.2g} MB. Save it uncompressed, with np.savez."
    )
    return UnreadableArray(array.path, array.key, reason)
