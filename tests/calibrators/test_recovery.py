"""On data with a known truth, each method finds it within its standard errors."""

from dataclasses import replace

import numpy as np
import pytest
from compared import CLASS_KEEPING
from scipy.linalg import null_space
from scipy.special import expit, softmax, xlogy

from temperance import make_calibrator, metrics
from temperance.calibrators.bts import _confidence_below
from temperance.core.logit_rows import LogitRows
from temperance.data import simulate
from temperance.formulas.bts import BinwiseFormula

LIKELIHOOD = [key for key in CLASS_KEEPING if key != "pts-ece"]  # PTSe minimises something else


def draw_labels(probs, seed):
    below = probs.cumsum(axis=1) < np.random.default_rng(seed).random((len(probs), 1))
    return np.minimum(below.sum(axis=1), probs.shape[1] - 1)


def softplus(a):
    return np.logaddexp(0, a)


def centred(z):
    return z - z.mean(axis=1, keepdims=True)


def log_normalised_entropy(z):
    p = softmax(z, axis=1)
    return np.log(-xlogy(p, p).sum(axis=1) / np.log(z.shape[1]))


def total_divergence(truth, probs):
    """Return the Kullback-Leibler divergence of `probs` from `truth`, summed over the rows."""
    return float((xlogy(truth, truth) - xlogy(truth, probs)).sum())


@pytest.mark.parametrize("method", LIKELIHOOD)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_calibrated_classifier_is_not_changed(method, seed, make):
    # Twice the divergence of the fit from a truth inside the model is chi-squared, with as many degrees of
    # freedom as parameters (fewer at a boundary or with a prior): mean p, standard deviation sqrt(2 p).
    logits = simulate(20_000, 5, temperature=1, entropy_slope=0, class_spread=0, random_state=seed).logits
    truth = softmax(logits, axis=1)
    cal = make(method).fit(logits, draw_labels(truth, seed))
    p = sum(value.size for name, value in cal.parameters().items() if name != "temperature_limits")
    if method == "bayes":  # it also stores what is not a parameter: the posterior, and how rows are described
        p = cal.coefficients_.size + cal.class_shift_.size
    assert 2 * total_divergence(truth, cal.predict_proba(logits)) <= p + 4 * np.sqrt(2 * p)


def test_pts_with_the_ece_loss_leaves_a_calibrated_classifier_calibrated():
    task = simulate(20_000, 5, temperature=1, entropy_slope=0, class_spread=0)
    probs = make_calibrator("pts-ece").fit(task.logits, task.labels).predict_proba(task.logits)
    assert metrics.ece(probs, draw_labels(task.probabilities, 7)) < 4 * 15 / np.sqrt(20_000) / 2


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.0, 7.0])
def test_ts_finds_the_temperature_within_four_standard_errors(temperature):
    task = simulate(10_000, 5, temperature=temperature, entropy_slope=0, class_spread=0)
    cal = make_calibrator("ts").fit(task.logits, task.labels)
    error = float(cal.standard_errors_["temperature"])
    assert abs(cal.temperature_ - temperature) < 4 * error
    assert error < 0.02 * temperature


def test_the_standard_error_of_ts_is_the_spread_over_repetitions():
    fits = []
    for seed in range(60):
        task = simulate(500, 3, entropy_slope=0, class_spread=0, random_state=seed)
        fits.append(make_calibrator("ts").fit(task.logits, task.labels))
    scores = [(cal.temperature_ - 2) / float(cal.standard_errors_["temperature"]) for cal in fits]
    assert 0.7 < np.std(scores) < 1.35  # the 0.1 % points of the spread of 60 standard normal numbers


@pytest.mark.parametrize("method", ["lts", "hts", "hnlts"])
def test_linear_temperatures_are_found_within_four_standard_errors(method):
    rng = np.random.default_rng(2)
    z = rng.exponential(4, (20_000, 1)) * rng.standard_normal((20_000, 4))
    truth = {"intercept": 2.0}
    a = np.full(len(z), 2.0)
    if "l" in method:
        truth["class_weights"] = np.array([0.1, -0.05, -0.05, 0.0])
        a += centred(z) @ truth["class_weights"]
    if "h" in method:
        truth["entropy_weight"] = 0.3
        a += 0.3 * np.maximum(log_normalised_entropy(z), -20)
    labels = draw_labels(softmax(z / softplus(a)[:, None], axis=1), 3)
    cal = make_calibrator(method).fit(z, labels)
    assert cal.standard_errors_.keys() == truth.keys()
    for name, error in cal.standard_errors_.items():
        assert (np.abs(cal.parameters()[name] - truth[name]) < 4 * error).all(), name
        assert (np.asarray(error) < 0.1).all(), name


