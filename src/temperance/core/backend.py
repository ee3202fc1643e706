"""Which kernels read the blocks: `kernels` (NumPy, always there) or `compiled` (the extra `fast`)."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from contextvars import ContextVar
from importlib.util import find_spec
from types import ModuleType

from temperance.core import kernels
from temperance.core.blocks import setting

# Above this size, the compiled loops save more over a few fits than loading them costs. The choice
# depends on the size alone, so the same input gives bit-identical results in any process.
COMPILED_FROM = 1 << 24

_kernel: ContextVar[str | None] = ContextVar("kernel", default=None)
_size: ContextVar[int | None] = ContextVar("size", default=None)


def kernel(name: str) -> AbstractContextManager[None]:
    """Use the kernels "numpy" or "compiled" inside the context, whatever the size of the array."""
    return setting(_kernel, name)


def kernels_of_size(size: int) -> AbstractContextManager[None]:
    """Use the kernels of an array of `size` numbers inside the context, to read parts of that array."""
    return setting(_size, size)


def kernels_for(size: int, cost: int = 1) -> ModuleType:
    """Return the kernels for an array of `size` numbers; TEMPERANCE_KERNEL overrides the choice.

    `cost` is the cost of a pass, relative to a usual one.
    """
    chosen = _kernel.get() or os.environ.get("TEMPERANCE_KERNEL")
    if chosen is None:
        large = cost * (_size.get() or size) >= COMPILED_FROM
        chosen = "compiled" if large and find_spec("numba") else "numpy"
    if chosen != "compiled":
        return kernels
    from temperance.core import compiled  # which imports Numba

    return compiled
