"""What a repair would do on labelled rows: adapt the calibrator to their class frequencies, or fit it again.

If only the frequencies changed, each class has the predictions that it had (label shift). With q_y the share
of label y among new rows, and M_yk the mean of P_k among the rows of the fit with label y, the mean of P_k is

    sum_y q_y M_yk,   of the difference   var_k = sum_y q_y^2 (s_yk^2 / n_y + S_yk^2 / m_y),

s^2 and S^2 the variances of P_k among n_y new rows, and among m_y rows of the fit. P is that before the
calibrator was adapted. Adapting is advised if no difference is larger than chance explains, and if the one
test (`metrics.one_test`) does not reject the adapted probabilities of these rows. Neither is enough: a
classifier that has become less sharp can leave its means in place, and with few rows the test sees little.

The log losses of both repairs are told as well. They are of the rows just checked, since a history has no
rows: after a new fit by cross-validation. A method that cannot move class frequencies is replaced by one that
can, if they are off.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from temperance.calibrators import CALIBRATORS
from temperance.calibrators.label_shift import adapt_to_priors
from temperance.core.arrays import Floats, Vector
from temperance.core.blocks import sampled_rows
from temperance.errors import InputError
from temperance.formulas.model import Model, apply_to_rows
from temperance.metrics.calibration_tests import LEVEL
from temperance.metrics.one_test import one_test
from temperance.metrics.predictions import Predictions, random_folds
from temperance.monitoring.sums import LabelledSums, Limits

FOLDS = 5
BIASED = "bayes-bias"
"""The method that takes the place of one that cannot move class frequencies."""
MAX_ROWS, MIN_ROWS, MAX_LOGITS = 20_000, 1000, 1 << 19  # of the rows just checked; of more, a sample


@dataclass(frozen=True)
class Repairs:
    """What adapting and fitting again would do.

    Attributes
    ----------
    column : int or None
        The class whose mean probability differs most from what other class frequencies alone imply; None if
        the calibrator's file does not say what they imply.
    implied, mean : float or None
        What they imply, and the mean.
    is_implied : bool
        Whether the difference, of all classes, is no larger than chance explains.
    p_value : float or None
        Of the one test of the adapted probabilities; None if the calibrator cannot be adapted.
    rows : int
        Number of rows just checked, of which the losses are.
    loss, adapted, refitted : float or None
        The log loss as it is, after adapting, and after fitting to other rows of them; None if it cannot be.
    folds : int
        Of the cross-validation.
    method : str or None
        The method to fit instead of the calibrator's own, which cannot move class frequencies; None if it
        can, or if they are not off.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> logits, labels = task.logits[1000:], task.labels[1000:]
    >>> kept = (labels != 0) | (np.arange(2000) % 4 == 0)
    >>> found = monitoring.check(cal, logits[kept], labels[kept]).repairs
    >>> found.adapts, found.is_implied, round(found.p_value, 1)
    (True, True, 1.0)
    >>> found.adapted < found.loss
    True
    """

    column: int | None
    implied: float | None
    mean: float | None
    is_implied: bool
    p_value: float | None
    rows: int
    loss: float
    adapted: float | None
    refitted: float | None
    folds: int
    method: str | None

    @property
    def adapts(self) -> bool:
        """Whether adapting is enough."""
        return self.is_implied and self.p_value is not None and self.p_value >= LEVEL


def compare_repairs(
    model: Model,
    limits: Limits,
    window: LabelledSums,
    frequencies: Vector,
    rows: Predictions,
    values: Floats,
) -> Repairs:
    """Compare both repairs for a change that `window` shows, on the rows just checked and their logits."""
    implied = None if limits.of_positions else _implied(window, limits)
    at_most = min(MAX_ROWS, max(MIN_ROWS, MAX_LOGITS // values.shape[1]))
    few = sampled_rows(-(-len(values) // at_most), len(values))
    rows, values = rows.take(few), values[few]
    folds = min(FOLDS, len(values) if rows.groups is None else len(np.unique(rows.groups)))
    p_value = adapted = refitted = None
    outside = (window.means < limits.low) | (window.means > limits.high)
    is_biased = bool(outside[1:].any()) and model.formula.keeps_class and not limits.of_positions
    calibrator = CALIBRATORS[BIASED]() if is_biased else CALIBRATORS[model.key].build(**model.options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits to few rows, whose losses show it
        if not limits.of_positions:
            probs = apply_to_rows(adapt_to_priors(model, frequencies), "predict_proba", values)
            after = replace(rows, probs=probs)
            p_value, adapted = one_test(after).p_value, after.mean(after.nll)
        if folds > 1:
            refitted = _refitted(calibrator, rows, values, folds)
    loss, other = rows.mean(rows.nll), BIASED if is_biased else None
    column, expected, mean, is_implied = implied or (None, None, None, False)
    losses = loss, adapted, refitted
    return Repairs(column, expected, mean, is_implied, p_value, len(values), *losses, folds, other)


def _implied(window: LabelledSums, limits: Limits) -> tuple[int, float, float, bool] | None:
    """Return a class, what label shift implies for its mean probability, that mean, and if it can be chance.

    Of several classes, it is the one that differs most, except those that share a group.
    """
    baseline, groups = limits.baseline, limits.class_groups
    if baseline.label_means is None or baseline.label_variances is None or np.isnan(window.by_label).any():
        return None
    now = np.bincount(groups, window.labels)[:, None]
    share, at_fit = now / window.rows, np.zeros_like(now)
    if baseline.label_frequencies is not None:
        at_fit[:, 0] = np.bincount(groups, baseline.label_frequencies) * limits.fit_rows
    means, squares = window.by_label / np.maximum(now, 1e-300)
    variances = np.where(now > 1, np.maximum(squares - means**2, 0.0), baseline.label_variances)
    noise = share**2 * (variances / np.maximum(now, 1.0) + baseline.label_variances / np.maximum(at_fit, 1.0))
    errors = np.sqrt(np.maximum(noise.sum(axis=0), 1e-12))
    implied, mean = (share * baseline.label_means).sum(axis=0), window.by_label[0].sum(axis=0) / window.rows
    z = np.abs(mean - implied) / errors
    is_known = not (at_fit[now > 0] == 0).any()  # a class that the fit did not have
    questions = len(z) if len(z) > 2 else 1
    furthest = int(np.argmax(z[: len(z) - (len(groups) > len(z))]))
    column = int(np.flatnonzero(groups == furthest)[0])
    if questions == 1 and limits.judged:  # both say the same
        column = int(limits.columns[limits.judged])
        furthest = int(groups[column])
    is_implied = is_known and bool(z.max() <= norm.isf(LEVEL / 2 / questions))
    return column, float(implied[furthest]), float(mean[furthest]), is_implied


def _refitted(calibrator: Any, rows: Predictions, values: Floats, folds: int) -> float | None:
    """Return the log loss of new fits of the method, each to the rows of the other folds."""
    fold, probs = random_folds(len(values), folds, np.random.default_rng(0), rows.groups), rows.probs.copy()
    for held in range(folds):
        rest = fold != held
        try:
            weight = rows.weight[rest]
            calibrator.fit(values[rest], rows.labels[rest], weight, positions=rows.positions)
        except InputError:  # such as the labels of one class
            return None
        probs[~rest] = apply_to_rows(calibrator.model_, "predict_proba", values[~rest])
    after = replace(rows, probs=probs)
    return after.mean(after.nll)
