"""Reading N x K numbers in blocks of rows that fit the cache, over threads, never as a whole.

Blocks depend on the shape alone, and each of n threads takes every n-th block, so per-row results are
bit-identical for any number of threads. Sums over blocks are added in the order of the blocks.

NumPy gives up Python's lock in every operation on many numbers. Threads beyond the number of cores would make
it wait for that lock again and again, and evict each other's buffers from the cache: eight threads on two
cores predicted little more than one. So there are as many predictions at a time as there are cores; a thread
that waits for its slot costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cached_property
from threading import Lock, Semaphore, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Indices
from temperance.errors import InputError, excerpt

MAX_THREADS = 1024
# A slot can be lost to an interrupt, or taken for long: rather than wait longer, go on without one.
MAX_WAIT = 1.0

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


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


def number_of_threads() -> int:
    """Threads used for a pass: `threads(n)`, else TEMPERANCE_THREADS, else the cores this process can use."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    text = os.environ.get("TEMPERANCE_THREADS", "")
    if not text:
        return available_cores()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_THREADS)) else 0
    if not 1 <= number <= MAX_THREADS:
        raise InputError(
            "the environment variable TEMPERANCE_THREADS must be a whole number from 1 to "
            f"{MAX_THREADS}; found {excerpt(text)}. Correct it, or unset it to use all cores."
        )
    return number


def available_cores() -> int:
    """Return how many cores this process can use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


prediction_slots = Semaphore(available_cores())


def _free_all_slots() -> None:
    """Begin anew in a forked process: the threads that had slots are not in it."""
    global prediction_slots
    prediction_slots = Semaphore(available_cores())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all_slots)


@contextmanager
def prediction_slot() -> Iterator[None]:
    """Hold one of the slots inside the context; wait for a free one, but not for long."""
    slots = prediction_slots
    acquired = slots.acquire(timeout=MAX_WAIT)
    try:
        yield
    finally:
        if acquired:  # else the number of slots would grow
            slots.release()


def run_together(call: Callable[[int], Any], n: int) -> list[Any]:
    """Run call(0), ..., call(n - 1) at the same time, the first in this thread; return the results.

    An executor would do, but importing it takes long. In a service, that would be at the first prediction,
    and a process forked at that moment would wait for the import for ever.
    """
    if n == 1:
        return [call(0)]
    results: list[Any] = [None] * n
    failures: list[BaseException] = []

    def run(i: int) -> None:
        try:
            results[i] = call(i)
        except BaseException as failure:  # raised again by the thread that waits
            failures.append(failure)

    here, started = [0], []
    for i in range(1, n):
        thread = Thread(target=run, args=(i,))
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is shutting down
            here.append(i)
        else:
            started.append(thread)
    for i in here:
        run(i)
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]
    return results


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
        from threadpoolctl import ThreadpoolController  # for a fit: a prediction needs only NumPy

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


# Half of a common L2 cache: smaller blocks lose more to the interpreter than they gain from the cache.
BLOCK_BYTES = 1 << 20
# Up to this size, a fit keeps the gaps from pass to pass: a copy, which saves a third of each pass.
MAX_KEPT_BYTES = 1 << 23
# Below this many classes the scratch is class-major, so that the inner loops run along the rows.
FEW_CLASSES = 32

_HALF, _SINGLE, _DOUBLE = map(np.dtype, (np.float16, np.float32, np.float64))


class Scratch:
    """The (rows, classes) buffers of one thread: `d` for gaps to the top of a row, `e` for exponentials."""

    def __init__(self, n_rows: int, n_classes: int, dtype: np.dtype[Any]) -> None:
        self.d, self.e = new_buffer(n_rows, n_classes, dtype), new_buffer(n_rows, n_classes, dtype)
        self.read: Floats | None = None  # for rows of another type, or not contiguous


def new_buffer(n_rows: int, n_classes: int, dtype: np.dtype[Any]) -> Floats:
    """Return room for numbers of rows, in the order in which they are added up."""
    if n_classes < FEW_CLASSES:
        return np.empty((n_classes, n_rows), dtype).T
    return np.empty((n_rows, n_classes), dtype)


def is_class_major(values: Floats) -> bool:
    """Say whether the numbers of a class are adjacent, as in an image whose first axis has few classes."""
    return values.strides[0] == values.itemsize < values.strides[1]


def row_products(rows: Floats, weights: Floats) -> NDArray[np.float64]:
    """Return rows @ weights; unlike with BLAS, no row's result depends on the other rows, bit for bit."""
    # The order in which einsum adds depends on the layout of its arrays, so fix the layout too.
    layout = np.ascontiguousarray(several(rows)), np.ascontiguousarray(weights)
    products: NDArray[np.float64] = np.einsum("ij,j...->i...", *layout)[: rows.shape[0]]
    return products


def several(rows: Floats) -> Floats:
    """Return the rows, of which einsum adds each in the same order: a long row twice, if it is alone."""
    # It reads 8,192 numbers at a time from several rows, and all at once from a single one.
    is_alone = rows.shape[0] == 1 and rows.size > 8192
    return np.broadcast_to(rows, (2, rows.shape[1])) if is_alone else rows


