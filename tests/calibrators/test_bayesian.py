"""Bayesian temperature scaling without a class bias: the posterior, its average, and few rows."""

import json
import re
import warnings

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import log_softmax, softmax, xlogy

import temperance
from temperance import (
    BayesianTemperatureScaling,
    InputError,
    TemperatureScaling,
    make_calibrator,
    metrics,
)
from temperance.calibrators import bayes_design
from temperance.calibrators.bayes_design import build_design
from temperance.core.features import shape_features
from temperance.core.kernels import KNOTS
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import EMPHASIS
from temperance.core.objective import InMemoryFitData, Prior
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


def dense_model(cal, logits):
    """Return the regressors of log T written out, [1, shape, indicator of each class]."""
    shape = (shape_features(LogitRows(logits), cal.reference_) - cal.centre_) / cal.spread_
    one_hot = np.eye(cal.n_classes_)[logits.argmax(axis=1)]
    return np.column_stack([np.ones(len(logits)), shape, one_hot])


def mapped(cal, logits, slopes=None):
    """Return -map(-log softmax(z / T0)) T0, written out: what is divided by T."""
    e = -log_softmax(logits / cal.reference_, axis=1)
    lengths = np.clip(e[..., None] - KNOTS, 0.0, np.append(np.diff(KNOTS), np.inf))
    return -cal.reference_ * (lengths @ (cal.map_slopes_ if slopes is None else slopes))


def with_uniform(cal, probs):
    """Mix in the uniform part."""
    return (1 - cal.uniform_weight_) * probs + cal.uniform_weight_ / cal.n_classes_


def prior_of(cal, expected):
    """Return the prior of all coefficients, those of the map last, at the widths that were chosen."""
    population, K = shipped_population(), cal.n_classes_
    precision = block_diag(
        population.intercept_scale**-2 / cal.taus_[0],
        np.linalg.inv(population.covariance) / cal.taus_[1],
        np.eye(K) * population.class_scale**-2 / cal.taus_[2],
        np.linalg.inv(population.map_covariance) / cal.taus_[3],
    )
    return Prior(np.concatenate([[expected], population.mean, np.zeros(K), population.map_mean]), precision)


def theta_of(cal):
    """Return all coefficients of a fit: level, shape, classes, steps of the logs of the slopes."""
    return np.concatenate([cal.coefficients_, cal.class_shift_, np.diff(np.log(cal.map_slopes_))])


def expected_level(logits):
    p = softmax(logits, axis=1)
    log_entropy = np.log(-np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1))
    return shipped_population().intercept @ [1, np.maximum(log_entropy, -20).mean()]


# The posterior, written out once more.


def test_the_coefficients_are_the_posterior_mode(cal, large):
    z, y = large.logits[:300], large.labels[:300]
    X, prior = dense_model(cal, z), prior_of(cal, expected_level(z))
    basis = build_design(InMemoryFitData(LogitRows(z, y)), shipped_population()).basis

    def loss(theta):
        u = mapped(cal, z, np.exp(basis @ theta[10:]))
        log_p = log_softmax(u / np.exp(X @ theta[:10])[:, None], axis=1)
        right, top = z.argmax(axis=1) == y, log_p.max(axis=1)
        loss = -log_p[np.arange(300), y] - EMPHASIS * np.where(right, top, np.log(-np.expm1(top)))
        off = theta - prior.mean
        return loss.sum() + off @ prior.precision @ off / 2

    theta = theta_of(cal)
    np.testing.assert_allclose(np.exp(basis @ theta[10:]), cal.map_slopes_, rtol=1e-9)
    gradient = [(loss(theta + h) - loss(theta - h)) / 2e-5 for h in 1e-5 * np.eye(18)]
    np.testing.assert_allclose(gradient, 0, atol=2e-3)  # of a sum over 300 rows
    assert cal.solution_.value == pytest.approx(loss(theta) / 300, rel=1e-9)
    np.testing.assert_allclose(cal.temperature(z), np.exp(X @ theta[:10]), rtol=1e-9)


