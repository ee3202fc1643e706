"""Turn a file of logits into probabilities, block by block, bit-identical to computing all at once.

The core reads an array in blocks whose number of rows depends only on the number of classes. So a part of the
file that consists of whole blocks, read by the same kernels, gives bit-identical results to the whole file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import Calibrator
from temperance.core.blocks import block_rows
from temperance.core.row_block import kernels_of_size, map_rows
from temperance.data import RowFile
from temperance.data.lazy_array import regrouped
from temperance.errors import rows_from
from temperance.files import scratch_array
from temperance.inputs.containers import open_logits
from temperance.inputs.probabilities import check_probabilities
from temperance.inputs.validation import check_are_logits, check_peaks

PART_BYTES = 1 << 25  # bytes of one part in float64


def probability_dtype(file: RowFile) -> np.dtype[Any]:
    """Return the type of the probabilities: the core's working type for these logits."""
    return np.dtype(np.float32 if file.dtype in (np.float16, np.float32) else np.float64)


def probabilities_of_file(
    calibrator: Calibrator | None, file: RowFile, progress: Callable[[float], None] | None = None
) -> NDArray[Any]:
    """Return all probabilities to score: from the file, if it has some and there is no calibrator.

    Others are computed in float64, as in a comparison, so that both give the same numbers. Arrays that do not
    fit into memory are kept in a temporary file.
    """
    if calibrator is None and file.kind == "probs":
        with file.stored.naming_file():
            return check_probabilities(file.array(), renormalise=False)
    probs, done = scratch_array((file.shape[0], file.n_classes), np.float64), 0
    for part in predict_file(calibrator, file, widen=True):
        probs[done : done + len(part)] = part
        done += len(part)
        if progress is not None:
            progress(done / len(probs))
    return probs


def in_shape_of_file(file: RowFile, parts: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield rows of an array with more than two axes in its own shape: by whole images or texts."""
    inner, k = file.leading[1:], file.n_classes
    size = math.prod(inner)
    for rows in regrouped(parts, size * max(1, PART_BYTES // (8 * k * size))):
        yield np.moveaxis(rows.reshape(-1, *inner, k), -1, file.dim or -1)


def predict_file(
    calibrator: Calibrator | None, file: RowFile, *, widen: bool = False
) -> Iterator[NDArray[Any]]:
    """Yield the probabilities of the rows in order: calibrated, or the softmax of the logits.

    They are computed in the type that the core uses for these logits, or in float64.
    """
    dtype = np.dtype(np.float64) if widen else probability_dtype(file)
    rows = block_rows(file.n_classes, dtype.itemsize)
    rows *= max(1, PART_BYTES // (8 * rows * file.n_classes))
    start, said = 0, file.from_probs
    for part in file.logit_blocks(rows):
        with file.stored.naming_file(), rows_from(start), kernels_of_size(file.shape[0] * file.n_classes):
            logits = part.astype(dtype) if widen else part
            if calibrator is not None:
                probs = np.asarray(calibrator.predict_proba(logits, from_probs=said))
            else:
                if start == 0 and said is None:
                    check_are_logits(open_logits(part).values)
                values = open_logits(logits).values
                probs, peak = map_rows(values, lambda rows: rows.divide(1.0))
                check_peaks(values, peak)
        yield probs
        start += len(part)