def working_dtype(values: Floats) -> np.dtype[Any]:
    """Return float32 for half precision and float32, and float64 for all else."""
    return _SINGLE if values.dtype in (_SINGLE, _HALF) else _DOUBLE


def block_rows(n_classes: int, itemsize: int) -> int:
    """Return the number of rows in a block."""
    return max(1, BLOCK_BYTES // (n_classes * itemsize))


BlockWork = Callable[[Floats, int, int, Scratch], Any]
"""Takes the rows of a block in the working type, the numbers of its first row and of the one after its last,
and the buffers of its thread."""


def row_slices(n_rows: int, size: int) -> list[slice]:
    """Cut rows into slices of `size` rows; the last can be shorter."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def sampled_rows(step: int, stop: int, start: int = 0) -> Indices:
    """Return the rows from `start` to `stop` that belong to a sample: one of each `step` rows.

    Every n-th row would be a biased sample of rows that repeat, such as labels in turn. So of the rows i n,
    ..., i n + n - 1, the sample has row i n + h(i) mod n, where h(i) is number i of SplitMix64 (Steele, Lea
    and Flood, 2014) from 0: it is the same for any parts of the rows, and in their order.

    Examples
    --------
    >>> sampled_rows(10, 80), sampled_rows(10, 80, 40)
    (array([ 5, 10, 29, 34, 47, 50, 63, 70]), array([47, 50, 63, 70]))
    """
    stretch = np.arange(start // step, -(-stop // step), dtype=np.uint64)
    h = (stretch + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # modulo 2^64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        h = (h ^ (h >> np.uint64(shift))) * np.uint64(factor)
    rows = (stretch * np.uint64(step) + h % np.uint64(step)).astype(np.intp)
    return rows[(rows >= start) & (rows < stop)]


def read_blocks(
    values: Floats, size: int | None = None, lane: int = 0, lanes: int = 1
) -> Iterator[tuple[Floats, int, int, Scratch]]:
    """Yield every `lanes`-th block of `size` rows, with its start, stop and scratch.

    A block is an array of the working type, in order: a view of the values where that is possible.
    """
    n_rows, n_classes = values.shape
    dtype = working_dtype(values)
    size = size or block_rows(n_classes, dtype.itemsize)
    shape = min(size, n_rows), n_classes
    scratch = Scratch(*shape, dtype)
    for start in range(lane * size, n_rows, lanes * size):
        stop = min(start + size, n_rows)
        rows = values[start:stop]
        if rows.dtype == dtype:
            few_by_class = n_classes < FEW_CLASSES and is_class_major(rows)
            if rows.flags.c_contiguous or few_by_class:  # loops over rows can read them as they are
                yield rows, start, stop, scratch
                continue
        if scratch.read is None:
            scratch.read = np.empty(shape, dtype)
        target = scratch.read[: stop - start]
        with np.errstate(all="ignore"):  # numbers beyond the range of the working type
            np.copyto(target, rows, casting="unsafe")
        yield target, start, stop, scratch


def for_each_block(values: Floats, work: BlockWork, enlarged: int = 1) -> None:
    """Call `work(block, start, stop, scratch)` for every block; it writes its results row by row.

    It must not use the linear algebra library, whose threads would be beside ours. Blocks are `enlarged` by a
    factor for work that needs less of the cache than usual.
    """
    n_rows, n_classes = values.shape
    size = enlarged * block_rows(n_classes, working_dtype(values).itemsize)
    lanes = min(number_of_threads(), -(-n_rows // size)) if n_rows > size else 1

    def run(lane: int) -> None:
        with np.errstate(all="ignore"):  # the caller checks the results for NaN and infinities
            for block in read_blocks(values, size, lane, lanes):
                work(*block)

    run_together(run, lanes)


def sum_blocks(
    values: Floats, work: BlockWork, size: int, *, threads: bool = True
) -> list[NDArray[np.float64]]:
    """Sum the tuples of arrays that `work` returns for blocks of `size` rows, in the order of the blocks.

    Pass `threads=False` where the work holds Python's lock most of the time: threads would only wait.
    """
    n_blocks = -(-values.shape[0] // size)
    lanes = max(1, min(number_of_threads() if threads else 1, n_blocks))
    streams = [read_blocks(values, size, lane, lanes) for lane in range(lanes)]
    totals: list[NDArray[np.float64]] = []

    def next_sums(lane: int) -> Any:
        with np.errstate(all="ignore"):  # the caller checks the results for NaN and infinities
            block = next(streams[lane], None)
            return None if block is None else work(*block)

    with one_blas_thread:
        # As many results as threads are held at a time: a matrix of many parameters can be large.
        for _ in range(0, n_blocks, lanes):
            for sums in run_together(next_sums, lanes):
                if sums is None:
                    continue
                if not totals:
                    totals = list(sums)
                    continue
                for total, part in zip(totals, sums, strict=True):
                    total += part
    return totals
