"""Best temperatures of bins are those of direct fits, and find a truth that is known."""

import ml_dtypes
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.exceptions import NotFittedError

import temperance
from temperance import InputError, TemperatureScaling, compare, make_calibrator
from temperance.data import simulate
from temperance.display import TemperatureDisplay
from temperance.display.chart import Intervals


def log_entropy(logits):
    p = softmax(logits, axis=1)
    return np.log(-(p * np.log(p)).sum(axis=1) / np.log(logits.shape[1]))


def expected_optimum(logits, posterior):
    """Return the single temperature of the lowest expected NLL, given the true posterior."""

    def loss(log_t):
        return -float((posterior * log_softmax(logits / np.exp(log_t), axis=1)).sum())

    return np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)


@pytest.fixture(scope="module")
def calibrators(rows):
    return {key: make_calibrator(key).fit(rows.logits, rows.labels) for key in ("ts", "hts", "ets", "bayes")}


@pytest.mark.parametrize("with_weights", [False, True])
def test_a_bin_is_fitted_as_ts_fits_its_rows(rows, calibrators, with_weights):
    weights = np.random.default_rng(0).uniform(0.5, 2, len(rows.labels)) if with_weights else None
    show = TemperatureDisplay.from_calibrators(
        calibrators, rows.logits, rows.labels, bins=7, sample_weight=weights
    )
    h = log_entropy(rows.logits)
    assert show.count.sum() == len(h)
    assert np.ptp(show.count) <= 1
    ends = np.concatenate([[0], show.count.cumsum()])
    for at in range(7):
        part = np.argsort(h)[ends[at] : ends[at + 1]]
        w = None if weights is None else weights[part]
        ts = TemperatureScaling().fit(rows.logits[part], rows.labels[part], w)
        half = 1.959964 * ts.standard_errors_["temperature"] / ts.temperature_
        assert show.centre[at] == pytest.approx(np.average(h[part], weights=w))
        assert show.optimum[at] == pytest.approx(ts.temperature_, rel=1e-6)
        assert show.low[at] == pytest.approx(ts.temperature_ * np.exp(-half), rel=1e-5)
        assert show.high[at] == pytest.approx(ts.temperature_ * np.exp(half), rel=1e-5)
    whole = TemperatureScaling().fit(rows.logits, rows.labels, weights)
    assert show.single == pytest.approx(whole.temperature_, rel=1e-6)


def test_the_sample_is_even_in_rank_and_has_the_methods_temperatures(rows, calibrators):
    show = TemperatureDisplay.from_calibrators(calibrators, rows.logits, rows.labels)
    assert list(show.temperature) == ["ts", "hts", "bayes"]  # ETS has no T(z)
    h = log_entropy(rows.logits)
    sample = np.argsort(h)[np.linspace(0, len(h) - 1, 400).astype(int)]
    np.testing.assert_allclose(show.log_entropy, h[sample], rtol=1e-9)
    for name, values in show.temperature.items():
        np.testing.assert_allclose(values, calibrators[name].temperature(rows.logits)[sample], rtol=1e-9)


def test_few_rows_are_all_shown_in_bins_of_at_least_ten(rows, calibrators):
    show = TemperatureDisplay.from_calibrators(calibrators, rows.logits[:35], rows.labels[:35])
    assert len(show.log_entropy) == 35
    assert (np.diff(show.log_entropy) >= 0).all()
    assert len(show.count) + show.unidentified == 3
    assert set(show.count) <= {11, 12}


def test_the_best_temperatures_show_how_overconfidence_depends_on_the_entropy():
    task = simulate(40_000, 5, entropy_slope=0.25, class_spread=0.0, random_state=11)
    show = TemperatureDisplay.from_calibrators({}, task.logits, task.labels, bins=20)
    parts = np.array_split(np.argsort(log_entropy(task.logits)), 20)
    truth = np.array([expected_optimum(task.logits[part], task.probabilities[part]) for part in parts])
    covered = (show.low < truth) & (truth < show.high)
    assert covered.sum() >= 17  # of 20 intervals of 95 %
    assert show.optimum[-1] > 1.5 * show.optimum[2]


def test_rows_at_the_floor_of_the_entropy_are_one_bin(calibrators):
    sure = np.zeros((300, 4))
    sure[np.arange(300), np.arange(300) % 4] = np.where(np.arange(300) < 200, 100.0, np.linspace(1, 9, 300))
    labels = (np.arange(300) + (np.arange(300) % 5 == 0)) % 4
    show = TemperatureDisplay.from_calibrators(calibrators, sure, labels, bins=6)
    np.testing.assert_array_equal(show.count, [200, 50, 50])
    assert show.centre[0] == -20
    part = sure[:200], labels[:200]
    assert show.optimum[0] == pytest.approx(TemperatureScaling().fit(*part).temperature_, rel=1e-6)


