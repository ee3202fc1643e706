"""HTS with few rows finds the lowest optimum, as a dense search that shares no code with it does.

Slopes up to 10 are searched. A steeper predictor is a step between two rows: all others have T at a limit, so
that the loss does not depend on the slope. Some samples of 10 to 50 rows have a lower loss there, by up to
0.03, which no local method finds.
"""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from temperance import EntropyTemperatureScaling
from temperance.calibrators import hnlts
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData
from temperance.data import simulate

STEEPEST = 10.0


class Search:
    """The mean negative log-likelihood of (b, w), computed from the definition."""

    def __init__(self, logits, labels, limits):
        self.z, self.rows, self.labels, self.limits = logits, np.arange(len(labels)), labels, limits
        log_p = logits - logsumexp(logits, axis=1, keepdims=True)
        entropy = -(np.exp(log_p) * log_p).sum(axis=1)
        self.h = np.log(np.maximum(entropy / np.log(logits.shape[1]), 1e-300))

    def losses(self, thetas):
        """Return the loss of each of some (b, w)."""
        a = thetas[:, :1] + thetas[:, 1:] * self.h
        scaled = self.z / np.clip(np.logaddexp(0, a), *self.limits)[..., None]
        return (logsumexp(scaled, axis=2) - scaled[:, self.rows, self.labels]).mean(axis=1)

    def loss(self, theta):
        return self.losses(np.array([theta]))[0]

    def lowest(self, starts=5):
        """Return the lowest loss: a dense grid, and a simplex from its best points."""
        slopes = np.concatenate([-np.geomspace(STEEPEST, 1e-2, 25), [0], np.geomspace(1e-2, STEEPEST, 25)])
        grid = [
            (a - w * np.quantile(self.h, q), w)
            for q in (0.1, 0.5, 0.9) for a in np.linspace(-6, 15, 30) for w in slopes
        ]  # fmt: skip
        best = np.array(grid)[np.argsort(self.losses(np.array(grid)))[::40]][:starts]
        options = {"xatol": 1e-6, "fatol": 1e-10, "maxiter": 400}
        bounds = [(None, None), (-STEEPEST, STEEPEST)]
        return min(
            minimize(self.loss, start, method="Nelder-Mead", bounds=bounds, options=options).fun
            for start in best
        )


def shortfall(n_rows, n_classes, seed):
    """Return how much lower the search gets than the fit."""
    task = simulate(n_rows=n_rows, n_classes=n_classes, random_state=seed, entropy_slope=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        calibrator = EntropyTemperatureScaling().fit(task.logits, task.labels)
    if calibrator.entropy_weight_ == 0:  # all rows right, or all wrong: there is no optimum
        return 0.0
    search = Search(task.logits.astype(float), task.labels, calibrator.temperature_limits_)
    ours = search.loss((calibrator.intercept_, calibrator.entropy_weight_))
    assert ours == pytest.approx(calibrator.model_.solution.value, rel=1e-5, abs=1e-7)
    return ours - search.lowest()


# The first is a sample of which the start at slope 0 leads to a higher optimum.
@pytest.mark.parametrize(("n_rows", "n_classes", "seed"), [(20, 2, 30), (30, 2, 46), (20, 3, 0), (40, 3, 1)])
def test_no_search_finds_a_lower_loss(n_rows, n_classes, seed):
    assert shortfall(n_rows, n_classes, seed) < 1e-5


def test_the_tilted_starts_cross_the_level_at_low_middle_and_high_entropy():
    data = FitData(LogitRows(simulate(n_rows=50, n_classes=3).logits, np.zeros(50, int)))
    entropies = np.quantile(hnlts.log_normalised_entropy(data.rows), hnlts.CROSSINGS, method="inverted_cdf")
    for slope, group in zip(hnlts.SLOPES, hnlts._tilted_starts(0.7, data), strict=True):
        a = [b + w * h for (b, w), h in zip(group, np.repeat(entropies, 3), strict=True)]
        np.testing.assert_allclose(a, np.tile([-0.3, 0.7, 1.7], 3), rtol=1e-9)
        assert {w for _, w in group} == {slope}


def test_a_start_that_diverges_is_not_chosen(monkeypatch):
    task = simulate(n_rows=40, n_classes=2, random_state=55, entropy_slope=0.3)
    slopes = []
    for few_rows in (hnlts.FEW_ROWS, 0):
        monkeypatch.setattr(hnlts, "FEW_ROWS", few_rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            slopes.append(EntropyTemperatureScaling().fit(task.logits, task.labels).entropy_weight_)
    assert slopes[0] == slopes[1]


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [10, 20, 30, 40, 50])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_no_search_finds_a_lower_loss_in_many_draws(n_rows, n_classes):
    assert max(shortfall(n_rows, n_classes, seed) for seed in range(20)) < 1e-5
