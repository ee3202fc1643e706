"""Split a loss into two parts: what recalibration can remove, and what it cannot.

    total        = mean loss of p
    refinement   = min over recalibrators g of the mean loss of g(p), with g fitted to other folds
    calibration  = total - refinement >= 0
    g in {identity, softmax(beta log p), softmax(beta log p + b)}

For the expected loss, and g over all functions, this is the classical decomposition of a proper loss
(Bröcker, 2009). The calibration part is then a divergence: for the negative log-likelihood the mean
Kullback-Leibler divergence from the true probabilities given p to p.

For the intervals of the two parts, a temperature with class biases is fitted to all rows. Let d_i be the
reduction of row i's loss, D the mean reduction, and s the standard error of D. The fit makes D too large. If
the classifier is calibrated, D is distributed, by Wilks' theorem, like a chi-squared variable with as many
degrees of freedom as parameters. If it is not, the variable is noncentral, and the truth is its
noncentrality:

    D / c  ~  chi-squared with nu degrees of freedom and noncentrality truth / c

For the negative log-likelihood close to the truth, c = 1 / 2N, and nu is the number of parameters. Further
away the rows determine c: the variance of the right side at truth + nu c = D is about 4 c D, which must equal
s^2. The amount that the fit adds, nu c, stays parameters / 2N. The Brier score has no such theorem, because
the fit does not minimise it. There, cross-validation gives the proportion: how much lower each loss is on the
rows of the fit than out of fold. The interval contains the truths that an equal-tailed test does not reject.
D can be so small by chance that the test rejects all of them. So the upper end is at least the end for a D of
nu c, the mean for a calibrated classifier.

Out of fold, the fit gains less than the best recalibrator on average. So the lower end is at most the lower
end for the mean gain out of fold, plus the cost of a fit, which is known only for the likelihood. Every
variance includes the pseudo-error of `metrics.intervals`: where no row is wrong, the fit trusts the
classifier without limit, and one error would undo its gain.

The fit takes from the refinement part what it adds to the calibration part. So the refinement part's upper
end is the upper end of the mean loss after the fit, moved up by that amount; its lower end is not moved. No
part ends above the whole.

References
----------
.. [1] Wilks (1938). The large-sample distribution of the likelihood ratio for testing composite hypotheses.
   doi:10.1214/aoms/1177732360
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Indices, Vector
from temperance.inputs.names import Names
from temperance.inputs.validation import check_choice, random_generator
from temperance.metrics.intervals import Estimate, PseudoRow, mean_interval, spread
from temperance.metrics.predictions import Predictions, check_integer, check_rows
from temperance.metrics.recalibration import (
    Recalibration,
    Recalibrators,
    effective_parameters,
    shrunk,
)

# Largest ratio of what a fit adds to the Brier score to what it adds to the negative log-likelihood: 2, by
# Pinsker's inequality.
_RATIOS = (0.05, 2.0)
_LOSSES = ("nll", "brier")
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Decomposition:
    """The parts of a mean loss: total = calibration + refinement.

    Attributes
    ----------
    total : float
        The mean loss.
    calibration : float
        What recalibration removes.
    refinement : float
        What remains.

    Examples
    --------
    >>> parts = decompose([[0.9, 0.1]] * 20, [0, 1] * 10)
    >>> bool(np.isclose(parts.total, parts.calibration + parts.refinement))
    True
    """

    total: float
    calibration: float
    refinement: float


def decompose(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    loss: str = "nll",
    folds: int = 5,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    groups: ArrayLike | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> Decomposition:
    """Split a proper loss into calibration and refinement, by cross-validated recalibration.

    The refinement part is the loss that remains after the best of three recalibrators: none, a temperature,
    or a temperature with one bias per class, fitted by maximum likelihood on the other folds. A richer family
    could remove more, so the calibration part is a lower bound, up to the noise of the rows. Berta et al.
    (2025) use the same idea to stop training where the refinement part is smallest.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    loss : {"nll", "brier"}
    folds : int
        Number of folds; with fewer rows than folds, each row is a fold.
    random_state : int, numpy Generator or None
        Assigns the rows to folds.
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows of the same fold.
    classes : sequence, optional
        Names of the columns, if labels are names.
    groups, dim, ignore_index
        As for `evaluate`. Rows of a group are in the same fold.

    Returns
    -------
    Decomposition
        With `total`, `calibration` (never below 0) and `refinement`.

    References
    ----------
    .. [1] Bröcker (2009). Reliability, sufficiency, and the decomposition of proper scores.
       doi:10.1002/qj.456
    .. [2] Berta et al. (2025). Rethinking early stopping: Refine, then calibrate. arXiv:2501.19195

    Examples
    --------
    >>> sure, labels = [[0.99, 0.01]] * 40 + [[0.01, 0.99]] * 40, ([0] * 30 + [1] * 10) * 2
    >>> parts = decompose(sure, labels[:40] + [1 - y for y in labels[40:]])
    >>> round(parts.total, 3), round(parts.calibration, 2), round(parts.refinement, 2)
    (1.159, 0.57, 0.59)
    """
    check_choice("loss", loss, _LOSSES)
    rows = check_rows(
        probs, labels, sample_weight, classes, groups=groups, dim=dim, ignore_index=ignore_index
    )
    generator = random_generator("random_state", random_state)
    fold = random_folds(len(rows.probs), folds, generator, rows.groups)
    recalibration = Recalibration(rows)
    losses = out_of_fold(rows, recalibration, recalibration.start, fold)[loss]
    total, refinement = rows.mean(losses[0]), min(map(rows.mean, losses))
    return Decomposition(total, total - refinement, refinement)


def random_folds(
    n_rows: int, folds: int, generator: np.random.Generator, groups: Indices | None = None
) -> Indices:
    """Return each row's fold, the same within a group; with fewer rows than folds, each row is a fold."""
    n_units = n_rows if groups is None else int(groups.max()) + 1
    fold: Indices = generator.permutation(n_units) % min(check_integer("folds", folds, 2), n_units)
    return fold if groups is None else fold[groups]


