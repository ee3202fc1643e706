"""Would more labels help? Each method fitted to growing parts of the validation set.

A draw is a random order of the validation rows. Fits use its first n rows, so the parts are nested. They are
evaluated on the test set or, without one, on the last fifth of each draw, which no fit of the draw uses; of
rows that belong together, on a fifth of the groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from temperance.calibrators import UNCALIBRATED, Method
from temperance.comparison.rows import fit_method, label_nll, predict
from temperance.core.arrays import Vector
from temperance.inputs.containers import LabelledRows
from temperance.inputs.validation import check_number
from temperance.progress import Progress, reporting

if TYPE_CHECKING:
    from temperance.comparison.result import Comparison

SIZES = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
HELD_SHARE = 0.2
MAX_TEST_ROWS = 5000  # with so many rows, the noise of the draws dominates
MAX_TEST_LOGITS = 2_000_000  # with many classes there are fewer test rows
MAX_CLASSES = 200  # beyond it, methods with one weight per class take minutes, and need more rows anyway


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The NLL of each method by the number of calibration rows.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of calibration rows.
    nll : dict from name to array of shape (sizes, draws)
        Mean NLL of the test rows.
    uncalibrated : float
        NLL of the uncalibrated classifier.
    n_judged : int
        Number of test rows.

    Examples
    --------
    >>> import numpy as np
    >>> curve = LearningCurve((20, 50), {"ts": np.array([[0.5, 0.7], [0.4, 0.4]])}, 0.9, 1000)
    >>> curve.mean("ts").round(2).tolist(), curve.error("ts").round(2).tolist()
    ([0.6, 0.4], [0.1, 0.0])
    """

    sizes: tuple[int, ...]
    nll: dict[str, Vector]
    uncalibrated: float
    n_judged: int

    def mean(self, method: str) -> Vector:
        """Return the mean over draws at each size."""
        return self.nll[method].mean(axis=1)

    def error(self, method: str) -> Vector:
        """Return the standard error of the mean over draws."""
        return self.nll[method].std(axis=1, ddof=1) / np.sqrt(self.nll[method].shape[1])

    def last_fall(self, method: str) -> tuple[float, float]:
        """Return how much the NLL fell from the last size but one to the last, and the standard error."""
        fell = self.nll[method][-2] - self.nll[method][-1]  # a draw's parts are nested
        return float(fell.mean()), float(fell.std(ddof=1) / np.sqrt(len(fell)))


def learning_curve(
    comparison: Comparison,
    *,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    draws: int = 3,
    random_state: int = 0,
    progress: Progress = True,
) -> LearningCurve:
    """Fit the methods of a comparison again, to growing parts of its validation rows.

    The comparison already holds the fit to all rows.

    Parameters
    ----------
    comparison : Comparison
        The comparison whose methods are fitted.
    methods : sequence of str, optional
        By default all; beyond 200 classes without those that have one weight or bias per class.
    sizes : sequence of int, optional
        Numbers of rows; by default 20, 50, 100, 200, ... as far as there are rows.
    draws : int
        Subsamples of each size.
    random_state : int
        Random seed.
    progress : bool, or function of (what, fraction done)
        As for `compare`.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> curve = learning_curve(comparison, sizes=[20, 100], draws=2)
    >>> curve.sizes, curve.nll["ts"].shape
    ((20, 100), (2, 2))
    """
    check_number("draws", draws, ">= 2, for their spread", lambda n: n >= 2, whole=True)
    check_number("random_state", random_state, ">= 0", lambda seed: seed >= 0, whole=True)
    rows = comparison.fitted
    chosen = _quick_methods(comparison) if methods is None else list(methods)
    split = comparison.judged is rows
    available = len(rows) - (_most_held(rows) if split else 0)
    steps = tuple(sizes if sizes is not None else _sizes_up_to(available))
    for size in steps:
        wanted = f"from 1 to {available}, the rows that are not held out"
        check_number("sizes", size, wanted, lambda n: 1 <= n <= available, whole=True)
    nll = {key: np.empty((len(steps), draws)) for key in chosen}
    before = np.empty(draws)
    with reporting("Learning curve", progress) as report:
        for draw in range(draws):
            rng = np.random.default_rng([random_state, draw])
            order = rng.permutation(len(rows))
            held = order[available:]
            if split and rows.units is not None:
                n_groups = int(rows.units.max()) + 1
                last = rng.permutation(n_groups)[-_n_held(n_groups) :]
                of_last = np.isin(rows.units[order], last)
                order, held = order[~of_last], order[of_last]
            able = np.sort(held) if split else np.arange(len(comparison.judged))
            most = min(len(able), MAX_TEST_ROWS, max(1, MAX_TEST_LOGITS // comparison.judged.logits.shape[1]))
            index = able[np.linspace(0, len(able) - 1, most).astype(np.intp)]
            test = comparison.judged.take(index)
            row_nll = label_nll(predict(None, test.logits), test.labels)
            before[draw] = np.average(row_nll, weights=test.weights)
            for at, size in enumerate(steps):
                part = None if size == len(rows) else rows.take(np.sort(order[:size]))
                for key in chosen:
                    if part is None:
                        row_nll = comparison.results[key].row_nll[index]
                    else:
                        report(f"{key}, {size} rows", (draw * len(steps) + at) / (draws * len(steps)))
                        row_nll = _row_nll(comparison.methods[key], part, test)
                    nll[key][at, draw] = np.average(row_nll, weights=test.weights)
    return LearningCurve(steps, nll, float(before.mean()), len(test))


def _n_held(n_units: int) -> int:
    """Return how many rows or groups are held out."""
    return max(1, int(HELD_SHARE * n_units))


def _most_held(rows: LabelledRows) -> int:
    """Return how many rows are held out at most, whichever groups they belong to."""
    if rows.units is None:
        return _n_held(len(rows))
    sizes = np.sort(np.bincount(rows.units))
    return int(sizes[-_n_held(len(sizes)) :].sum())


def _sizes_up_to(available: int) -> tuple[int, ...]:
    """Return the default sizes, and the number of all rows unless it is close to the last of them."""
    usual = [size for size in SIZES if size <= available]
    if available <= 1.25 * (usual[-1] if usual else 0) or available > SIZES[-1]:
        return tuple(usual)
    return (*usual, available)


def _quick_methods(comparison: Comparison) -> list[str]:
    """Return the methods that are fast enough for a few dozen fits."""
    n_classes = comparison.fitted.logits.shape[1]
    return [
        key
        for key, result in comparison.results.items()
        if key != UNCALIBRATED
        and (
            n_classes <= MAX_CLASSES
            or (result.n_parameters < n_classes and comparison.methods[key].keeps_class)
        )
    ]


def _row_nll(method: Method, part: LabelledRows, test: LabelledRows) -> Vector:
    with warnings.catch_warnings():
        # A method warns about too few rows in each fit; here the curve shows it.
        warnings.simplefilter("ignore")
        calibrator = fit_method(method, part)
    return label_nll(predict(calibrator, test.logits), test.labels)
