"""Two classes are judged by P(positive): what a change of risk, of labels or of inputs leads to."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax

from temperance import InputError, load, make_calibrator, metrics, monitoring
from temperance.monitoring.repairs import _implied
from temperance.monitoring.sums import allowed

POPULATION = {"2%": (-5.0, 1.5), "24%": (-1.9, 1.9)}
CHANGED = 6  # the week from which on something is different


def week(kind, rows, rng, change=""):
    """Return scores of two classes and labels; `change` is what is different."""
    mean, deviation = POPULATION[kind]
    x = rng.normal(mean, deviation, 40 * rows if change == "labels" else rows)
    risk = expit(x + 0.8 * (change == "log-odds"))
    labels = rng.random(len(x)) < np.minimum(1.6 * risk if change == "risk" else risk, 1)
    if change == "labels":  # the same scores in each class, another frequency
        positive = rng.binomial(rows, 0.5)
        at = [rng.choice(np.flatnonzero(labels == y), n) for y, n in ((1, positive), (0, rows - positive))]
        x, labels = x[np.concatenate(at)], labels[np.concatenate(at)]
    return x, labels.astype(int)


def fitted(kind, rows, rng, **options):
    x, labels = week(kind, rows, rng)
    return make_calibrator("bayes-bias").fit(x, labels, classes=["no", "default"], **options)


def weeks(calibrator, kind, rows, rng, change, path, last):
    """Yield the checks of weeks, of which those from `CHANGED` on have a change, until one says act."""
    for number in range(1, last + 1):
        new = week(kind, rows, rng, change if number >= CHANGED else "")
        found = monitoring.check(calibrator, *new, history=path, name=f"week {number}")
        yield number, found
        if found.acts:
            return


def test_a_risk_of_1_6_times_the_prediction_is_found_within_weeks(tmp_path):
    delays = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        calibrator = fitted("2%", 5000, rng)
        for number, found in weeks(calibrator, "2%", 1600, rng, "risk", tmp_path / f"{seed}.jsonl", 20):
            if number < CHANGED:
                assert found.state != "act"
            if number >= CHANGED + 2:
                assert "No change" not in found.words
        delays.append(number - CHANGED + 1 if found.acts else np.inf)
    assert np.median(delays) <= 8


def test_higher_log_odds_are_seen_at_once_and_lead_to_a_new_fit(tmp_path):
    """In about one first week of 60, chance hides that the frequencies alone do not explain it."""
    advice = []
    for seed in range(5):
        rng, history = np.random.default_rng(seed), tmp_path / f"{seed}.jsonl"
        calibrator = fitted("24%", 3000, rng)
        for number in range(1, CHANGED + 2):
            change = "log-odds" if number >= CHANGED else ""
            found = monitoring.check(calibrator, *week("24%", 800, rng, change), history=history)
            assert (found.state == "keep") == (number < CHANGED)
            assert found.sentences[0].startswith(found.state.capitalize())
            advice += [found.action] * (number >= CHANGED)
        assert found.action == "refit"
        assert found.repairs.adapted < found.repairs.loss
        implied, mean = 100 * found.repairs.implied, 100 * found.repairs.mean
        said = f"If only the frequencies had changed, P(default) would average {implied:.1f}%; it averages"
        assert f"{said} {mean:.1f}%." in found.words
        losses = f"{found.repairs.adapted:.4f} adapted, {found.repairs.refitted:.4f} refitted (5 folds)."
        assert f"Log loss on these 800 rows: {found.repairs.loss:.4f} as it is, {losses}" in found.words
    assert advice.count("adapt") <= 1


def test_another_frequency_of_labels_leads_to_adapting_and_then_to_keep():
    advice = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        calibrator = fitted("24%", 3000, rng)
        found = monitoring.check(calibrator, *week("24%", 800, rng, "labels"))
        advice.append(found.action)
        if found.action == "adapt":
            assert "which chance explains" in found.words
            adapted = calibrator.adapt(priors=found.frequencies)
            again = monitoring.check(adapted, *week("24%", 800, rng, "labels"))
            assert again.state == "keep"
    assert advice.count("adapt") >= 4


def test_the_means_by_label_are_those_before_the_calibrator_was_adapted():
    rng = np.random.default_rng(0)
    calibrator = fitted("24%", 3000, rng)
    x, labels = week("24%", 800, rng, "log-odds")
    adapted = calibrator.adapt(priors=[0.5, 0.5])
    one, other = (monitoring.check(c, x, labels).records[0].labelled.by_label for c in (calibrator, adapted))
    np.testing.assert_allclose(one, other, rtol=1e-9)
    p, groups = calibrator.predict_proba(x), allowed(calibrator.model_).class_groups
    for y in (0, 1):
        for power in (1, 2):
            wanted = (p[labels == y] ** power).sum(axis=0)
            np.testing.assert_allclose(one[power - 1, groups[y], groups], wanted, rtol=1e-9)


def test_what_frequencies_imply_is_as_defined():
    rng = np.random.default_rng(1)
    x0, y0 = week("24%", 3000, rng)
    calibrator = make_calibrator("bayes-bias").fit(x0, y0)
    x, y = week("24%", 800, rng, "log-odds")
    found = monitoring.check(calibrator, x, y)
    p0, p = calibrator.predict_proba(x0)[:, 1], calibrator.predict_proba(x)[:, 1]
    share = np.bincount(y) / len(y)
    implied = sum(share[k] * p0[y0 == k].mean() for k in (0, 1))
    variance = sum(
        share[k] ** 2 * (p[y == k].var() / (y == k).sum() + p0[y0 == k].var() / (y0 == k).sum())
        for k in (0, 1)
    )
    column, said, mean, is_implied = _implied(found.records[0].labelled, found.limits)
    assert (column, is_implied) == (1, abs(p.mean() - implied) <= 1.96 * np.sqrt(variance))
    assert (said, mean) == (pytest.approx(implied), pytest.approx(p.mean()))
    assert (found.repairs.implied, found.repairs.mean) == (said, mean)


def test_a_week_outside_its_range_is_watched_however_little_evidence_there_is(tmp_path):
    """Twenty weeks as at the fit, then one with a default rate far outside: z = 7.3."""
    rng = np.random.default_rng(3)
    calibrator, history = fitted("24%", 3000, rng), tmp_path / "checks.jsonl"
    for _ in range(20):
        before = monitoring.check(calibrator, *week("24%", 300, rng), history=history, alpha=1e-12)
    x, labels = week("24%", 300, rng)
    p = calibrator.predict_proba(x)[:, 1]
    error = np.sqrt((p * (1 - p)).sum())
    more = int(np.ceil(p.sum() + 7.3 * error - labels.sum()))
    labels[np.flatnonzero(labels == 0)[np.argsort(-p[labels == 0])[:more]]] = 1
    found = monitoring.check(calibrator, x, labels, history=history, alpha=1e-12)
    assert before.state == "keep"
    assert (found.state, found.alarm) == ("watch", False)
    assert "P(default) is too low" in found.sentences[0]
    assert "No change" not in found.words


def test_two_classes_have_one_residual_and_the_limits_of_the_definition():
    rng = np.random.default_rng(0)
    x, y = week("2%", 9000, rng)
    calibrator = make_calibrator("bayes-bias").fit(x, y)
    limits, p = allowed(calibrator.model_), calibrator.predict_proba(x)
    assert limits.columns.tolist() == [-1, 1]
    top = p.max(axis=1)
    frequency, residual = (y.sum() + 0.5) / 9001, (y - p[:, 1]).mean()
    for i, (spread, at_fit, tolerance) in enumerate(
        (
            (top * (1 - top), ((p.argmax(axis=1) == y) - top).mean(), 0.02),
            (p[:, 0] * p[:, 1], residual, min(0.02, 0.2 * frequency)),
        )
    ):
        error = np.sqrt((spread.mean() + 1 / 9000) / 9000)
        own = max(tolerance, 2.5 * error)
        assert limits.errors[i] == pytest.approx(error, rel=0.1 if i == 0 else 1e-6)
        assert limits.low[i] == pytest.approx(min(0, at_fit) - own, rel=0.1 if i == 0 else 1e-6)
        assert limits.high[i] == pytest.approx(max(0, at_fit) + own, rel=0.1 if i == 0 else 1e-6)


def test_limits_get_narrower_with_every_row_of_the_fit():
    rng = np.random.default_rng(0)
    rows = week("2%", 12_000, rng)
    few, many = (
        allowed(make_calibrator("bayes-bias").fit(rows[0][:n], rows[1][:n]).model_) for n in (4000, 12_000)
    )
    assert many.errors[1] == pytest.approx(few.errors[1] / np.sqrt(3), rel=0.15)


def test_the_positive_class_is_that_of_the_fit_or_the_one_that_is_named(tmp_path):
    rng = np.random.default_rng(0)
    calibrator = fitted("24%", 3000, rng, positive="no")
    new = week("24%", 800, rng)
    history = tmp_path / "checks.jsonl"
    found = monitoring.check(calibrator, *new, history=history)
    assert found.sentences[0].startswith("Keep. P(no) fits: ")
    named = monitoring.check(calibrator, *new, positive="default")
    assert named.sentences[0].startswith("Keep. P(default) fits: ")
    assert named.log_e == pytest.approx(found.log_e)  # the same residual, negated
    assert named.gap_limits == pytest.approx(tuple(-end for end in found.gap_limits[::-1]))
    with pytest.raises(InputError, match=r"positive must be the same .* began with no; found default.*'no'"):
        monitoring.check(calibrator, *week("24%", 800, rng), history=history, positive="default")


def test_a_file_without_the_means_by_label_never_leads_to_adapting(tmp_path):
    rng = np.random.default_rng(0)
    calibrator = fitted("24%", 3000, rng)
    record = calibrator.model_.record
    unknown = {"fit_rows": None, "label_means": None, "label_variances": None}
    old = replace(calibrator.model_, record=replace(record, baseline=replace(record.baseline, **unknown)))
    new = week("24%", 800, rng, "labels")
    assert monitoring.check(calibrator, *new).action == "adapt"
    found = monitoring.check(old, *new)
    assert found.action == "refit"
    assert "Whether adapting would be enough is not known: the fit did not record it." in found.words
    calibrator.save(tmp_path / "cal.json")
    assert monitoring.check(load(tmp_path / "cal.json"), *new).action == "adapt"


def test_labels_that_the_fit_did_not_have_never_lead_to_adapting():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, (2000, 3)) - [0, 0, 9]
    labels = (softmax(z, axis=1).cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)
    labels[labels == 2] = 0
    calibrator = make_calibrator("ts").fit(z[:1000], labels[:1000])
    new = np.where(np.arange(1000) % 4 == 0, 2, labels[1000:])
    found = monitoring.check(calibrator, z[1000:], new)
    assert found.acts
    assert found.action != "adapt"
    assert not found.repairs or not found.repairs.is_implied


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 400),
    n_classes=st.sampled_from([2, 3]),
    shift=st.sampled_from([0.0, 0.0, 1.0]),
    positive=st.sampled_from([None, 0, 1]),
    seed=st.integers(0, 2**16),
)
def test_the_state_of_these_rows_is_that_of_evaluate(rows, n_classes, shift, positive, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, (1000 + rows, n_classes))
    odds = z + shift * (np.arange(len(z)) >= 1000)[:, None] * np.eye(n_classes)[0]
    labels = (softmax(odds, axis=1).cumsum(axis=1) < rng.random((len(z), 1))).sum(axis=1)
    calibrator = make_calibrator("ts").fit(z[:1000], labels[:1000])
    weights = rng.choice([0.0, 1.0, 2.0], rows) + (np.arange(rows) == 0)
    found = monitoring.check(calibrator, z[1000:], labels[1000:], sample_weight=weights, positive=positive)
    probs = calibrator.predict_proba(z[1000:])
    evaluated = metrics.evaluate(probs, labels[1000:], sample_weight=weights, positive=positive, draws=2)
    assert found.finding == evaluated.finding or str(found.finding) == str(evaluated.finding)
    assert found.finding.state == evaluated.finding.state
    assert f"These rows alone: {evaluated.finding.words}" in found.sentences