def test_the_spread_of_log_t_is_that_of_the_covariance_given_the_map(cal, large):
    rows = LogitRows(large.logits[:300], large.labels[:300])
    design = build_design(InMemoryFitData(rows), shipped_population())
    fisher = design.likelihood(rows, None)(theta_of(cal)).derivatives[1]
    covariance = np.linalg.inv(300 * fisher + prior_of(cal, 0.0).precision)
    given_the_map = np.linalg.inv(np.linalg.inv(covariance)[:10, :10])
    at = dense_model(cal, NEW)
    want = np.sqrt(np.einsum("ij,jk,ik->i", at, given_the_map, at))
    np.testing.assert_allclose(cal.log_temperature_std(NEW), want, rtol=1e-4)
    errors = np.sqrt(covariance.diagonal()[:5])
    np.testing.assert_allclose(cal.standard_errors_["coefficients"], errors, rtol=1e-4)


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


def test_calibrated_logits_are_log_probabilities(cal):
    np.testing.assert_allclose(np.exp(cal.transform(NEW)), cal.predict_proba(NEW), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(cal.transform(NEW), np.log(cal.predict_proba(NEW)), atol=1e-6)
    # In float32 to its precision.
    single = NEW.astype(np.float32)
    np.testing.assert_allclose(cal.transform(single), cal.transform(NEW), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_decision_is_kept_on_any_rows(cal, seed):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((3000, 5)) * np.exp(3 * rng.standard_normal((3000, 1)))
    np.testing.assert_array_equal(cal.predict_proba(logits).argmax(axis=1), logits.argmax(axis=1))
    np.testing.assert_array_equal(cal.predict(logits), logits.argmax(axis=1))


def test_more_rows_reduce_the_uncertainty():
    task = simulate(3000, 5, random_state=2)
    few, many = (bayes(task, n).log_temperature_std(NEW) for n in (300, 3000))
    assert np.mean(many) < 0.8 * np.mean(few)
    assert (many < few).mean() > 0.9


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


def test_a_weight_counts_as_repetition_so_its_unit_matters(large):
    z, y = large.logits[:200], large.labels[:200]
    times = np.random.default_rng(0).integers(0, 4, 200)
    weighted = BayesianTemperatureScaling().fit(z, y, times)
    repeated = BayesianTemperatureScaling().fit(z.repeat(times, axis=0), y.repeat(times))
    for name, value in repeated.parameters().items():
        np.testing.assert_allclose(weighted.parameters()[name], value, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(weighted.temperature_quantiles_, repeated.temperature_quantiles_, rtol=1e-7)


def test_larger_weights_reduce_the_uncertainty(large):
    z, y = large.logits[:200], large.labels[:200]
    times = np.random.default_rng(0).integers(0, 4, 200)
    weighted, heavier = (BayesianTemperatureScaling().fit(z, y, w) for w in (times, 10 * times))
    assert heavier.log_temperature_std(NEW).mean() < 0.8 * weighted.log_temperature_std(NEW).mean()


# Few rows, and rows of any scale.


@pytest.mark.parametrize("seed", range(4))
def test_20_rows_without_an_error_stay_near_the_prior(seed):
    logits = simulate(20, 5, random_state=seed).logits
    cal = BayesianTemperatureScaling().fit(logits, logits.argmax(axis=1))
    expected, scale = expected_level(logits), shipped_population().intercept_scale
    log_t = np.log(cal.temperature(logits))
    assert np.isfinite(log_t).all()
    assert np.all(np.abs(log_t - expected) < 3 * scale)
    assert log_t.mean() < expected  # the rows spoke for more confidence
    assert np.isfinite(cal.predict_proba(NEW)).all()
    weak = BayesianTemperatureScaling(prior="weak").fit(logits, logits.argmax(axis=1))
    assert np.abs(np.log(weak.temperature(logits)).mean()) < 3


def test_with_20_rows_it_beats_temperature_scaling():
    losses = []
    for seed in range(40):
        temperature = float(np.exp(0.4 + 0.4 * np.cos(7 * seed)))
        task = simulate(420, 5, temperature=temperature, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="All 20 rows are classified right")
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


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_extreme_confidence_is_only_a_matter_of_scale(large, factor):
    plain = bayes(large)
    scaled = BayesianTemperatureScaling().fit(factor * large.logits, large.labels)
    assert scaled.reference_ == pytest.approx(factor * plain.reference_, rel=0.02)
    np.testing.assert_allclose(scaled.predict_proba(factor * NEW), plain.predict_proba(NEW), atol=0.01)


def test_temperatures_stay_within_a_factor_of_the_reference_for_any_row(cal):
    factor = bayes_design.RANGE_FACTOR_OF_BAYES
    limits = cal.reference_ / factor, cal.reference_ * factor
    np.testing.assert_allclose(cal.temperature_limits_, limits, rtol=1e-12)
    rng = np.random.default_rng(0)
    wild = rng.standard_normal((500, 5)) * np.exp(20 * rng.standard_normal((500, 1)))
    T = cal.temperature(wild)
    assert T.min() >= limits[0] * (1 - 1e-9)
    assert T.max() <= limits[1] * (1 + 1e-9)
    assert np.isfinite(cal.predict_proba(wild)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_2500_classes_work(dtype):
    task = simulate(80, 2500, random_state=3)
    cal = BayesianTemperatureScaling().fit(task.logits.astype(dtype), task.labels)
    probs = cal.predict_proba(task.logits.astype(dtype))
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-5)
    predicted = np.unique(task.logits.argmax(axis=1))
    assert set(np.flatnonzero(cal.class_shift_)) <= set(predicted)


def test_only_the_classes_predicted_most_often_have_a_shift_of_their_own(large, monkeypatch):
    monkeypatch.setattr(bayes_design, "MAX_CLASS_TEMPERATURES", 3)
    often = np.argsort(-np.bincount(large.logits.argmax(axis=1), minlength=5))[:3]
    cal = bayes(large)
    np.testing.assert_array_equal(np.flatnonzero(cal.class_shift_), np.sort(often))


# Priors, options, words.


def test_a_strong_prior_dominates_and_a_weak_one_does_not(large):
    shipped, weak = bayes(large, 30), bayes(large, 30, prior="weak")
    assert weak.log_temperature_std(NEW).mean() > 1.2 * shipped.log_temperature_std(NEW).mean()
    many = bayes(large), bayes(large, prior="weak")
    assert np.abs(many[0].predict_proba(NEW) - many[1].predict_proba(NEW)).mean() < 0.01


def test_the_prior_of_a_file_is_used_saved_by_name_and_not_needed_afterwards(large, tmp_path):
    path = tmp_path / "prior.json"
    write_population(weak_population(), path)
    cal, weak = bayes(large, 50, prior=str(path)), bayes(large, 50, prior="weak")
    np.testing.assert_array_equal(cal.predict_proba(NEW), weak.predict_proba(NEW))
    cal.save(tmp_path / "cal.json")
    path.unlink()
    loaded = temperance.load(tmp_path / "cal.json")
    assert loaded.prior == str(path)
    np.testing.assert_array_equal(loaded.predict_proba(NEW), cal.predict_proba(NEW))
    np.testing.assert_array_equal(loaded.log_temperature_std(NEW), cal.log_temperature_std(NEW))
    assert str(path) in "".join(loaded.summary().split())  # lines are wrapped


def test_a_file_that_is_not_a_prior_is_refused(large, tmp_path):
    (tmp_path / "prior.json").write_text("{}")
    with pytest.raises(InputError, match=r"prior.json: holds no prior that can be read"):
        bayes(large, 50, prior=str(tmp_path / "prior.json"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_bias": 1}, "class_bias must be True, False or 'auto'; found 1"),
        ({"class_bias": None}, "class_bias must be True, False or 'auto'; found None"),
        ({"class_bias": "yes"}, "class_bias must be True, False or 'auto'; found 'yes'"),
        ({"prior": 3}, "prior must be 'population', 'weak' or the path of a file.*; found 3"),
        ({"prior": None}, "prior must be .*; found None"),
    ],
)
def test_bad_options_are_refused(large, options, message):
    with pytest.raises(InputError, match=message):
        bayes(large, 50, **options)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reference", -1.0, "reference"),
        ("temperature_limits", [3.0, 2.0], "limits"),
        ("spread", [1.0, 0.0, 1.0, 1.0], "spread must be at least 1e-30"),
        ("covariance", (-np.eye(5)).tolist(), "variances must be >= 0"),
        ("class_covariance", (-np.ones((5, 6))).tolist(), "variances must be >= 0"),
    ],
)
def test_a_file_with_impossible_numbers_is_refused(cal, tmp_path, name, value, message):
    cal.save(tmp_path / "cal.json")
    content = json.loads((tmp_path / "cal.json").read_text())
    content["parameters"][name] = value
    (tmp_path / "cal.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"cal.json is not a calibrator that can be read.*{message}"):
        temperance.load(tmp_path / "cal.json")


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
    assert f"T of the calibration rows: {low:.3g} / {middle:.3g} / {high:.3g} (5 % / median / 95 %)" in text
    assert f"T0 = {cal.reference_:.4g}" in text
    half = 1.96 * cal.standard_errors_["coefficients"][0]
    low, high = np.exp(cal.coefficients_[0] - half), np.exp(cal.coefficients_[0] + half)
    assert f"T of a typical row: {low:.3g} to {high:.3g} (95 % credible interval)" in text
    assert "prior: population" in text
    assert f"b: {cal.coefficients_[0]:+.3f} ± {cal.standard_errors_['coefficients'][0]:.2g}" in text


def test_a_prior_that_is_not_a_file_lists_the_choices(large):
    with pytest.raises(InputError, match=r"prior must be 'population', 'weak' or .* no file 'poplation'"):
        BayesianTemperatureScaling(prior="poplation").fit(large.logits, large.labels)


@pytest.mark.parametrize("scale", [1e-4, 1e-3, 1e3])
def test_the_unit_of_the_logits_hardly_matters_even_to_few_rows(scale):
    task = simulate(2050, 5, random_state=3)
    losses = []
    for unit in (1.0, scale):
        logits = unit * task.logits
        cal = BayesianTemperatureScaling().fit(logits[:50], task.labels[:50])
        losses.append(metrics.nll(cal.predict_proba(logits[50:]), task.labels[50:]))
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


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
    cal = BayesianTemperatureScaling().fit(task.logits, task.labels)
    z = task.logits[:50].astype(np.float32)
    z[:, 3] = -np.inf
    low, masked = cal.predict_proba(np.where(np.isfinite(z), z, np.float32(mask))), cal.predict_proba(z)
    # A low number may still be a class: all that it gets is its part of the uniform.
    assert low[:, 3].max() <= cal.uniform_weight_ / 6 * (1 + 1e-6)
    np.testing.assert_allclose(low, masked, rtol=0, atol=cal.uniform_weight_ / 6 * (1 + 1e-6) + 1e-7)


def test_no_probability_is_above_one_in_float32():
    task = simulate(800, 5, random_state=0)
    cal = BayesianTemperatureScaling().fit(task.logits, task.labels)
    probs = cal.predict_proba(np.array([[3000, 0, 0, 0, 0]], np.float32))
    assert probs.max() == pytest.approx(1 - 0.8 * cal.uniform_weight_, abs=1e-7)
    masked = np.array([[3000, -np.inf, -np.inf, -np.inf, -np.inf]], np.float32)
    assert cal.predict_proba(masked).max() == 1


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


def test_the_uniform_part_has_the_weight_of_a_fraction_of_a_row(large):
    for n_rows in (20, 300):
        assert bayes(large, n_rows).uniform_weight_ == pytest.approx(0.02 / (n_rows + 0.02))


def test_the_order_of_the_classes_is_that_of_the_logits_in_every_row(cal):
    rng = np.random.default_rng(3)
    logits = rng.standard_normal((2000, 5)) * np.exp(rng.standard_normal((2000, 1)))
    order = np.argsort(logits, axis=1)
    for output in (cal.predict_proba(logits), cal.transform(logits)):
        assert (np.diff(np.take_along_axis(output, order, axis=1), axis=1) >= 0).all()


def test_the_prior_of_the_first_edition_is_refused_with_advice(large, tmp_path):
    path = tmp_path / "prior.json"
    write_population(weak_population(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 1}))
    with pytest.raises(InputError, match=r"prior.json: holds no prior.*version 2.*Learn it again\.$"):
        bayes(large, 50, prior=str(path))
