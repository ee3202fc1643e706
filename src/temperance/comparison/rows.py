"""Logits with labels, opened and checked once; fits to some of them, and the probabilities of the others.

Test rows must not be rows of the fit, in any precision: logits are compared at the lower precision of the two
sets, and at most in float32. A network hardly ever gives two inputs the same logits, even so rounded. A
forest of few trees often does. So rows that repeat within a set are not counted as shared, and if many
repeat, a warning needs as many shared rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import Method
from temperance.calibrators.estimator import Calibrator
from temperance.calibrators.external_methods import fit
from temperance.core.arrays import AnyArray, Matrix, Vector
from temperance.core.blocks import row_slices
from temperance.core.logit_rows import LogitRows
from temperance.errors import InputError, InputWarning, warn_user
from temperance.inputs.containers import LabelledRows
from temperance.inputs.copies import row_prints

BLOCK_LOGITS = 1 << 18  # that a calibrator sees at a time
MAX_BITS = 24  # of a logit that are compared: as many as float32 has, the precision of most networks
MAX_SHARED = 0.1  # share of test rows that can be among the validation rows without a warning


def predict(calibrator: Any, logits: AnyArray) -> Matrix:
    """Return probabilities in float64: in float32, the true class of a confident error can underflow to 0.

    Our calibrators see some rows at a time, so that no copy of all logits is made. Others see all at once,
    since they might need them.
    """
    is_ours = calibrator is None or isinstance(calibrator, Calibrator)
    n_rows, n_classes = logits.shape
    out = np.empty(logits.shape)
    for part in row_slices(n_rows, max(1, BLOCK_LOGITS // n_classes) if is_ours else n_rows):
        wide = np.asarray(logits[part], np.float64)
        known = {"from_probs": False} if is_ours else {}  # they were checked, or made from probabilities
        probs = (
            LogitRows(wide).softmax(1.0) if calibrator is None else calibrator.predict_proba(wide, **known)
        )
        if np.shape(probs) != wide.shape:  # an assignment would repeat one row or column without a word
            raise InputError(
                f"predict_proba must return an array of the shape of the logits, {wide.shape}; found shape "
                f"{np.shape(probs)}."
            )
        out[part] = probs
    return out


def fit_method(method: Method, rows: LabelledRows) -> Any:
    """Fit a method to rows."""
    logits, groups = rows.logits, rows.groups
    if not rows.positions and not np.ptp(rows.labels):
        return None  # a fit refuses labels of one class: these rows leave the predictions as they are
    if groups is not None and np.ptp(groups) == 0:
        groups = None  # one group is all there is: nothing tells how much its rows resemble each other
    columns: dict[str, Any] = {"positions": rows.positions, "positive": rows.positive}
    return fit(method(), logits, rows.labels, rows.weights, groups=groups, **columns)


def label_nll(probs: Vector, labels: NDArray[np.intp]) -> Vector:
    """Return the negative log-probability of each row's label.

    A probability that underflows in float64 counts as the smallest float64 above 0.
    """
    at_label = probs[np.arange(len(probs)), labels]
    return -np.log(np.maximum(at_label, np.finfo(np.float64).tiny))


def check_test_rows_are_new(val: AnyArray, test: AnyArray) -> None:
    """Raise if both sets are the same; warn if many test rows are validation rows."""
    bits = min(MAX_BITS, _significant_bits(val), _significant_bits(test))
    val_prints, test_prints = row_prints(val, bits), row_prints(test, bits)
    if np.array_equal(val_prints, test_prints):
        raise InputError(
            f"test rows must differ from the validation rows; found the same {len(test)} rows in both. Pass "
            "other test rows, or none to use cross-validation."
        )
    val_once, test_once = _without_repeated(val_prints), _without_repeated(test_prints)
    shared = np.intersect1d(val_once, test_once, assume_unique=True).size
    repeated = max(1 - len(val_once) / len(val), 1 - len(test_once) / len(test))
    if shared / len(test) > max(MAX_SHARED, repeated):
        warn_user(
            InputWarning(
                f"test rows must differ from the validation rows; found {shared} of {len(test)} test rows "
                "among the validation rows.",
                "Scores on these rows are optimistic. Leave them out of one of the sets.",
            )
        )


def _significant_bits(values: AnyArray) -> int:
    return np.finfo(values.dtype).nmant + 1 if values.dtype.kind == "f" else MAX_BITS


def _without_repeated(prints: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the fingerprints that only one row has."""
    values, counts = np.unique(prints, return_counts=True)
    return values[counts == 1]
