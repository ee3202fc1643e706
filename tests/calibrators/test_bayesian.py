"""Bayesian temperature scaling without a class bias: the posterior, its average, and few rows."""

import re
import warnings

import numpy as np
import pytest
from fits_by_definition import expected_level
from scipy.special import log_softmax, softmax, xlogy

import temperance
from temperance import (
    BayesianTemperatureScaling,
    InputError,
    TemperatureScaling,
    make_calibrator,
    metrics,
)
from temperance.core.kernels import KNOTS
from temperance.data import simulate
from temperance.population import shipped_population, weak_population, write_population

NEW = simulate(400, 5, random_state=77).logits


def bayes(task, n_rows=None, **options):
    return BayesianTemperatureScaling(**options).fit(task.logits[:n_rows], task.labels[:n_rows])


@pytest.fixture(scope="module")
def large():
    """Return 2000 rows of 5 classes."""
    return simulate(2000, 5, random_state=1)


@pytest.fixture(scope="module")
def cal(large):
    """Return a calibrator of 300 of these rows: not to be changed."""
    return bayes(large, 300)


def mapped(cal, logits):
    """Return -map(-log softmax(z / T0)) T0, written out: what is divided by T."""
    e = -log_softmax(logits / cal.reference_, axis=1)
    lengths = np.clip(e[..., None] - KNOTS, 0.0, np.append(np.diff(KNOTS), np.inf))
    return -cal.reference_ * (lengths @ cal.map_slopes_)


def with_uniform(cal, probs):
    """Mix in the uniform part."""
    return (1 - cal.uniform_weight_) * probs + cal.uniform_weight_ / cal.n_classes_


@pytest.mark.parametrize(("n_rows", "error"), [(20, 5e-4), (300, 1e-4)])
def test_probabilities_are_the_average_over_half_the_variance_of_log_t(large, n_rows, error):
    cal = bayes(large, n_rows)
    mean, std = np.log(cal.temperature(NEW)), np.sqrt(0.5) * cal.log_temperature_std(NEW)
    x = np.linspace(-7, 7, 1401)
    density = np.exp(-x * x / 2) / np.exp(-x * x / 2).sum()
    u = mapped(cal, NEW)
    at = [softmax(u / np.exp(mean + std * q)[:, None], axis=1) for q in x]
    want = with_uniform(cal, np.tensordot(density, at, 1))
    np.testing.assert_allclose(cal.predict_proba(NEW), want, atol=error)
    # And that is not what the mean alone gives.
    alone = with_uniform(cal, softmax(u / np.exp(mean)[:, None], axis=1))
    assert np.abs(alone - want).max() > 10 * error


def test_a_class_that_is_never_predicted_has_the_largest_standard_error(large):
    seen = large.logits.argmax(axis=1) != 3
    cal = BayesianTemperatureScaling().fit(large.logits[seen], large.labels[seen])
    assert cal.class_shift_[3] == 0
    np.testing.assert_array_equal(cal.class_covariance_[3, :5], 0)
    own = shipped_population().class_scale ** 2 * cal.taus_[2]
    assert cal.class_covariance_[3, 5] == pytest.approx(own)
    assert (np.delete(cal.class_covariance_[:, 5], 3) < own).all()
    # The same row, with the class at its top renamed.
    row = np.array([[6.0, 1.0, 0.5, -1.0, -2.0]])
    known, unknown = row, row[:, [3, 1, 2, 0, 4]]
    assert cal.log_temperature_std(unknown)[0] > cal.log_temperature_std(known)[0]


# Few rows, and rows of any scale.


@pytest.mark.parametrize("seed", range(2))
def test_20_rows_without_an_error_stay_near_the_prior_and_a_weak_one_holds_them_less(seed):
    logits = simulate(20, 5, random_state=seed).logits
    cal = BayesianTemperatureScaling().fit(logits, logits.argmax(axis=1))
    expected, scale = expected_level(logits, np.ones(20)), shipped_population().intercept_scale
    log_t = np.log(cal.temperature(logits))
    assert np.isfinite(log_t).all()
    assert np.all(np.abs(log_t - expected) < 3 * scale)
    assert log_t.mean() < expected  # the rows spoke for more confidence
    assert np.isfinite(cal.predict_proba(NEW)).all()
    weak = BayesianTemperatureScaling(prior="weak").fit(logits, logits.argmax(axis=1))
    assert np.abs(np.log(weak.temperature(logits)).mean()) < 3
    assert weak.log_temperature_std(NEW).mean() > 1.2 * cal.log_temperature_std(NEW).mean()


