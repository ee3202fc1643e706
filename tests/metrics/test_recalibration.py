"""Recalibration of a vocabulary, where most classes have no bias of their own."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from temperance.metrics.predictions import check_rows
from temperance.metrics.recalibration import Recalibration, Recalibrator, bias_objective, fit_temperature

N_ROWS, N_CLASSES, N_OWN = 400, 30, 5


@pytest.fixture(scope="module")
def vocabulary():
    """Return rows with labels of five classes, and their recalibration."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(N_ROWS, N_CLASSES)) - 6 * (np.arange(N_CLASSES) >= N_OWN)
    labels = (0.7 * logits[:, :N_OWN] + rng.gumbel(size=(N_ROWS, N_OWN))).argmax(axis=1)
    rows = check_rows(softmax(2 * logits, axis=1), labels)
    return rows, Recalibration(rows)


@pytest.mark.parametrize(("n_classes", "merges"), [(6, False), (7, True)])
def test_classes_are_merged_if_most_have_no_bias(n_classes, merges):
    rows = check_rows(np.tile(np.eye(n_classes)[:3], (4, 1)), np.arange(12) % 3)
    found = Recalibration(rows)
    assert found.merges == merges
    assert len(found.own) == (3 if merges else n_classes)


def test_a_class_without_a_label_has_a_bias_if_it_was_predicted_for_a_quarter_of_a_row():
    totals = np.array([0.0, 9.0, 0.25, 0.26, 0.2499, *[0.1] * 7])
    totals[0] = 32 - totals.sum()
    rows = check_rows(np.tile(totals / 32, (32, 1)), np.arange(32) % 2)
    assert list(Recalibration(rows).own) == [0, 1, 2, 3]


def test_the_merged_classes_have_their_total_probability_and_no_bias(vocabulary):
    rows, family = vocabulary
    scaled, biased = family.fit(rows.weight, family.start)
    assert scaled.beta == fit_temperature(family.rows, rows.weight)
    assert not scaled.bias.any()
    assert np.abs(biased.bias[:N_OWN]).max() > 0.1
    assert not biased.bias[N_OWN:].any()
    again, _ = family.fit(rows.weight, (scaled, biased))
    assert not again.bias.any()
    merged, model = family._merged(scaled)
    assert model.bias[-1] == 0
    np.testing.assert_allclose(merged.values[:, :-1], family.logs[:, :N_OWN])
    others = logsumexp(scaled.beta * family.logs[:, N_OWN:].astype(float), axis=1)
    np.testing.assert_allclose(scaled.beta * merged.values[:, -1], others, rtol=2e-6)
    best = np.concatenate([[-np.log(biased.beta)], biased.bias[:N_OWN], [0.0]])
    _, gradient, fisher = bias_objective(merged, rows.weight)(best)
    assert np.abs(gradient / np.sqrt(fisher.diagonal() / N_ROWS))[:-1].max() < 0.05
    precision = family.precision(rows.weight, biased)
    assert (precision[: 1 + N_OWN] > 1).all()
    np.testing.assert_array_equal(precision[1 + N_OWN :], 1)  # of the prior alone


def test_losses_and_probabilities_are_those_of_a_model_with_biases_of_zero(vocabulary):
    rows, family = vocabulary
    rng, fold = np.random.default_rng(2), np.arange(N_ROWS) % 3
    models = [Recalibrator(beta, np.zeros(N_CLASSES)) for beta in (0.3, 1.0, 2.5)]
    for model in models:
        model.bias[:N_OWN] = rng.normal(0, 2, N_OWN)
    nll, brier = family.losses(models, fold)
    for held, model in enumerate(models):
        log_q = log_softmax(model.beta * family.logs.astype(float) + model.bias, axis=1)
        error = np.exp(log_q) - np.eye(N_CLASSES)[rows.labels]
        own = fold == held
        np.testing.assert_allclose(
            nll[own], -log_q[np.arange(N_ROWS), rows.labels][own], rtol=2e-6, atol=5e-7
        )
        np.testing.assert_allclose(brier[own], (error**2).sum(axis=1)[own], rtol=2e-6, atol=5e-7)
        for k in (0, 4, 17):
            found = family.recalibrated(model, np.full(N_ROWS, k))
            np.testing.assert_allclose(found, np.exp(log_q[:, k]), rtol=1e-3, atol=1e-30)


def test_classes_with_a_bias_that_are_far_below_the_top_overflow_nothing():
    rows = check_rows(np.tile(np.append(np.zeros(5), [0.5, 0.5, 0, 0, 0]), (4, 1)), np.array([0, 1, 0, 1]))
    nll, brier = Recalibration(rows).losses([Recalibrator(100.0, np.zeros(10))], np.zeros(4, int))
    np.testing.assert_allclose(nll, 100 * 51 * np.log(2) + np.log(2), rtol=1e-6)
    np.testing.assert_allclose(brier, 1.5)