def out_of_fold(
    rows: Predictions,
    recalibration: Recalibration,
    start: Recalibrators,
    fold: Indices,
) -> dict[str, Vector]:
    """Return (3, N) losses by name: of the identity, a temperature, and a temperature with biases."""
    # Each fit starts from the last one, which saves passes. All are convex and run to convergence, so it does
    # not matter that an initial value has seen the held-out rows, if the others determine the fit.
    models, fits = start, []
    nll, brier = np.tile(rows.nll, (3, 1)), np.tile(rows.brier, (3, 1))
    # Rows of groups are worth fewer independent rows, including relative to the prior of the biases.
    independent = rows.weight / rows.units.effect
    for held in range(int(fold.max()) + 1):
        weight = np.where(fold == held, 0.0, independent)
        # Without rows to fit, as with a single row, the recalibrators stay the identity.
        models = recalibration.fit(weight, models) if weight.any() else recalibration.start
        fits.append(models)
    for which, of_folds in enumerate(zip(*fits, strict=True), start=1):
        nll[which], brier[which] = recalibration.losses(of_folds, fold)
    return {"nll": nll, "brier": brier}


def part_estimates(rows: Predictions, fold: Indices, confidence: float) -> tuple[dict[str, Estimate], Vector]:
    """Return the refinement and the calibration part of each loss, and each row's recalibrated confidence.

    The confidence comes from a temperature with biases, fitted to all rows and shrunk to remove its noise.
    """
    weight, wrong = rows.weight / rows.units.effect, rows.pseudo_error
    recalibration = Recalibration(rows)
    scaled, biased = recalibration.fit(weight, recalibration.start)
    precision = recalibration.precision(weight, biased)
    after = dict(zip(_LOSSES, recalibration.losses([biased], np.zeros(len(weight), np.intp)), strict=True))
    losses = out_of_fold(rows, recalibration, (scaled, biased), fold)
    held_out = {name: of_models[-1] for name, of_models in losses.items()}
    added = added_by_fit(after, held_out, weight, effective_parameters(precision), rows.units.effect)
    # The losses at the pseudo-label and at the label differ only by the probability of the label.
    n_folds = int(fold.max()) + 1
    at_error = np.maximum(recalibration.recalibrated(biased, wrong.labels), _TINY)
    after_error = -np.log(at_error), after["brier"] + 2 * (np.exp(-after["nll"]) - at_error)
    found = {}
    for name, if_wrong, after_if_wrong in zip(_LOSSES, (wrong.nll, wrong.brier), after_error, strict=True):
        before, pseudo_gain = losses[name][0], (if_wrong - after_if_wrong, wrong.weight)
        total, refinement = rows.mean(before), min(map(rows.mean, losses[name]))
        interval = partial(mean_interval, weight=weight, confidence=confidence, groups=rows.groups)
        whole = interval(before, pseudo=(if_wrong, wrong.weight))
        rest = interval(after[name], pseudo=(after_if_wrong, wrong.weight))
        high = np.minimum(rest.high + added[name], whole.high)
        found[f"{name}_refinement"] = Estimate(
            refinement, float(np.minimum(rest.low, refinement)), float(np.maximum(high, refinement))
        )
        gains, value = (before - after[name], pseudo_gain), total - refinement
        part = calibration_interval(value, *gains, weight, added[name], confidence, rows.groups)
        gain = interval(before - held_out[name], low=-np.inf, pseudo=pseudo_gain)
        cost = added["nll"] * n_folds / max(n_folds - 1, 1) if name == "nll" else 0.0
        found[f"{name}_calibration"] = Estimate(
            value,
            float(np.minimum(part.low, np.maximum(gain.low + cost, 0))),
            float(np.maximum(np.minimum(part.high, whole.high), value)),
        )
    return found, recalibration.recalibrated(shrunk(biased, precision), rows.top)