def uneven_rows(seed, n_rows):
    """Return rows of 4 classes; T of each predicted class is another, by orders of magnitude."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(n_rows, 4))
    temperatures = np.exp(4 * rng.normal(size=4))[logits.argmax(axis=1)]
    truth = softmax(logits / temperatures[:, None], axis=1)
    return logits, (truth.cumsum(axis=1) < rng.random(n_rows)[:, None]).sum(axis=1).clip(0, 3)


# The search for the mode is damped to its end: the covariance must not be that of the damped matrix.
@pytest.mark.parametrize("seed", [17, 34, 43, 90, 136])
def test_the_uncertainty_of_few_rows_does_not_vanish_with_a_difficult_search(seed):
    logits, labels = uneven_rows(seed, 60)
    found = [BayesianTemperatureScaling().fit(logits[:n], labels[:n]) for n in (60, 55, 50, 45)]
    deviations = [np.median(cal.log_temperature_std(logits)) for cal in found]
    assert min(deviations) > 0.3
    assert max(deviations) < 3 * min(deviations)  # a few rows more or less do not decide


def test_with_20_rows_it_beats_temperature_scaling():
    losses = []
    for seed in range(40):
        temperature = float(np.exp(0.4 + 0.4 * np.cos(7 * seed)))
        task = simulate(420, 5, temperature=temperature, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="All 20 rows are classified correctly")
            single = TemperatureScaling().fit(task.logits[:20], task.labels[:20])
        probs = [c.predict_proba(task.logits[20:]) for c in (single, bayes(task, 20))]
        losses.append([metrics.nll(p, task.labels[20:]) for p in (*probs, task.probabilities[20:])])
    single, ours, best = np.mean(losses, axis=0)
    assert ours - best < 0.7 * (single - best)


def test_with_many_rows_it_finds_the_truth():
    task = simulate(20_000, 5, random_state=6)
    cal = bayes(task)
    single = TemperatureScaling().fit(task.logits, task.labels)
    truth = task.probabilities
    ours, theirs = (
        np.mean(np.sum(xlogy(truth, truth) - xlogy(truth, c.predict_proba(task.logits)), axis=1))
        for c in (cal, single)
    )
    assert ours < 0.2 * theirs


def test_only_the_classes_predicted_most_often_have_a_shift_of_their_own(large, monkeypatch):
    monkeypatch.setattr("temperance.calibrators.bayes.MAX_CLASS_TEMPERATURES", 3)
    often = np.argsort(-np.bincount(large.logits.argmax(axis=1), minlength=5))[:3]
    cal = bayes(large)
    np.testing.assert_array_equal(np.flatnonzero(cal.class_shift_), np.sort(often))


# Priors, options, words.


def test_the_prior_of_a_file_is_used_saved_by_name_and_not_needed_afterwards(large, tmp_path):
    path = tmp_path / "prior.json"
    write_population(weak_population(), path)
    cal, weak = bayes(large, 50, prior=str(path)), bayes(large, 50, prior="weak")
    np.testing.assert_array_equal(cal.predict_proba(NEW), weak.predict_proba(NEW))
    cal.save(tmp_path / "cal.json")
    path.unlink()
    loaded = temperance.load(tmp_path / "cal.json")
    assert loaded.prior == str(path)
    np.testing.assert_array_equal(loaded.log_temperature_std(NEW), cal.log_temperature_std(NEW))
    assert str(path) in "".join(loaded.summary().split())  # lines are wrapped
    with_many = [bayes(large, prior=prior).predict_proba(NEW) for prior in ("population", "weak")]
    assert np.abs(with_many[0] - with_many[1]).mean() < 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_bias": 1}, "class_bias must be True, False or 'auto'; found 1"),
        ({"class_bias": None}, "class_bias must be True, False or 'auto'; found None"),
        ({"class_bias": "yes"}, "class_bias must be True, False or 'auto'; found 'yes'"),
        ({"prior": 3}, "prior must be 'population', 'weak' or the path of a file.*; found 3"),
        ({"prior": None}, "prior must be .*; found None"),
        ({"prior": "poplation"}, "prior must be 'population', 'weak' or .* no file 'poplation'"),
        ({"prior": __file__}, "holds no prior that can be read"),
    ],
)
def test_bad_options_are_refused(large, options, message):
    with pytest.raises(InputError, match=message):
        bayes(large, 50, **options)


def test_the_summary_says_what_the_rows_added_to_the_prior(cal):
    text = cal.summary()
    assert max(map(len, text.splitlines())) <= 80
    assert "tau scales its variance" in text.replace("\n  ", " ")
    blocks = (("level", 1), ("shape", 4), ("class temperature", 5), ("map", 8))
    for (name, size), tau in zip(blocks, cal.taus_, strict=True):
        assert re.search(rf"{name}: \d\.\d of {size}, tau = {tau:.3g}\n", text)
    used = [float(x) for x in re.findall(r": (\d\.\d) of", text)]
    np.testing.assert_allclose(used, cal.effective_parameters_, atol=0.051)
    low, middle, high = cal.temperature_quantiles_
    assert f"T of the calibration rows: {low:.3g} / {middle:.3g} / {high:.3g} (5% / median / 95%)" in text
    assert f"T0 = {cal.reference_:.4g}" in text
    half = 1.96 * cal.standard_errors_["coefficients"][0]
    low, high = np.exp(cal.coefficients_[0] - half), np.exp(cal.coefficients_[0] + half)
    assert f"T of a typical row: {low:.3g} to {high:.3g} (95% credible interval)" in text
    assert "prior: population" in text
    assert f"b: {cal.coefficients_[0]:+.3f} ± {cal.standard_errors_['coefficients'][0]:.2g}" in text


def test_the_unit_of_the_logits_hardly_matters_even_to_few_rows():
    task, losses = simulate(2050, 5, random_state=3), []
    for unit in (1.0, 1e-4, 1e-3, 1e3):
        logits = unit * task.logits
        cal = BayesianTemperatureScaling().fit(logits[:50], task.labels[:50])
        losses.append(metrics.nll(cal.predict_proba(logits[50:]), task.labels[50:]))
    np.testing.assert_allclose(losses, losses[0], rtol=0.05)


@pytest.mark.parametrize("step", [2, 16])
def test_rows_of_weight_0_at_regular_distances_are_allowed(step):
    task = simulate(20000, 4, random_state=1)
    weights = (np.arange(20000) % step != 0).astype(float)
    for method in ("bayes", "ts"):
        kept = make_calibrator(method).fit(task.logits[weights > 0], task.labels[weights > 0])
        weighted = make_calibrator(method).fit(task.logits, task.labels, weights)
        np.testing.assert_allclose(
            weighted.predict_proba(task.logits[:100]), kept.predict_proba(task.logits[:100]), atol=3e-3
        )


@pytest.mark.parametrize("mask", [-1e9, np.finfo(np.float32).min])
def test_a_mask_that_is_a_low_number_gives_the_same_as_minus_infinity(mask):
    task = simulate(500, 6, random_state=2)
    cal = bayes(task)
    z = task.logits[:50].astype(np.float32)
    z[:, 3] = -np.inf
    low, masked = cal.predict_proba(np.where(np.isfinite(z), z, np.float32(mask))), cal.predict_proba(z)
    # A low number may still be a class: all that it gets is its part of the uniform.
    assert low[:, 3].max() <= cal.uniform_weight_ / 6 * (1 + 1e-6)
    np.testing.assert_allclose(low, masked, rtol=0, atol=cal.uniform_weight_ / 6 * (1 + 1e-6) + 1e-7)


# What no calibration row has shown.


def test_zeros_on_labels_that_no_calibration_row_had_cost_little():
    task = simulate(1200, 5, random_state=4)
    probs, labels = task.probabilities.copy(), task.labels
    unseen = np.arange(1200) >= 1150
    probs[unseen, labels[unseen]] = 0.0
    with np.errstate(divide="ignore"):
        logits = np.maximum(np.log(probs), -1e4)
    ours, single = (make_calibrator(m).fit(logits[:1000], labels[:1000]) for m in ("bayes", "ts"))
    loss = [metrics.nll(c.predict_proba(logits[1000:]), labels[1000:]) for c in (ours, single)]
    assert loss[0] < 0.2 * loss[1]
    assert loss[0] < 6


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_wrong_labels_lower_the_confidence_and_do_no_worse_than_one_temperature(share):
    task = simulate(3000, 5, random_state=9)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(3000) < share, rng.integers(5, size=3000), task.labels)
    noisy, single = (make_calibrator(m).fit(task.logits[:1000], labels[:1000]) for m in ("bayes", "ts"))
    clean = bayes(task, 1000)
    test = task.logits[1000:]
    assert noisy.predict_proba(test).max(axis=1).mean() < clean.predict_proba(test).max(axis=1).mean() - 0.01
    loss = [metrics.nll(c.predict_proba(test), labels[1000:]) for c in (noisy, single)]
    assert loss[0] < loss[1]


def test_outputs_are_probabilities_and_their_logarithms_in_the_order_of_the_logits(cal):
    rng = np.random.default_rng(3)
    logits = rng.standard_normal((2000, 5)) * np.exp(rng.standard_normal((2000, 1)))
    order = np.argsort(logits, axis=1)
    np.testing.assert_allclose(cal.transform(logits), np.log(cal.predict_proba(logits)), atol=1e-6)
    for output in (cal.predict_proba(logits), cal.transform(logits)):
        assert (np.diff(np.take_along_axis(output, order, axis=1), axis=1) >= 0).all()


def test_widths_that_grow_slowly_settle():
    """Votes of ten trees, on which a width grows by a tenth per round for 30 rounds; warnings are errors."""
    of_0, of_1 = [0, 1, 0, 7, 17, 18, 23, 11, 11, 3, 0], [0, 1, 0, 10, 13, 31, 48, 52, 40, 12, 2]
    votes = np.concatenate([np.repeat(np.arange(11) / 10, of_0), np.repeat(np.arange(11) / 10, of_1)])
    labels = np.repeat([0, 1], [sum(of_0), sum(of_1)])
    cal = temperance.make_calibrator("bayes").fit(
        np.column_stack([1 - votes, votes]), labels, from_probs=True
    )
    assert cal.solution_.converged
    assert cal.taus_.max() > 10
