"""Would more labels help? Each method fitted to growing parts of the validation set.

A draw is a random order of the validation rows. Fits use its first n rows, so the parts are nested. They are
evaluated on the test set or, without one, on the last fifth of each draw, which no fit of the draw uses.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import UNCALIBRATED, Method
from temperance.comparison.result import Comparison
from temperance.comparison.rows import LabelledRows, fit_method, label_nll, predict
from temperance.core.arrays import Vector
from temperance.inputs.validation import check_number
from temperance.progress import Progress, Report, reporting

_SIZES = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
_HELD_SHARE = 0.2
_MOST_JUDGED = 5000  # with so many rows, the noise of the draws dominates
_MOST_NUMBERS = 2_000_000  # numbers in the test rows: with many classes there are fewer rows
_MOST_CLASSES = 200  # beyond it, methods with a weight for each class take minutes, and need more rows anyway


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

    def ranking(self, size: int) -> list[str]:
        """Return the methods sorted by mean NLL, lowest first, at one of the sizes."""
        at = self.sizes.index(size)
        return sorted(self.nll, key=lambda method: float(self.nll[method][at].mean()))


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

    The fit to all rows is that of the comparison.

    Parameters
    ----------
    comparison : Comparison
        The comparison whose methods are fitted.
    methods : sequence of str, optional
        By default all; beyond 200 classes without those that have a weight or a bias for each class.
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
    >>> curve.sizes, curve.ranking(20)
    ((20, 100), ['ts'])
    """
    with reporting("Learning curve", progress) as report:
        return _curve(comparison, methods, sizes, draws, random_state, report)


def _curve(
    comparison: Comparison,
    methods: Sequence[str] | None,
    sizes: Sequence[int] | None,
    draws: int,
    random_state: int,
    report: Report,
) -> LearningCurve:
    check_number("draws", draws, ">= 2, for their spread", lambda n: n >= 2, whole=True)
    check_number("random_state", random_state, ">= 0", lambda seed: seed >= 0, whole=True)
    rows = comparison.fitted
    chosen = _quick_methods(comparison) if methods is None else list(methods)
    split = comparison.judged is rows
    available = len(rows) - (max(1, int(_HELD_SHARE * len(rows))) if split else 0)
    steps = tuple(sizes if sizes is not None else _sizes_up_to(available))
    for size in steps:
        wanted = f"from 1 to {available}, the rows that are not held out"
        check_number("sizes", size, wanted, lambda n: 1 <= n <= available, whole=True)
    nll = {key: np.empty((len(steps), draws)) for key in chosen}
    before = np.empty(draws)
    for draw in range(draws):
        order = np.random.default_rng([random_state, draw]).permutation(len(rows))
        index = _judged_rows(comparison, order[available:] if split else None)
        judged = comparison.judged.take(index)
        before[draw] = _mean_nll(None, judged)
        for at, size in enumerate(steps):
            if size == len(rows):
                for key in chosen:
                    row_nll = comparison.results[key].row_nll[index]
                    nll[key][at, draw] = np.average(row_nll, weights=judged.weights)
                continue
            part = rows.take(np.sort(order[:size]))
            for key in chosen:
                report(f"{key}, {size} rows", (draw * len(steps) + at) / (draws * len(steps)))
                nll[key][at, draw] = _fit_and_judge(comparison.methods[key], part, judged)
    return LearningCurve(steps, nll, float(before.mean()), len(judged))


def _sizes_up_to(available: int) -> tuple[int, ...]:
    """Return the default sizes, and the number of all rows unless it is close to the last of them."""
    usual = [size for size in _SIZES if size <= available]
    if available <= 1.25 * (usual[-1] if usual else 0) or available > _SIZES[-1]:
        return tuple(usual)
    return (*usual, available)


def _quick_methods(comparison: Comparison) -> list[str]:
    """Return the methods that are fast enough for a few dozen fits."""
    n_classes = comparison.fitted.logits.shape[1]

    def is_quick(key: str) -> bool:
        few = comparison.results[key].n_parameters < n_classes
        return n_classes <= _MOST_CLASSES or (few and comparison.methods[key].keeps_class)

    return [key for key in comparison.results if key != UNCALIBRATED and is_quick(key)]


def _judged_rows(comparison: Comparison, held: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Return some of the test rows, evenly spaced."""
    able = np.arange(len(comparison.judged)) if held is None else np.sort(held)
    most = min(_MOST_JUDGED, max(1, _MOST_NUMBERS // comparison.judged.logits.shape[1]))
    return able[np.linspace(0, len(able) - 1, min(len(able), most)).astype(np.intp)]


def _fit_and_judge(method: Method, part: LabelledRows, judged: LabelledRows) -> float:
    with warnings.catch_warnings():
        # A method warns about too few rows in each fit; here the curve shows it.
        warnings.simplefilter("ignore")
        calibrator = fit_method(method, part)
    return _mean_nll(calibrator, judged)


def _mean_nll(calibrator: Any, judged: LabelledRows) -> float:
    nll = label_nll(predict(calibrator, judged.logits), judged.labels)
    return float(np.average(nll, weights=judged.weights))
