"""Reading N x K numbers in blocks of rows that fit the cache, over threads, never as a whole.

Blocks depend on the shape alone, and each of n threads takes every n-th block, so per-row results are
bit-identical for any number of threads. Sums over blocks are added in the order of the blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats
from temperance.core.turns import available_cores, run_together, turns
from temperance.errors import InputError, excerpt

# Half of a common L2 cache: smaller blocks lose more to the interpreter than they gain from the cache.
BLOCK_BYTES = 1 << 20
# Up to this size, a fit keeps the gaps from pass to pass (a copy, which saves a third of each pass), and
# predictions keep their buffers for the next one.
MOST_KEPT_BYTES = 1 << 23
# Below this many classes the scratch is class-major, so that the inner loops run along the rows.
FEW_CLASSES = 32
MOST_THREADS = 1024
# A single row of a class-major buffer would be summed in another order than the same row among others.
FEWEST_ROWS = 2

KeptGaps = dict[int, Floats]

_HALF, _SINGLE, _DOUBLE = map(np.dtype, (np.float16, np.float32, np.float64))

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


def number_of_threads() -> int:
    """Threads used for a pass: `threads(n)`, else TEMPERANCE_THREADS, else the cores this process may use."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    set_by_user = os.environ.get("TEMPERANCE_THREADS", "")
    if set_by_user:
        return _threads_of(set_by_user)
    return available_cores()


def _threads_of(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_THREADS)) else 0
    if not 1 <= number <= MOST_THREADS:
        raise InputError(
            "the environment variable TEMPERANCE_THREADS must be a whole number from 1 to "
            f"{MOST_THREADS}; found {excerpt(text)}. Correct it, or unset it to use all cores."
        )
    return number


@contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a variable to a value inside the context."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def threads(n: int) -> AbstractContextManager[None]:
    """Use `n` threads inside the context."""
    return setting(_threads, n)


class BFloat16:
    """An (N, K) array of bfloat16 stored as bits, since NumPy has no such type."""

    def __init__(self, bits: NDArray[np.uint16]) -> None:
        self.bits = bits
        self.shape = bits.shape

    def __len__(self) -> int:
        return len(self.bits)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> BFloat16:
        return BFloat16(self.bits[rows])

    def read_into(self, out: NDArray[np.float32]) -> None:
        """Widen to float32, whose upper half is bfloat16."""
        wide = out.view(np.uint32)
        np.copyto(wide, self.bits)
        np.left_shift(wide, 16, out=wide)


class Scratch:
    """The (rows, classes) buffers of one thread, each allocated when first needed.

    `gaps` are those of the rows to their top, by the first row of the block, kept from pass to pass.
    """

    def __init__(
        self, n_rows: int, n_classes: int, dtype: np.dtype[Any], gaps: KeptGaps | None = None
    ) -> None:
        self._shape = (max(n_rows, FEWEST_ROWS), n_classes)
        self._dtype = dtype
        self._gaps, self._start = gaps, 0
        # No cached properties: their lock takes longer than a row with few classes.
        self._read: Floats | None = None
        self._d: Floats | None = None
        self._e: Floats | None = None

    def fits(self, n_rows: int, n_classes: int, dtype: np.dtype[Any]) -> bool:
        """Say whether these are the buffers of such a block."""
        return self._shape == (max(n_rows, FEWEST_ROWS), n_classes) and self._dtype == dtype

    @property
    def d(self) -> Floats:
        """The gaps to the top of each row."""
        if self._d is None:
            self._d = self._buffer()
        return self._d

    @property
    def e(self) -> Floats:
        """Their exponentials."""
        if self._e is None:
            self._e = self._buffer()
        return self._e

    def kept_gaps(self, compute: Callable[[Floats], None]) -> Floats:
        """Return the gaps of the present block, which `compute` writes at the first pass if they are kept."""
        if self._gaps is None:
            compute(self.d)
            return self.d
        if self._start not in self._gaps:
            self._gaps[self._start] = self._buffer()
            compute(self._gaps[self._start])
        return self._gaps[self._start]

    def _buffer(self) -> Floats:
        n_rows, n_classes = self._shape
        if n_classes < FEW_CLASSES:
            return np.zeros((n_classes, n_rows), self._dtype).T
        return np.empty(self._shape, self._dtype)

    @staticmethod
    def row_sums(buffer: Floats, n_rows: int) -> Floats:
        """Return the sums of the first rows of a buffer; the bits of a sum do not depend on the other rows.

        The linear algebra library would be slightly faster, but its bits depend on the other rows, and its
        threads belong to the whole process.
        """
        if buffer.shape[1] < FEW_CLASSES:  # class by class, for all rows at once
            sums: Floats = np.add.reduce(buffer[: max(n_rows, FEWEST_ROWS)], axis=1)[:n_rows]
            return sums
        return np.einsum("ij->i", buffer[:n_rows])

    def block(self, values: Floats | BFloat16, start: int, stop: int) -> Floats:
        """Rows start..stop as a contiguous array of the working type: a view where that is possible."""
        rows, self._start = values[start:stop], start
        if not isinstance(rows, BFloat16) and rows.dtype == self._dtype and rows.flags.c_contiguous:
            return rows
        if self._read is None:
            self._read = np.empty(self._shape, self._dtype)
        target = self._read[: stop - start]
        if isinstance(rows, BFloat16):
            rows.read_into(target)
        else:
            np.copyto(target, rows, casting="unsafe")
        return target