def test_rows_that_are_all_right_identify_no_temperature_and_give_no_warning(rows, calibrators):
    show = TemperatureDisplay.from_calibrators(calibrators, rows.logits, rows.logits.argmax(axis=1))
    assert show.count.shape == show.optimum.shape == show.low.shape == (0,)
    show.plot()
    assert "not drawn: 10." in show.chart().caption


def test_groups_with_a_wide_interval_are_left_out(rows, monkeypatch):
    every = TemperatureDisplay.from_calibrators({}, rows.logits, rows.labels)
    ratio = every.high / every.low
    narrow = ratio <= np.median(ratio)
    assert 0 < narrow.sum() < len(narrow)
    monkeypatch.setattr("temperance.display.temperature.IDENTIFIED_RATIO", np.median(ratio) * (1 + 1e-9))
    some = TemperatureDisplay.from_calibrators({}, rows.logits, rows.labels)
    np.testing.assert_array_equal(some.optimum, every.optimum[narrow])
    np.testing.assert_array_equal(some.count, every.count[narrow])
    (best,) = (mark for mark in some.chart().marks if isinstance(mark, Intervals))
    np.testing.assert_array_equal(best.value, some.optimum)


def test_a_comparison_is_shown_on_its_test_rows(comparison, rows):
    cals = {k: r.calibrator for k, r in comparison.results.items() if k in ("ts", "hts", "bayes")}
    wanted = TemperatureDisplay.from_calibrators(cals, rows.logits[600:], rows.labels[600:])
    for show in (
        TemperatureDisplay.from_comparison(comparison),
        TemperatureDisplay.from_comparison(comparison, ["ts", "none"]),
    ):
        np.testing.assert_array_equal(show.optimum, wanted.optimum)
        assert show.single == wanted.single
    assert list(wanted.temperature) == ["ts", "hts", "bayes"]
    assert list(show.temperature) == ["ts"]


def test_rows_of_weight_0_are_ignored(weighted, rows):
    weights = np.zeros(len(rows.labels))
    weights[weighted.judged.kept] = weighted.judged.weights
    kept = weights > 0
    cals = {"ts": weighted.results["ts"].calibrator}
    show = TemperatureDisplay.from_calibrators(cals, rows.logits, rows.labels, sample_weight=weights)
    wanted = TemperatureDisplay.from_calibrators(
        cals, rows.logits[kept], rows.labels[kept], sample_weight=weights[kept]
    )
    np.testing.assert_array_equal(show.count, wanted.count)
    np.testing.assert_allclose(show.optimum, wanted.optimum, rtol=1e-7)
    np.testing.assert_allclose(show.high, wanted.high, rtol=1e-7)
    assert show.single == pytest.approx(wanted.single, rel=1e-7)


def test_bfloat16_logits_are_read(rows, calibrators):
    coarse = rows.logits.astype(ml_dtypes.bfloat16)
    show = TemperatureDisplay.from_calibrators(calibrators, coarse, rows.labels)
    wanted = TemperatureDisplay.from_calibrators(calibrators, coarse.astype(np.float32), rows.labels)
    np.testing.assert_array_equal(show.optimum, wanted.optimum)


def test_masked_classes_are_accepted():
    task = simulate(300, 4, random_state=1)
    masked = task.logits.copy()
    masked[(np.arange(4) == 3) & (task.labels != 3)[:, None]] = -np.inf
    result = compare(masked, task.labels, methods=["ts", "hts"], draws=5, folds=2)
    assert np.isfinite(TemperatureDisplay.from_comparison(result).optimum).all()


def test_an_impossible_display_is_refused_with_a_message(comparison, rows, calibrators):
    z, y = rows.logits, rows.labels
    with pytest.raises(InputError, match=r"methods must be one of .*; found 'lts'"):
        TemperatureDisplay.from_comparison(comparison, ["lts"])
    with pytest.raises(InputError, match="needs labelled rows, and there are none"):
        TemperatureDisplay.from_calibrators({}, z[:0], y[:0])
    with pytest.raises(InputError, match="labels must be integer column indices"):
        TemperatureDisplay.from_calibrators({}, z, y[:-1])
    with pytest.raises(InputError, match="NaN in 1200 rows"):
        TemperatureDisplay.from_calibrators({}, z * np.nan, y)
    with pytest.raises(InputError, match="fitted on 4 classes"):
        TemperatureDisplay.from_calibrators(calibrators, np.column_stack([z, z[:, 0]]), y)
    with pytest.raises(NotFittedError):
        TemperatureDisplay.from_calibrators({"ts": TemperatureScaling()}, z, y)


def test_the_number_of_bins_is_checked(rows):
    with pytest.raises(InputError, match="bins must be a whole number from 1 to 10000; found 0"):
        TemperatureDisplay.from_calibrators({}, rows.logits, rows.labels, bins=0)


def test_a_binary_classifier_may_give_one_logit(binary):
    ts = temperance.TemperatureScaling().fit(*binary)
    show = TemperatureDisplay.from_calibrators({"ts": ts}, *binary)
    assert len(show.count) + show.unidentified == 10
    assert show.single == pytest.approx(ts.temperature_, rel=1e-6)
