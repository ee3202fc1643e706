"""Logits with labels, opened and checked once, and the probabilities that a calibrator gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import has_fit_parameter

from temperance.calibrators import Method
from temperance.calibrators.estimator import Calibrator
from temperance.calibrators.external_methods import fit
from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import BFloat16, row_slices
from temperance.core.logit_rows import LogitRows
from temperance.errors import InputError
from temperance.inputs.containers import open_labelled
from temperance.inputs.validation import check_labelled_rows, check_number, random_generator

_AT_ONCE = 1 << 18  # logits that a calibrator sees at a time


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The logits of N rows, by reference, the columns of their labels, and weights if there are any.

    Attributes
    ----------
    logits : array of shape (N, K)
        By reference, not copied.
    labels : array of shape (N,)
        Column of the right class of each row.
    weights : array of shape (N,), or None
        Weights of the rows.

    Examples
    --------
    >>> rows = LabelledRows.open([[2.0, 0.0], [0.0, 1.0]], ["no", "yes"], classes=["no", "yes"])
    >>> len(rows), rows.labels.tolist(), rows.has_masks()
    (2, [0, 1], False)
    """

    logits: NDArray[Any] | BFloat16
    labels: NDArray[np.intp]
    weights: Vector | None

    @classmethod
    def open(
        cls, logits: Any, labels: ArrayLike, sample_weight: ArrayLike | None = None, *, classes: Any = None
    ) -> LabelledRows:
        """Open any container that a calibrator accepts."""
        opened = open_labelled(logits, labels, sample_weight, classes=classes)
        return cls(opened.values, opened.columns, opened.weights)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.intp]) -> LabelledRows:
        """Return a copy of some rows."""
        weights = None if self.weights is None else self.weights[rows]
        return LabelledRows(self.logits[rows], self.labels[rows], weights)

    def has_masks(self) -> bool:
        """Say whether any logit is -inf; raise if one is not allowed at all."""
        rows = LogitRows(self.logits, self.labels)
        check_labelled_rows(rows)
        return not bool(np.isfinite(rows.mean()).all())


def deal_folds(n_rows: int, folds: int, random_state: int) -> NDArray[np.intp]:
    """Assign the rows to folds at random."""
    wanted = f"from 2 to the number of rows, {n_rows}"
    check_number("folds", folds, wanted, lambda folds: 2 <= folds <= n_rows, whole=True)
    return random_generator("random_state", random_state).permutation(n_rows) % folds


def predict(calibrator: Any, logits: NDArray[Any] | BFloat16, out: Matrix | None = None) -> Matrix:
    """Return probabilities in float64: in float32, those of a confident classifier's errors may be 0.

    Our calibrators see some rows at a time, so that no copy of all logits is made. Others see all at once:
    they may need it.
    """
    is_ours = calibrator is None or isinstance(calibrator, Calibrator)
    n_rows, n_classes = logits.shape
    out = np.empty(logits.shape) if out is None else out
    for part in row_slices(n_rows, max(1, _AT_ONCE // n_classes) if is_ours else n_rows):
        wide = np.asarray(_widened(logits[part]), np.float64)
        probs = LogitRows(wide).softmax(1.0) if calibrator is None else calibrator.predict_proba(wide)
        if np.shape(probs) != wide.shape:  # an assignment would repeat one row or column without a word
            raise InputError(
                f"predict_proba must return an array of the shape of the logits, {wide.shape}; found shape "
                f"{np.shape(probs)}."
            )
        out[part] = probs
    return out


def _widened(logits: NDArray[Any] | BFloat16) -> NDArray[Any]:
    return logits.widened() if isinstance(logits, BFloat16) else logits


def fit_method(method: Method, rows: LabelledRows, held: NDArray[np.bool_] | None = None) -> Any:
    """Fit a method to all rows that are not held out."""
    calibrator = method()
    logits = rows.logits if method.is_ours else _widened(rows.logits)
    if held is None:
        return fit(calibrator, logits, rows.labels, rows.weights)
    if has_fit_parameter(calibrator, "sample_weight"):
        # The fit ignores rows of weight 0, so no row has to be copied.
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        return fit(calibrator, logits, rows.labels, np.where(held, 0.0, weights))
    kept = np.flatnonzero(~held)
    return fit(calibrator, logits[kept], rows.labels[kept])


def predict_folds(method: Method | None, rows: LabelledRows, fold: NDArray[np.intp], out: Matrix) -> Matrix:
    """Return the probabilities of each row by a fit to the other folds."""
    if method is None:
        return predict(None, rows.logits, out)
    for held in range(fold.max() + 1):
        chosen = np.flatnonzero(fold == held)
        out[chosen] = predict(fit_method(method, rows, fold == held), rows.logits[chosen])
    return out


def label_nll(probs: Vector, labels: NDArray[np.intp]) -> Vector:
    """Return the negative log-probability of each row's label.

    A probability that underflows in float64 counts as the smallest float64 above 0.
    """
    at_label = probs[np.arange(len(probs)), labels]
    return -np.log(np.maximum(at_label, np.finfo(np.float64).tiny))