class _Kept:
    """The scratch of past predictions, one for each core: the system has to map and clear new memory.

    Any thread may take one. Each step is a single call to a list, which threads cannot divide.
    """

    def __init__(self) -> None:
        self.free: list[Scratch] = []

    def take(self, n_rows: int, n_classes: int, dtype: np.dtype[Any]) -> Scratch:
        """Return the scratch last given back, if it fits, else a new one."""
        try:
            kept = self.free.pop()
        except IndexError:
            return Scratch(n_rows, n_classes, dtype)
        return kept if kept.fits(n_rows, n_classes, dtype) else Scratch(n_rows, n_classes, dtype)

    def give_back(self, scratch: Scratch) -> None:
        """Keep a scratch, unless there is one for each core."""
        if len(self.free) < turns.number:
            self.free.append(scratch)


_kept = _Kept()


def row_products(rows: Floats, weights: Floats) -> NDArray[np.float64]:
    """Return rows @ weights; unlike in BLAS, the bits of a row do not depend on the other rows."""
    # The order in which einsum adds depends on the layout of its arrays, so fix the layout too.
    layout = np.ascontiguousarray(rows), np.ascontiguousarray(weights)
    products: NDArray[np.float64] = np.einsum("ij,j...->i...", *layout)
    return products


def working_dtype(values: Floats | BFloat16) -> np.dtype[Any]:
    """Return float32 for half precision and float32, and float64 for all else."""
    if isinstance(values, BFloat16) or values.dtype in (_SINGLE, _HALF):
        return _SINGLE
    return _DOUBLE