def calibration_interval(
    value: float,
    gains: Vector,
    pseudo: PseudoRow | None,
    weight: Vector,
    added: float,
    confidence: float,
    groups: Indices | None = None,
) -> Estimate:
    """Return the interval of the calibration part, widened to contain its value.

    `gains` are the reductions of each row's loss by the fit, `pseudo` has the gains of a pseudo-error, and
    `added` is the amount that the fit adds to the mean gain.
    """
    if len(weight) == 1:
        return Estimate(value, np.nan, np.nan)
    share = weight / weight.sum()
    gain = float(share @ gains)
    if not np.isfinite(gain):
        return Estimate(value, 0.0, np.inf)
    of_error = None if pseudo is None else (pseudo[0] - gain, pseudo[1])
    error, *_ = spread(gains - gain, share, of_error, groups)
    unit = error**2 / (4 * (gain if gain > 0 else added))
    low, high = noncentral_interval(gain, added, unit, confidence)
    return Estimate(value, min(low, value), max(high, value))


def added_by_fit(
    after: dict[str, Vector],
    out_of_fold: dict[str, Vector],
    weight: Vector,
    parameters: float,
    effect: float = 1.0,
) -> dict[str, float]:
    """Return the amount that a fit of some parameters adds to the mean gain in each loss.

    `out_of_fold` has the losses of the same recalibrator, fitted without the row's fold. `effect` is the
    design effect of groups.
    """
    share = weight / weight.sum()
    of_nll = parameters * float(share @ share) * effect / 2
    nll, brier = (float(share @ (out_of_fold[name] - after[name])) for name in ("nll", "brier"))
    low, high = _RATIOS
    ratio = min(max(brier / nll, low), high) if 0 < nll < np.inf else low
    return {"nll": of_nll, "brier": of_nll * ratio}


def noncentral_interval(
    observed: float, optimism: float, unit: float, confidence: float
) -> tuple[float, float]:
    """Return the equal-tailed interval of the truth if observed / unit is noncentral chi-squared."""
    from scipy.special import chndtr

    if unit <= 0:
        return max(observed, 0.0), max(observed, 0.0)
    freedom = optimism / unit

    def noncentrality(statistic: float, tail: float) -> float:
        """Return the noncentrality at which the statistic has this lower tail; the tail falls as it grows."""
        low, high = 0.0, 2 * statistic + 100.0
        for _ in range(40):  # halvings
            middle = (low + high) / 2
            low, high = (middle, high) if chndtr(statistic, freedom, middle) > tail else (low, middle)
        return low

    low = noncentrality(max(observed, 0.0) / unit, (1 + confidence) / 2)
    return unit * low, unit * noncentrality(max(observed, optimism) / unit, (1 - confidence) / 2)
