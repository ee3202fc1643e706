"""Figures that the documentation gives: limits, the weak prior, empty bins, masks, weights."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from temperance import (
    BinwiseTemperatureScaling,
    TemperatureScaling,
)
from temperance.calibrators.single_temperature import right_and_wrong
from temperance.comparison.method_result import Difference
from temperance.core import kernels
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import RowMapLikelihood
from temperance.core.predictors import ByClass, Log
from temperance.core.row_block import RowBlock


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 0.9, 20)])
@pytest.mark.parametrize("worse_than_chance", [False, True])
def test_without_a_maximum_one_observation_of_log_t_near_0_decides(weights, worse_than_chance):
    logits = np.random.default_rng(1).normal(size=(20, 3))
    labels = logits.argmin(axis=1) if worse_than_chance else logits.argmax(axis=1)
    if worse_than_chance:
        labels[0] = logits[0].argmax()  # some row is correct
    counted = np.ones(20) if weights is None else weights

    def penalised(log_t):
        log_p = log_softmax(logits / np.exp(log_t), axis=1)[np.arange(20), labels]
        return log_t**2 / 2 - counted @ log_p

    with pytest.warns(UserWarning, match="weak prior"):
        cal = TemperatureScaling().fit(logits, labels, weights)
    best = minimize_scalar(penalised, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10})
    assert np.log(cal.temperature_) == pytest.approx(best.x, abs=1e-5)
    assert abs(best.x) > 0.1


def test_a_label_that_ties_with_the_top_is_right_and_one_just_below_is_wrong():
    logits = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 - 1e-15, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows = LogitRows(logits, np.array([1, 1, 1, 0]))
    assert right_and_wrong(rows, None)[0].tolist() == [2, 2]
    assert right_and_wrong(rows, np.array([1.0, 0.0, 1e-300, 2.0]))[0].tolist() == [2, 1]


def test_rows_of_which_one_ties_are_all_right():
    with pytest.warns(UserWarning, match="All 2 rows are classified correctly"):
        TemperatureScaling().fit([[1.0, 1.0, 0.0], [2.0, 0.0, 0.0]], [1, 0])


def test_a_variance_is_never_below_zero():
    # All numbers but one are the same: what is left of the variance is smaller than its rounding error.
    z = np.repeat(-np.linspace(1, 3, 50, dtype=np.float32)[:, None], 1 << 14, axis=1)
    z[:, 0] = 0
    *_, v = RowBlock(z).moments(1e-3, variance=True)
    assert v.min() == 0


def test_what_stands_for_a_masked_logit_is_impossible_at_any_temperature_and_has_a_finite_square():
    for real in (np.float32, np.float64):
        lowest = real(kernels.LOWEST[real().itemsize])
        assert np.isfinite(lowest * lowest)
        assert np.exp(real(1e-6) * lowest) == 0
        assert lowest < -1e17


@pytest.mark.parametrize("share", [[0.25] * 4, [0.1, 0.2, 0.3, 0.4], [0.7, 0.2, 0.1]])
def test_the_error_of_a_difference_is_unbiased_over_all_samples(share):
    share = np.array(share)
    squares = [
        Difference.of(np.array(rows, float), share).error ** 2 for rows in product([-1, 1], repeat=len(share))
    ]
    assert np.mean(squares) == pytest.approx(share @ share, rel=1e-12)  # each row has the variance 1


def test_one_row_has_no_finite_error():
    assert Difference.of(np.array([0.5, 2.0]), np.array([1.0, 0.0])) == Difference(0.5, np.inf)
    almost = Difference.of(np.array([0.5, 2.0]), np.array([1 - 1e-9, 1e-9]))
    assert 0 < almost.error < np.inf


@pytest.fixture(scope="module")
def half_right():
    """Return rows that are sure and right, as many by chance that are less sure, and the best single T."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 3))
    labels = rng.integers(0, 3, 200)
    logits[:100] *= 0.1
    top = logits.argmax(axis=1)
    logits[np.arange(200), top] += np.where(np.arange(200) < 100, 0.4, 1.2)
    labels[100:] = top[100:]
    return logits, labels, TemperatureScaling().fit(logits, labels).temperature_


def test_a_bin_of_rows_all_right_has_a_tenth_of_the_best_temperature_and_an_empty_one_has_1(half_right):
    logits, labels, best = half_right
    cal = BinwiseTemperatureScaling(bins=3, top=1 - 1e-9).fit(logits, labels)
    assert cal.temperatures_[1] == pytest.approx(best / 10, rel=1e-6)
    assert cal.temperatures_[2] == 1.0
    assert cal.standard_errors_["temperatures"][2] == 0.0


def test_the_top_label_adds_four_tenths_of_its_log_loss():
    logits, labels = np.array([[2.0, 0.0], [1.0, 0.0]]), np.array([0, 1])
    predictor, straight = ByClass(np.ones((2, 1)), np.full(2, -1), 0), np.zeros((len(kernels.KNOTS), 1))
    found = RowMapLikelihood(LogitRows(logits, labels), 1.0, predictor, Log(), straight)(np.zeros(2)).value
    log_loss = (np.log1p(np.exp(-2)) + np.log1p(np.exp(1))) / 2  # the same, of two classes
    assert found == pytest.approx(1.4 * log_loss, rel=1e-12)