def block_rows(n_classes: int, itemsize: int) -> int:
    """Return the number of rows in a block."""
    return max(1, BLOCK_BYTES // (n_classes * itemsize))


BlockWork = Callable[[Floats, int, int, Scratch], Any]


def row_slices(n_rows: int, size: int) -> list[slice]:
    """Cut rows into slices of `size` rows; the last may be shorter."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def read_blocks(
    values: Floats | BFloat16,
    size: int | None = None,
    lane: int = 0,
    lanes: int = 1,
    gaps: KeptGaps | None = None,
) -> Iterator[tuple[Floats, int, int, Scratch]]:
    """Yield every `lanes`-th block in the working type, with its start, stop and scratch."""
    n_rows, n_classes = values.shape
    dtype = working_dtype(values)
    size = size or block_rows(n_classes, dtype.itemsize)
    # For many rows new memory takes no time, compared with reading them; a fit has other needs for memory.
    keeps = gaps is None and n_rows * n_classes * dtype.itemsize <= MOST_KEPT_BYTES
    shape = min(size, n_rows), n_classes
    scratch = _kept.take(*shape, dtype) if keeps else Scratch(*shape, dtype, gaps)
    for rows in row_slices(n_rows, size)[lane::lanes]:
        with np.errstate(all="ignore"):
            block = scratch.block(values, rows.start, rows.stop)
        yield block, rows.start, rows.stop, scratch
    if keeps:
        _kept.give_back(scratch)


def _lane(
    values: Floats | BFloat16,
    size: int,
    lane: int,
    lanes: int,
    work: BlockWork,
    gaps: KeptGaps | None = None,
) -> Iterator[Any]:
    for block in read_blocks(values, size, lane, lanes, gaps):
        # The caller checks the results for NaN and infinities.
        with np.errstate(all="ignore"):
            result = work(*block)
        yield result


class _OneBlasThread:
    """Limit the linear algebra library to one thread inside the context, whichever thread enters it.

    The limit applies to the whole process: the first pass to start sets it, the last to end removes it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limit: Any = None

    @cached_property
    def _controller(self) -> Any:
        from threadpoolctl import ThreadpoolController  # for a fit: a prediction needs NumPy alone

        return ThreadpoolController()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()


def room_for_gaps(values: Floats | BFloat16) -> KeptGaps | None:
    """Return where passes may keep the gaps of these values: nowhere, if they are many."""
    n_rows, n_classes = values.shape
    few = n_rows * n_classes * working_dtype(values).itemsize <= MOST_KEPT_BYTES
    return {} if few else None


def for_each_block(values: Floats | BFloat16, work: BlockWork, gaps: KeptGaps | None = None) -> None:
    """Call `work(block, start, stop, scratch)` for every block; it writes its results row by row.

    It must not use the linear algebra library, whose threads would be beside ours.
    """
    n_rows, n_classes = values.shape
    dtype = working_dtype(values)
    size = block_rows(n_classes, dtype.itemsize)
    if n_rows <= size:  # with as little Python as possible: a service asks for one row at a time
        of_fit = gaps is not None
        scratch = Scratch(n_rows, n_classes, dtype, gaps) if of_fit else _kept.take(n_rows, n_classes, dtype)
        with np.errstate(all="ignore"):
            work(scratch.block(values, 0, n_rows), 0, n_rows, scratch)
        if not of_fit:
            _kept.give_back(scratch)
        return
    lanes = min(number_of_threads(), -(-n_rows // size))
    run_together([partial(_run, _lane(values, size, lane, lanes, work, gaps)) for lane in range(lanes)])


def _run(stream: Iterator[Any]) -> None:
    for _ in stream:
        pass


def sum_blocks(
    values: Floats | BFloat16, work: BlockWork, size: int, *, threads: bool = True
) -> list[NDArray[np.float64]]:
    """Sum the tuples of arrays that `work` returns for blocks of `size` rows, in the order of the blocks.

    Pass `threads=False` where the work holds Python's lock most of the time: threads would only wait.
    """
    totals: list[NDArray[np.float64]] = []
    with one_blas_thread:
        for partial in _in_order(values, work, size, number_of_threads() if threads else 1):
            if not totals:
                totals = list(partial)
                continue
            for total, part in zip(totals, partial, strict=True):
                total += part
    return totals


def _in_order(values: Floats | BFloat16, work: BlockWork, size: int, most_lanes: int) -> Iterator[Any]:
    """Yield the results of all blocks, in order."""
    n_rows = values.shape[0]
    lanes = max(1, min(most_lanes, -(-n_rows // size)))
    streams = [_lane(values, size, lane, lanes, work) for lane in range(lanes)]
    if lanes == 1:
        yield from streams[0]
        return
    from concurrent.futures import ThreadPoolExecutor  # small inputs need none

    with ThreadPoolExecutor(lanes) as pool:
        for _ in range(0, n_rows, lanes * size):
            results = pool.map(lambda stream: next(stream, None), streams)
            yield from (result for result in results if result is not None)
