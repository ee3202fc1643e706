"""Monotone scaling: one increasing map of log-probabilities that keeps the order of the classes."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from compared import STEEP
from scipy.special import log_softmax

import temperance
from temperance import InputError, MonotoneScaling, TemperatureScaling
from temperance.core.kernels import KNOTS
from temperance.data import simulate


@pytest.fixture(scope="module")
def task():
    return simulate(n_rows=1000, n_classes=6, random_state=1)


@pytest.fixture(scope="module")
def cal(task):
    return MonotoneScaling().fit(task.logits, task.labels)


@pytest.fixture(scope="module")
def steep(cal):
    """Return a calibrator whose slopes differ more than those of any fit."""
    changed = MonotoneScaling()
    changed.model_ = replace(cal.model_, formula=replace(cal.model_.formula, map_slopes=np.array(STEEP)))
    changed.n_features_in_ = cal.n_features_in_
    return changed


def nll(cal, logits, labels):
    return -log_softmax(cal.transform(logits), axis=1)[np.arange(len(labels)), labels].mean()


def votes(n_rows, seed):
    """Return the shares of 50 votes for 10 classes, many of them 0, with labels."""
    task = simulate(n_rows, 10, temperature=1.0, random_state=seed)
    p = np.exp(log_softmax(task.logits, axis=1))
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(50, row / row.sum()) for row in p]) / 50, task.labels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("which", ["cal", "steep"])
def test_the_order_of_any_two_classes_and_ties_are_kept(which, dtype, request):
    cal = request.getfixturevalue(which)
    rng = np.random.default_rng(2)
    logits = (rng.integers(-6, 6, (400, 6)) * 10 ** rng.uniform(-2, 1, (400, 1))).astype(dtype)
    order = np.argsort(logits, axis=1)
    before = np.diff(np.take_along_axis(logits, order, axis=1), axis=1)
    after = np.diff(np.take_along_axis(cal.transform(logits), order, axis=1), axis=1)
    assert (before == 0).sum() > 100
    assert (after[before == 0] == 0).all()
    assert after.min() >= 0
    assert (after[before > 1e-3 * np.abs(logits).max(axis=1, keepdims=True)] > 0).mean() > 0.99
    np.testing.assert_array_equal(cal.predict(logits), logits.argmax(axis=1))


def test_the_summary_says_by_how_much_small_probabilities_were_wrong():
    z = 3 * np.random.default_rng(0).normal(size=(20_000, 5))
    p = 0.8 * np.exp(log_softmax(z, axis=1)) + 0.2 / 5  # no probability below 4 %
    labels = (p.cumsum(axis=1) < np.random.default_rng(1).random((20_000, 1))).sum(axis=1)
    cal = MonotoneScaling().fit(z, labels)
    said = {
        float(p): float(factor)
        for p, factor in re.findall(r"a probability of (\S+)% was (\S+) times too small", cal.summary())
    }
    assert set(said) == {1.8, 0.012}
    for percent, factor in said.items():
        e = KNOTS[np.argmin(np.abs(100 * np.exp(-KNOTS) - percent))]
        u = np.sum(cal.map_slopes_ * np.clip(e - KNOTS, 0, np.append(np.diff(KNOTS), np.inf)))
        assert factor == pytest.approx(np.exp(e - u), rel=0.01)
    assert said[0.012] > 20
    slope, error = cal.map_slopes_[5], cal.standard_errors_["map_slopes"][5]
    assert f"down to 0.248%: {slope:.4g} ± {error:.2g}" in cal.summary()
    bounds = re.findall(r"    (above|down to|below) (\S+%): ", cal.summary())
    percent = [f"{100 * np.exp(-knot):.3g}%" for knot in KNOTS[1:]]
    names = ["above", *["down to"] * (len(percent) - 1), "below"]
    assert bounds == list(zip(names, [*percent, percent[-1]], strict=True))


def test_standard_errors_cover_the_truth_and_are_those_of_repeated_samples():
    slopes, errors = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        z = 2.5 * rng.normal(size=(1000, 6))
        labels = np.argmax(z / 1.5 + rng.gumbel(size=z.shape), axis=1)
        cal = MonotoneScaling().fit(z, labels)
        unit = 1.5 / cal.reference_  # the truth is straight: slopes of 1 at T = 1.5
        slopes.append(unit * cal.map_slopes_)
        errors.append(unit * cal.standard_errors_["map_slopes"])
    slopes, errors = np.array(slopes), np.array(errors)
    assert (np.abs(slopes - 1) < 2 * errors).mean() > 0.93
    told = slice(2, 6)  # the prior, centred at the truth, holds the others
    ratio = slopes[:, told].std(axis=0) / errors[:, told].mean(axis=0)
    assert (ratio > 0.5).all()
    assert (ratio < 1.25).all()


def test_rows_that_are_all_right_give_the_map_of_ts(task):
    right = task.logits.argmax(axis=1)
    with pytest.warns(UserWarning, match="All 1000 rows are classified correctly"):
        cal = MonotoneScaling().fit(task.logits, right)
    with pytest.warns(UserWarning, match="All 1000 rows are classified correctly"):
        ts = TemperatureScaling().fit(task.logits, right)
    assert cal.map_slopes_.tolist() == 9 * [1.0]
    np.testing.assert_allclose(cal.predict_proba(task.logits), ts.predict_proba(task.logits), rtol=1e-12)
    assert "not identified by the rows" in cal.summary()


def test_labels_whose_probability_was_zero_cost_far_less_than_under_one_temperature():
    (p, y), (new_p, new_y) = votes(1000, 0), votes(2000, 1)
    assert (p[np.arange(1000), y] == 0).any()
    with pytest.raises(InputError, match="the logit of a row's own label must not be -inf"):
        MonotoneScaling().fit(temperance.logits_from_probs(p, floor=0), y)
    z, new_z = (np.log(np.maximum(q, 1e-12)) for q in (p, new_p))
    ts, mono = TemperatureScaling().fit(z, y), MonotoneScaling().fit(z, y)
    assert nll(mono, new_z, new_y) < nll(ts, new_z, new_y) - 0.2


def test_twenty_rows_are_hardly_ever_worse_than_one_temperature():
    ratios = []
    for seed in range(24):
        task = simulate(1520, 3 + 7 * (seed % 2), random_state=seed)
        new, labels = task.logits[20:], task.labels[20:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # 20 rows may all be right
            mono, ts = (
                kind().fit(task.logits[:20], task.labels[:20])
                for kind in (MonotoneScaling, TemperatureScaling)
            )
        ratios.append(nll(mono, new, labels) / nll(ts, new, labels))
    assert np.mean(ratios) < 1.005
    assert max(ratios) < 1.05


@pytest.mark.filterwarnings("ignore:rows must be different ones")
def test_standard_errors_shrink_with_the_rows_and_those_at_a_bound_do_not_grow(task, cal):
    often = MonotoneScaling().fit(np.tile(task.logits, (16, 1)), np.tile(task.labels, 16))
    assert (often.standard_errors_["map_slopes"] < 0.95 * cal.standard_errors_["map_slopes"]).all()
    sure = task.logits.argmax(axis=1)  # labels of no noise drive slopes to their bounds
    labels = np.where(np.arange(len(sure)) % 50 == 0, task.labels, sure)
    few = MonotoneScaling().fit(task.logits, labels)
    many = MonotoneScaling().fit(np.tile(task.logits, (9, 1)), np.tile(labels, 9))
    assert few.map_slopes_.min() == 1e-3
    ratio = many.standard_errors_["map_slopes"] / few.standard_errors_["map_slopes"]
    assert ratio.max() < 1.05
    assert ratio.min() > 0.2


def test_an_impossible_class_has_no_effect_on_the_fit(task):
    masked = np.where(np.arange(6) == (task.labels[:, None] + 1) % 6, -np.inf, task.logits)
    far = np.where(np.isneginf(masked), -1e9, masked)
    slopes, wanted = (MonotoneScaling().fit(z, task.labels).map_slopes_ for z in (masked, far))
    np.testing.assert_allclose(slopes, wanted, rtol=1e-8)
