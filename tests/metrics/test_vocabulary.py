"""Recalibration of a vocabulary: what comes from shared passes is what its definition says."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from temperance.core.logit_rows import LogitRows
from temperance.metrics.decomposition import out_of_fold
from temperance.metrics.predictions import check_rows
from temperance.metrics.recalibration import Recalibration, Recalibrator, fit_bias, fit_temperature
from temperance.metrics.vocabulary import SeriesRows, VocabularyRecalibration, open_recalibration


def test_a_bias_that_is_fixed_stays_and_classes_without_labels_or_weight_share_one():
    rng = np.random.default_rng(5)
    logs = np.log(rng.dirichlet(np.ones(12), size=400)).astype(np.float32)
    logs -= logs.max(axis=1, keepdims=True)
    labels = rng.integers(0, 3, 400)
    recalibration = VocabularyRecalibration(logs, labels, np.arange(3))
    scaled, biased = recalibration.fit(np.ones(400), recalibration.start)
    assert scaled.beta == pytest.approx(fit_temperature(LogitRows(logs, labels), np.ones(400)), rel=1e-6)
    assert biased.bias.shape == (3,)
    merged = recalibration._merged(scaled.beta)
    fixed = Recalibrator(1.0, np.array([0.0, 0.0, 0.0, 0.25]))
    found = fit_bias(LogitRows(merged, labels), np.ones(400), fixed, last_is_fixed=True)
    assert found.bias[-1] == pytest.approx(0.25, abs=1e-9)
    assert (found.bias[:3] > 0.3).all()  # all labels are of these three


N_ROWS, N_CLASSES = 60, 2000


@pytest.fixture(scope="module")
def task():
    """Return log probabilities, less the largest of each row, and labels of a cooler distribution."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.standard_normal((N_ROWS, N_CLASSES))
    labels = (0.7 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return (logits - logits.max(axis=1, keepdims=True)).astype(np.float32), labels


@pytest.fixture
def rows(task):
    return SeriesRows(*task, np.unique(task[1]))


def split_sums(rows, beta, power):
    """Return the sums of l^power exp(beta l) over own classes and over all others, in float64."""
    logs = rows.values.astype(np.float64)
    terms = logs**power * np.exp(beta * logs)
    own = terms[:, np.unique(rows.labels)].sum(axis=1)
    return own, terms.sum(axis=1) - own


@pytest.mark.parametrize("centre", [0.05, 0.6, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("share", [-1.0, -0.5, 0.0, 1.0])
def test_the_sums_within_the_radius_are_those_of_the_definition(rows, centre, share):
    rows.sums_near(centre)
    (known,) = rows._known
    beta = centre + share * 0.999 * known.radius
    found = rows.sums_near(beta)
    assert len(rows._known) == 1
    total, _, _ = sum(found)
    for power, tolerance in enumerate((5e-7, 1e-5, 2e-4)):
        for sums, exact in zip(found, split_sums(rows, beta, power), strict=True):
            if power == 0:
                np.testing.assert_allclose(sums[0], exact, atol=tolerance * total.min())
            else:  # a fit uses their means
                assert np.mean(sums[power] / total) == pytest.approx(np.mean(exact / total), rel=tolerance)


def test_a_beta_beyond_the_radius_is_read(rows):
    rows.sums_near(1.0)
    (known,) = rows._known
    rows.sums_near(1 + 1.01 * known.radius)
    assert len(rows._known) == rows.passes == 2


def test_the_moments_are_those_of_plain_rows(rows, task):
    plain = Recalibration(*task).rows
    rows.moments(0.7)
    for beta in (0.7, 0.72, np.full(N_ROWS, 0.69), np.linspace(0.5, 1, N_ROWS)):
        near, exact = rows.moments(beta), plain.moments(beta)
        np.testing.assert_allclose(near.log_s, exact.log_s, rtol=2e-6)
        np.testing.assert_allclose(near.mu, exact.mu, rtol=2e-6)
        np.testing.assert_allclose(near.v, exact.v, rtol=2e-5)


def models(n_biases, seed=2):
    rng = np.random.default_rng(seed)
    return [Recalibrator(beta, rng.normal(0, 2, n_biases)) for beta in (0.3, 1.0, 2.5)]


def test_the_losses_are_those_of_a_model_with_biases_of_zero(task):
    logs, labels = task
    own = np.unique(labels)
    compact = VocabularyRecalibration(logs, labels, own)
    fold = np.arange(N_ROWS) % 3
    for loss in range(2):
        found = compact.losses(models(len(own)), fold)[loss]
        for held, model in enumerate(models(len(own))):
            log_q = model.beta * logs.astype(float)
            log_q[:, own] += model.bias
            log_q = log_softmax(log_q, axis=1)
            error = np.exp(log_q)
            error[np.arange(N_ROWS), labels] -= 1
            exact = -log_q[np.arange(N_ROWS), labels], (error**2).sum(axis=1)
            np.testing.assert_allclose(found[fold == held], exact[loss][fold == held], rtol=2e-6, atol=1e-7)


def test_classes_with_a_bias_that_are_far_below_the_top_overflow_nothing():
    logs = np.full((4, 10), -700.0, np.float32)
    logs[:, 5:7] = 0  # neither is a label
    labels = np.array([0, 1, 0, 1])
    compact = VocabularyRecalibration(logs, labels, np.array([0, 1]))
    nll, brier = compact.losses([Recalibrator(100.0, np.zeros(2))], np.zeros(4, int))
    np.testing.assert_allclose(nll, 70_000 + np.log(2), rtol=1e-6)
    np.testing.assert_allclose(brier, 1.5)


def test_the_others_are_one_class_with_the_log_of_their_sum(rows, task):
    logs, labels = task
    own = np.unique(labels)
    merged = VocabularyRecalibration(logs, labels, own)._merged(0.8)
    others = np.delete(0.8 * logs.astype(float), own, axis=1)
    np.testing.assert_allclose(merged[:, -1], logsumexp(others, axis=1), rtol=2e-6)
    np.testing.assert_allclose(merged[:, :-1], 0.8 * logs[:, own], rtol=1e-6)


def test_five_folds_read_the_rows_about_as_often_as_one_fit(task):
    rows = check_rows(softmax(task[0].astype(float), axis=1), task[1])
    recalibration = open_recalibration(rows)
    out_of_fold(rows, recalibration, recalibration.start, np.arange(N_ROWS) % 5)
    assert recalibration.rows.passes <= 7  # the tops, three or four betas for the fits, one for each loss


def test_a_class_without_a_label_has_a_bias_if_it_was_predicted_for_a_quarter_of_a_row():
    totals = np.array([0.0, 9.0, 0.25, 0.26, 0.2499, *[0.1] * 7])
    totals[0] = 32 - totals.sum()
    rows = check_rows(np.tile(totals / 32, (32, 1)), np.arange(32) % 2)
    assert list(open_recalibration(rows).own) == [0, 1, 2, 3]


@pytest.mark.parametrize(("n_classes", "kind"), [(6, Recalibration), (7, VocabularyRecalibration)])
def test_most_classes_without_a_bias_make_a_vocabulary(n_classes, kind):
    rows = check_rows(np.tile(np.eye(n_classes)[:3], (4, 1)), np.arange(12) % 3)
    assert type(open_recalibration(rows)) is kind


def test_a_temperature_for_a_vocabulary_has_no_biases():
    rng = np.random.default_rng(0)
    logs = rng.normal(scale=2, size=(60, 50)).astype(np.float32)
    logs -= logs.max(axis=1, keepdims=True)
    labels = rng.integers(0, 5, size=60)
    family = VocabularyRecalibration(logs, labels, np.arange(5))
    first = family.fit(np.ones(60), family.start)
    assert np.abs(first[1].bias).max() > 0.1
    scaled, _ = family.fit(np.ones(60), first)
    assert not scaled.bias.any()


def test_recalibrated_confident_rows_of_a_vocabulary_keep_the_sum_of_their_classes():
    rng = np.random.default_rng(1)
    logs = rng.normal(scale=8, size=(40, 30))
    logs = (logs - logs.max(axis=1, keepdims=True)).astype(np.float32)
    family = VocabularyRecalibration(logs, rng.integers(0, 5, size=40), np.arange(5))
    model = Recalibrator(1.2, np.linspace(-0.5, 0.5, 5))
    odds = 1.2 * logs.astype(np.float64)
    odds[:, :5] += model.bias
    probs = softmax(odds, axis=1)
    for k in (0, 4, 17):
        found = family.recalibrated(model, np.full(40, k))
        np.testing.assert_allclose(found, probs[:, k], rtol=1e-3, atol=1e-30)
