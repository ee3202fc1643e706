"""`monitoring.check`: what it finds, what it advises, what it refuses."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from temperance import InputError, make_calibrator, metrics, monitoring
from temperance.data import simulate
from temperance.formulas.fit_record import FitRecord
from temperance.monitoring.change import estimate_change
from temperance.monitoring.sums import allowed, residuals, sum_labelled


def test_an_unchanged_calibrator_is_kept(world):
    found = monitoring.check(*world)
    assert (found.action, found.alarm, found.acts) == ("keep", False, False)
    assert found.words.startswith("Keep. Confidence is too low by less than allowed: 78.9% on average, ")
    assert found.sentences[0].endswith("No change beyond the tolerance.")
    probs = world[0].predict_proba(world[1])
    expected = metrics.evaluate(probs, world[2])["overconfidence"].value
    (last,) = found.gaps
    assert found.change.gap == last
    assert last.gap == pytest.approx(expected, abs=1e-12)
    assert last.predicted - last.observed == pytest.approx(expected, abs=1e-12)
    assert last.low < expected < last.high
    assert found.change.confidence == pytest.approx(probs.max(axis=1).mean())
    assert found.change.accuracy == pytest.approx((probs.argmax(axis=1) == world[2]).mean())


def test_wrong_labels_ask_for_a_new_fit_with_a_number_of_labels(world, noisy):
    calibrator, logits, _ = world
    found = monitoring.check(calibrator, logits, noisy)
    assert found.action == "refit"
    assert found.change.gap.column is None
    assert found.change.log_temperature > 5 * found.change.log_temperature_error
    assert "overconfident" in found.words
    n, variance = found.labels.number, np.var(residuals(calibrator.predict_proba(logits), noisy)[:, 0])
    assert 2 * np.sqrt(variance / n) == pytest.approx(found.labels.leaves, rel=1e-6)
    gap = found.change.gap.gap
    assert found.labels.leaves <= max(0.02, abs(gap) / 3)
    assert n < 1.2 * 4 * variance / (gap / 3) ** 2 + 1


def test_another_distribution_of_confidence_is_told_without_labels(world):
    calibrator, logits, _ = world
    found = monitoring.check(calibrator, logits / 3)
    assert re.search(
        r"is (lower|higher): the share of rows below some value differs by \d+ points", found.words
    )


def test_labels_of_other_columns_are_suspected(world):
    calibrator, logits, labels = world
    for rows, truth in ((logits, (labels + 1) % 3), (logits[:, [1, 0, 2]], labels)):
        found = monitoring.check(calibrator, rows, truth)
        assert (found.action, found.state, found.labels) == ("inspect", "act", None)
        assert "check that the columns have the order of the fit, that the labels" in found.sentences[0]
        assert "Fit the calibrator again" not in found.words
        assert "confident" not in found.words


@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0])
def test_wrong_confidence_with_the_accuracy_of_the_fit_asks_for_a_new_fit(world, scale):
    """However large the gap: the columns and labels are right. No factor is told of so large a change."""
    calibrator, logits, labels = world
    found = monitoring.check(calibrator, scale * logits, labels)
    assert found.action == "refit"
    assert f"It is {'over' if scale > 1 else 'under'}confident." in found.sentences
    assert not any("would fit" in sentence for sentence in found.sentences)


def test_other_class_frequencies_alone_ask_to_adapt(world, shifted):
    found = monitoring.check(world[0], *shifted)
    assert found.action == "adapt"
    assert found.change.classes[0].column == 0
    assert found.change.classes[0].low > 1
    assert "overconfident" not in found.words
    np.testing.assert_allclose(found.frequencies, np.bincount(shifted[1]) / 1500, atol=1e-3)
    adapted = world[0].adapt(priors=found.frequencies)
    again = monitoring.check(adapted, *shifted)
    assert again.action == "keep"
    assert again.shift is None


def test_without_labels_a_shift_asks_for_labels_and_says_what_it_cannot_tell(world, shifted):
    stable = monitoring.check(world[0], world[1])
    assert stable.action == "keep"
    assert "cannot be seen without labels" in stable.words
    probs = world[0].predict_proba(world[1])
    value, low, high = stable.expected_accuracy
    assert value == pytest.approx(probs.max(axis=1).mean())
    assert f"If the calibrator still holds, {100 * value:.1f}% of these" in stable.words
    assert low < (probs.argmax(axis=1) == world[2]).mean() < high
    assert monitoring.check(*world).expected_accuracy is None
    found = monitoring.check(world[0], shifted[0])
    assert found.action == "label"
    assert found.labels.number >= 20
    assert found.change is None
    labelled = monitoring.check(world[0], *shifted)
    assert labelled.shift.alarm
    assert "cannot be seen" not in labelled.words


def test_one_step_is_close_to_the_maximum_of_the_likelihood(world):
    calibrator, logits, _ = world
    rng = np.random.default_rng(3)
    probs = calibrator.predict_proba(logits)
    log_p = np.log(probs)
    q = softmax(log_p / 1.15 + np.array([0.1, 0, -0.1]), axis=1)
    labels = (q.cumsum(axis=1) < rng.random((len(q), 1))).sum(axis=1)
    limits = allowed(calibrator.model_)
    record = SimpleNamespace(name="", date="", labelled=sum_labelled(probs, labels, limits))
    found = estimate_change([record], limits)

    def loss(theta):
        u = np.exp(theta[0]) * log_p + np.array([*theta[1:], 0.0])
        return -np.log(softmax(u, axis=1)[np.arange(len(labels)), labels]).mean()

    best = minimize(loss, np.zeros(3))
    assert found.log_temperature == pytest.approx(-best.x[0], abs=0.04)
    assert np.log(1.15) == pytest.approx(found.log_temperature, abs=4 * found.log_temperature_error)


def test_score_and_information_are_derivatives_of_the_log_likelihood(world):
    calibrator, logits, labels = (world[0], world[1][:50], world[2][:50])
    probs = calibrator.predict_proba(logits)
    limits = allowed(calibrator.model_)
    sums, groups = sum_labelled(probs, labels, limits), limits.class_groups

    def log_likelihood(theta):
        u = np.exp(theta[0]) * np.log(probs) + theta[1:][groups]
        return np.log(softmax(u, axis=1)[np.arange(50), labels]).sum()

    step = 1e-5
    for i, direction in enumerate(np.eye(4)):
        slope = (log_likelihood(step * direction) - log_likelihood(-step * direction)) / (2 * step)
        assert sums.score[i] == pytest.approx(slope, abs=1e-5)
    u, n = np.log(probs), len(labels)
    derivative = np.concatenate([u[:, None, :], np.broadcast_to(np.eye(3)[groups].T, (n, 3, 3))], axis=1)
    centred = derivative - np.einsum("nk,nik->ni", probs, derivative)[:, :, None]
    expected = np.einsum("nk,nik,njk->ij", probs, centred, centred)
    np.testing.assert_allclose(sums.information, expected, atol=1e-9)


@pytest.mark.parametrize("groups", [None, np.arange(6000) % 7], ids=["rows", "groups"])
def test_blocks_give_the_same_as_the_whole(world, monkeypatch, groups):
    """A group can have rows in several blocks."""
    whole = monitoring.check(*world, groups=groups)
    monkeypatch.setattr("temperance.monitoring.sums.BLOCK_LOGITS", 300)
    parts = monitoring.check(*world, groups=groups)
    assert parts.log_e == pytest.approx(whole.log_e, rel=1e-9)
    assert parts.records[0].rows_digest == whole.records[0].rows_digest
    for name, value in vars(parts.records[0].labelled).items():
        wanted = getattr(whole.records[0].labelled, name)
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9, err_msg=name)


def test_one_row_a_day_and_masked_classes_work(world):
    calibrator, logits, labels = world
    found = monitoring.check(calibrator, logits[:1], labels[:1])
    assert (found.action, found.rows) == ("keep", 1)
    masked = logits[:200].copy()
    masked[np.arange(200), (labels[:200] + 1) % 3] = -np.inf
    found = monitoring.check(calibrator, masked, labels[:200])
    assert np.isfinite(found.log_e)
    impossible = monitoring.check(calibrator, masked, (labels[:200] + 1) % 3)
    assert impossible.action == "inspect"
    assert np.isfinite(impossible.change.log_temperature)


def test_many_classes_work(world):
    task = simulate(n_rows=3000, n_classes=60, random_state=0)
    calibrator = make_calibrator("ts").fit(task.logits[:1500], task.labels[:1500])
    found = monitoring.check(calibrator, task.logits[1500:], task.labels[1500:])
    assert found.action == "keep"
    assert found.records[0].labelled.capitals.shape[-1] == 1
    assert found.records[0].labelled.information.shape == (33, 33)


def test_the_allowed_gap_grows_as_the_fit_shrinks_and_holds_zero():
    task = simulate(n_rows=3000, n_classes=3, random_state=3)
    small, large = (make_calibrator("ts").fit(task.logits[:n], task.labels[:n]) for n in (200, 3000))
    narrow, wide = allowed(large.model_), allowed(small.model_)
    assert wide.high[0] - wide.low[0] > 1.5 * (narrow.high[0] - narrow.low[0])
    for limits in (narrow, wide):
        assert (limits.low < 0).all()
        assert (limits.high > 0).all()
    more = allowed(large.model_, 0.1)
    np.testing.assert_allclose(more.high[0] - max(more.at_fit[0], 0.0), 0.1)


def test_the_result_is_plain_data_and_prints_itself(world, noisy):
    found = monitoring.check(world[0], world[1], noisy)
    plain = found.to_dict()
    assert json.loads(json.dumps(plain))["action"] == "refit"
    assert "<b>Act: refit. Confidence is too high: 78.9% on average, " in found._repr_html_()
    assert str(found).splitlines() == found.sentences
    assert "check(" not in found.words


def test_names_are_escaped_and_labels_may_be_names(world):
    calibrator = make_calibrator("ts").fit(
        world[1][:1000], world[2][:1000], classes=["<a>", "b", "c"]
    )  # fmt: skip
    wrong = np.array(["<a>", "b", "c"])[np.zeros(500, int)]
    found = monitoring.check(calibrator, world[1][1000:1500], wrong)
    assert found.acts
    assert "&lt;a&gt;" in found._repr_html_()
    assert "<a>" not in found._repr_html_()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tolerance": -0.1}, "tolerance must be a number between 0 and 0.5"),
        ({"alpha": 0.0}, "alpha must be a number between 0 and 0.5"),
        ({"labels": [0, 1]}, "found 2 labels for 6000 rows"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight must be"),
    ],
)
def test_wrong_arguments_are_refused(world, options, words):
    with pytest.raises(InputError, match=words):
        monitoring.check(world[0], world[1], **options)


def test_no_rows_and_fits_without_a_baseline_are_refused(world):
    with pytest.raises(InputError, match="check needs rows, and there are none"):
        monitoring.check(world[0], world[1][:0])
    model = world[0].model_
    with pytest.raises(InputError, match="Fit it again with this version"):
        monitoring.check(replace(model, record=FitRecord()), np.zeros((3, model.n_classes)))