@pytest.mark.parametrize("method", ["lts", "hts", "hnlts"])
def test_standard_errors_are_those_of_the_inverse_information(method):
    # The information is sum_i v_i (d beta_i/d a)^2 phi_i phi_i'. A constant added to all class weights
    # changes nothing, so it is singular; the covariance is its inverse among weights that sum to 0.
    z = simulate(3000, 4, random_state=3).logits
    cal = make_calibrator(method).fit(z, draw_labels(softmax(z / 2, axis=1), 1))
    columns = {"intercept": np.ones((len(z), 1))}
    if "h" in method:
        columns["entropy_weight"] = np.maximum(log_normalised_entropy(z), -20)[:, None]
    if "l" in method:
        columns["class_weights"] = centred(z)
    phi = np.hstack([columns[name] for name in cal.standard_errors_])
    a = phi @ np.hstack([cal.parameters()[name] for name in cal.standard_errors_])
    T = softplus(a)
    p = softmax(z / T[:, None], axis=1)
    v = (p * z**2).sum(axis=1) - (p * z).sum(axis=1) ** 2
    slope = -expit(a) / T**2
    information = phi.T @ (phi * (v * slope**2)[:, None])
    undetermined = [[name == "class_weights" for name in cal.standard_errors_ for _ in columns[name].T]]
    basis = null_space(np.array(undetermined, float)) if "l" in method else np.eye(phi.shape[1])
    covariance = basis @ np.linalg.inv(basis.T @ information @ basis) @ basis.T
    errors = np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(np.hstack(list(cal.standard_errors_.values())), errors, rtol=1e-3)


def test_bts_finds_the_temperature_of_each_range_of_confidence():
    rng = np.random.default_rng(4)
    z = rng.exponential(3, (20_000, 1)) * rng.standard_normal((20_000, 4))
    unsure = softmax(z, axis=1).max(axis=1) < 0.8
    labels = draw_labels(softmax(z / np.where(unsure, 3.0, 1.5)[:, None], axis=1), 5)
    cal = make_calibrator("bts", bins=12).fit(z, labels)
    upper, lower = np.append(cal.edges_, 1.0), np.append(0.0, cal.edges_)
    errors = cal.standard_errors_["temperatures"]
    for inside, truth in ((upper < 0.8, 3.0), (lower > 0.8, 1.5)):
        assert inside.sum() >= 3
        assert (np.abs(cal.temperatures_ - truth) < 4 * errors)[inside].all()


def test_bts_puts_equal_numbers_of_rows_into_the_bins_below_the_top_one():
    task = simulate(5_000, 5)
    cal = make_calibrator("bts", bins=11).fit(task.logits, task.labels)
    confidence = softmax(task.logits, axis=1).max(axis=1)
    # An edge is the confidence of a row, which another softmax may give another last digit.
    counts = np.bincount(np.searchsorted(cal.edges_ + 1e-12, confidence))
    assert 0.999 < cal.edges_[-1] <= 0.999 + 2e-6
    assert counts[-1] == (confidence > cal.edges_[-1]).sum()
    assert np.ptp(counts[:-1]) <= 1
    assert np.abs(confidence[:, None] - cal.edges_[:-1]).min() > 1e-9, "edges lie between confidences"


def test_a_confidence_equal_to_an_edge_belongs_to_the_bin_below_it():
    task = simulate(500, 5)
    cal = make_calibrator("bts", bins=6).fit(task.logits, task.labels)
    log_confidence = LogitRows(task.logits).log_confidence()[:, 0]
    row = int(np.argsort(log_confidence)[250])
    edge = np.exp(log_confidence[row])
    edge = edge if np.log(edge) >= log_confidence[row] else np.nextafter(edge, 1)  # equal up to rounding
    formula = BinwiseFormula(np.array([0.1, edge, 0.997, 0.998, 0.999]), np.arange(1.0, 7.0))
    cal.model_ = replace(cal.model_, formula=formula)
    assert cal.temperature(task.logits)[row] == 2.0
    assert _confidence_below(0.5, LogitRows(np.zeros((3, 2))), None)[0].tolist() == [0.5] * 3


def test_ets_finds_the_mixture_that_the_labels_come_from():
    rng = np.random.default_rng(6)
    z = 4 * rng.standard_normal((40_000, 4))
    truth = 0.6 * softmax(z / 3, axis=1) + 0.2 * softmax(z, axis=1) + 0.2 / 4
    labels = draw_labels(truth, 7)
    for loss, slack in (("nll", 1), ("brier", 3)):  # the Brier score is less efficient
        cal = make_calibrator("ets", loss=loss).fit(z, labels)
        assert 2 * total_divergence(truth, cal.predict_proba(z)) <= slack * (3 + 4 * np.sqrt(2 * 3))
        np.testing.assert_allclose(cal.weights_, [0.6, 0.2, 0.2], atol=0.1)
