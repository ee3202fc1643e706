"""The verdict: sentences that follow from the numbers, the same everywhere."""

import json

import numpy as np
import pytest
from method_results import finding
from method_results import method_result as result
from scipy.stats import t

from temperance import InputError, compare
from temperance.comparison.method_result import Difference, MethodResult
from temperance.comparison.recommendation import Recommendation, recommend
from temperance.comparison.verdict import give_verdict
from temperance.data import simulate
from temperance.metrics import Evaluation, ece
from temperance.metrics.finding import State
from temperance.metrics.intervals import Estimate, distances, spread


def verdict_of(recommended="ts", *, keeps_class=True, **methods):
    return give_verdict(methods, Recommendation(recommended, ""), keeps_class=keeps_class)


def test_a_clear_gain_is_better():
    calibrated = result(0.35, said=0.901, noise=0.01, calibration_error=0.004)
    verdict = verdict_of(none=result(0.4, calibration_error=0.07), ts=calibrated)
    assert verdict.outcome == "better"
    assert verdict.sentences == (
        "Calibrate with ts.",
        "Before calibration: overconfident by 7.0 points (mean confidence 97.0%, accuracy 90.0%); after: "
        "overconfident by 0.1 points.",
        "Better: the log loss falls from 0.4000 to 0.3500, by 0.0500 (95% interval 0.0304 to 0.0696); the "
        "ECE falls from 7.00% to 0.40%. After calibration: No miscalibration is detectable: confidence "
        "90.1%, accuracy 90.0% (p = 0.50).",
        "Before calibration: No miscalibration is detectable: confidence 97.0%, accuracy 90.0% (p = 0.50).",
        "All predictions stay the same.",
    )


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (0.9, "after: confidence equal to accuracy."),
        (0.869, "after: underconfident by 3.1 points."),
        (0.931, "after: overconfident by 3.1 points."),
    ],
)
def test_the_headline_has_the_gap_with_its_sign(said, words):
    verdict = verdict_of(none=result(0.4, said=0.931), ts=result(0.35, said=said, noise=0.01))
    assert "overconfident by 3.1 points (mean confidence 93.1%, accuracy 90.0%)" in verdict.headline
    assert verdict.headline.endswith(words)
    assert verdict.to_dict()["after"]["gap"] == pytest.approx(said - 0.9)


@pytest.mark.parametrize(
    ("state", "p_value", "outcome", "words"),
    [
        (
            "none",
            0.2,
            "better",
            "No miscalibration is detectable: confidence 90.1%, accuracy 90.0% (p = 0.20).",
        ),
        ("too few", 0.2, "better", "Too few rows to tell: confidence 90.1%, accuracy 90.0% (p = 0.20)."),
        (
            "gap",
            1e-9,
            "improved",
            "Overconfident by 0.1 points (-0.9 to 1.1): confidence 90.1%, accuracy 90.0%.",
        ),
    ],
)
def test_nothing_is_better_without_reserve_if_the_test_still_rejects(state, p_value, outcome, words):
    calibrated = result(0.35, said=0.901, noise=0.01, state=State(state), p_value=p_value)
    verdict = verdict_of(none=result(0.4), ts=calibrated)
    assert (verdict.outcome, verdict.p_value) == (outcome, p_value)
    assert verdict.answer[-1].startswith(f"{outcome.capitalize()}: the log loss falls")
    assert verdict.answer[-1].endswith(f"After calibration: {words}")
    left = verdict_of(
        "none", none=result(0.4, state=State(state), p_value=p_value), ts=result(0.41, noise=0.02)
    )
    assert (left.headline, left.p_value) == (str(left.before.finding), p_value)


# ---- Two classes


def two(nll, **settings):
    return result(nll, n_classes=2, **settings)


def test_of_two_classes_the_averages_are_the_headline():
    before = two(0.105, mean=0.0162, rate=0.0253, state=State.LEVEL, p_value=1e-4)
    after = two(0.1, mean=0.0243, rate=0.0253)
    verdict = verdict_of("bayes-bias", none=before, **{"bayes-bias": after})
    assert verdict.headline == "P(yes) before: 1.62% for 2.53% observed (O/E 1.56). After: 2.43% (O/E 1.04)."
    assert verdict.remaining_in_words.startswith(
        "After calibration: No miscalibration is detectable: P(yes) 2.4"
    )
    assert "Before calibration: P(yes) is too low: 1.62% on average, 2.53% observed" in verdict.notes[0]
    assert "confident" not in str(verdict)
    alone = verdict_of("none", none=before, **{"bayes-bias": two(0.11)})
    assert alone.headline == "P(yes) is too low: 1.62% on average, 2.53% observed (O/E 1.56, 1.55 to 1.57)."
    assert "confident" not in str(alone)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reversed_columns_are_the_headline_whatever_is_gained(n_classes):
    before = result(2.0, n_classes=n_classes, state=State.REVERSED, p_value=0.0)
    methods = {
        "none": before,
        "bayes-bias": result(0.1, n_classes=n_classes, changed_share=0.99, right=0.977),
    }
    found = recommend(methods)
    verdict = give_verdict(methods, found, keeps_class=False)
    assert (found.method, verdict.outcome) == ("none", "reversed")
    assert verdict.answer == ("Check the labels and the order of the columns.", str(before.scores.finding))
    assert "Calibrate with" not in str(verdict)
    assert "rises" not in str(verdict)


@pytest.mark.parametrize(
    ("nll", "few", "words"),
    [
        (0.395, None, "falls from 0.4000 to 0.3950, by 0.0050 (95% interval -0.0146 to 0.0246), which"),
        (0.405, None, "rises from 0.4000 to 0.4050, by 0.0050 (95% interval -0.0146 to 0.0246), which"),
        (0.40001, None, "stays at 0.4000 (95% interval -0.0196 to 0.0196 for the change), which is"),
        (
            0.5,
            "4 rows of class yes",
            "rises from 0.4000 to 0.5000, by 0.1000 (95% interval 0.0804 to 0.1196)",
        ),
    ],
)
def test_a_recommended_method_without_a_gain_is_one_of_two_choices(nll, few, words):
    methods = {"none": two(0.4), "bayes-bias": two(nll, noise=0.01)}
    verdict = give_verdict(methods, Recommendation("bayes-bias", "", few=few), keeps_class=False)
    if verdict.nll_gain.value > 0:
        assert (verdict.advice, verdict.outcome) == ("Calibrate with bayes-bias.", "possibly better")
    else:
        or_none = ", or leave it: no difference shows."
        assert (verdict.advice, verdict.outcome) == (f"Calibrate with bayes-bias{or_none}", "no difference")
    assert f"{verdict.outcome.capitalize()}: the log loss {words}" in verdict.gain_in_words
    assert (f", with {few}; more" in verdict.gain_in_words) == (few is not None)


def test_the_choice_on_these_rows_is_told():
    methods = {"none": result(0.4), "ts": result(0.35, noise=0.01), "bayes": result(0.36)}
    among = Recommendation("ts", "", candidates=tuple(methods))
    told = give_verdict(methods, among, keeps_class=True)
    assert (
        told.notes[-1] == "The method was chosen on the rows of these figures: they are slightly optimistic."
    )


def test_the_alternative_is_told_with_its_own_numbers():
    biased = result(0.3, said=0.88, right=0.88, changed_share=0.12)
    methods = {"none": result(0.4, right=0.83), "ts": result(0.39, calibration_error=0.0123), "b": biased}
    told = give_verdict(methods, Recommendation("b", "", "ts"), keeps_class=False)
    words = "If all predictions must stay the same, calibrate with ts (log loss 0.3900, ECE 1.23%)."
    assert told.predictions_in_words.endswith(words)
    assert told.to_dict()["alternative_scores"]["nll"] == pytest.approx(0.39)


@pytest.mark.parametrize(
    ("recommended", "nll", "noise", "outcome", "words"),
    [
        (
            "ts",
            0.385,
            0.01,
            "probably better",
            "Probably better: the log loss falls from 0.4000 to 0.3850, by 0.0150 (95% interval -0.0046 to "
            "0.0346); the ECE, 5.00% before and 5.00% after, does not change detectably. The interval of the "
            "log loss includes 0; more labelled rows would help to decide.",
        ),
        (
            "ts",
            0.395,
            0.01,
            "possibly better",
            "Possibly better: the log loss falls from 0.4000 to 0.3950, by 0.0050 (95% interval -0.0146 to "
            "0.0246), which is less than one standard error; more labelled rows would help to decide.",
        ),
        (
            "none",
            0.5,
            0.01,
            "worse",
            "Worse: every candidate raises the log loss, 0.4000; the best, ts, by 0.1000 (95% interval "
            "0.0804 to 0.1196).",
        ),
    ],
)
def test_the_outcome_follows_the_interval_of_the_gain(recommended, nll, noise, outcome, words):
    methods = {"none": result(0.4), "ts": result(nll, noise=noise), "hts": result(0.6)}
    verdict = verdict_of(recommended, **methods)
    assert (verdict.outcome, verdict.gain_in_words) == (outcome, words)


def test_without_any_method_there_is_no_difference():
    alone = verdict_of("none", none=result(0.4))
    assert (alone.outcome, alone.gain_in_words) == ("no difference", "No method was tried.")


def test_a_rising_calibration_error_is_not_reported_as_falling():
    before = result(0.4, said=0.91, calibration_error=0.01)
    after = result(0.3, said=0.99, calibration_error=0.09)
    assert "rises from 1.00% to 9.00%" in verdict_of(none=before, ts=after).gain_in_words


def test_without_a_recommendation_the_verdict_is_about_the_best_method_tried():
    verdict = verdict_of("none", none=result(0.4), ts=result(0.41, noise=0.02), hts=result(0.5))
    assert (verdict.method, verdict.tried, verdict.outcome) == ("none", "ts", "no difference")
    assert verdict.sentences == (
        "Leave the classifier as it is.",
        "No miscalibration is detectable: confidence 97.0%, accuracy 90.0% (p = 0.50).",
        "No gain that matters: the best method, ts, changes the log loss, 0.4000, by +0.0100 (95% interval "
        "-0.0293 to 0.0493).",
    )


def test_a_class_bias_reports_what_it_changes():
    biased = result(0.3, said=0.88, right=0.88, changed_share=0.12)
    verdict = verdict_of(
        "bayes-bias", keeps_class=False, none=result(0.4, right=0.83), **{"bayes-bias": biased}
    )
    assert verdict.headline.endswith(
        "after: confidence equal to accuracy (mean confidence 88.0%, accuracy 88.0%)."
    )
    assert (
        verdict.sentences[-1]
        == "bayes-bias changes 12.0% of predictions; accuracy rises from 83.0% to 88.0%."
    )
    unchanged = verdict_of("b", keeps_class=False, none=result(0.4), b=result(0.3))
    assert unchanged.sentences[-1] == "b can change predictions, but changes none on these rows."


@pytest.fixture(scope="module")
def compared():
    task = simulate(2400, 3, random_state=5)
    weights = np.random.default_rng(1).uniform(0.2, 2, 2400)
    return compare(task.logits, task.labels, methods=["ts"], sample_weight=weights, draws=50)


def test_the_numbers_are_those_of_the_rows(compared):
    before, after = compared.results["none"], compared.results["ts"]
    verdict, share = compared.verdict, compared.judged.weights / compared.judged.weights.sum()
    difference = before.row_nll - after.row_nll
    assert verdict.nll_gain.value == pytest.approx(share @ difference)
    lengths = verdict.nll_gain.value - verdict.nll_gain.low, verdict.nll_gain.high - verdict.nll_gain.value
    (of_error, chance), of_other = before.pseudo_nll, after.pseudo_nll[0]
    pseudo = of_error - of_other - share @ difference, chance
    error, skewness, rows = spread(difference - share @ difference, share, pseudo)
    error *= 1.5  # of five folds
    skewed = distances(skewness, rows, 0.95)
    assert lengths == pytest.approx(np.array(skewed) * error)
    assert sum(lengths) == pytest.approx(2 * t.ppf(0.975, 2400) * error, rel=0.02)
    assert verdict.before.confidence == pytest.approx(share @ before.confidence)
    assert verdict.after.accuracy == pytest.approx(share @ after.correct)
    assert verdict.ece_gain.value == pytest.approx(verdict.before.ece - verdict.after.ece, abs=1e-12)


def test_the_error_of_a_paired_calibration_error_is_that_of_resamples():
    """Far from a gap of 0 in every bin, where the standard error of a resampled difference has a meaning."""
    rng, n_rows = np.random.default_rng(0), 4000
    confidence = rng.uniform(0.5, 1, n_rows)
    correct = rng.uniform(size=n_rows) < confidence - 0.25
    milder = 0.5 + (confidence - 0.5) * 0.7

    def judged(values):
        probs = np.stack([values, 1 - values], axis=1)
        scores = {"ece": Estimate(ece(probs, ~correct * 1), 0, 1), "accuracy": Estimate(0.5, 0, 1)}
        evaluation = Evaluation(scores, n_rows, 2, 15, 0.95, 1, finding=finding())
        share = np.full(n_rows, 1 / n_rows)
        return MethodResult("m", None, 1, evaluation, -np.log(values), values, correct, share, 0.0, 0.0, ())

    gain = verdict_of(none=judged(confidence), ts=judged(milder)).ece_gain
    drawn = []
    for _ in range(300):
        rows = rng.integers(n_rows, size=n_rows)
        labels = ~correct[rows] * 1
        errors = [ece(np.stack([v[rows], 1 - v[rows]], axis=1), labels) for v in (confidence, milder)]
        drawn.append(errors[0] - errors[1])
    assert gain.error == pytest.approx(np.std(drawn), rel=0.15)


def test_one_object_feeds_python_json_and_the_printed_comparison(compared):
    verdict, told = compared.verdict, json.loads(json.dumps(compared.to_dict()))
    assert told["verdict"] == str(verdict) == " ".join(verdict.sentences)
    assert told["outcome"] == verdict.outcome
    assert told["before"]["confidence"] == verdict.before.confidence
    assert told["nll_gain"]["low"] == verdict.nll_gain.low
    shown = " ".join(str(compared).split())
    assert all(sentence in shown for sentence in verdict.sentences)


def test_difference_of_equal_rows_is_0():
    assert Difference.of(np.zeros(3), np.full(3, 1 / 3)) == Difference(0.0, 0.0)


def test_two_rows_show_no_difference():
    task = simulate(60, 3, random_state=1)
    two = np.unique(task.labels, return_index=True)[1][:2]
    rows = {"test_logits": task.logits[two] + 1e-3, "test_labels": task.labels[two]}
    found = compare(task.logits, task.labels, methods=["ts"], draws=5, **rows)
    assert found.verdict.outcome == "no difference"
    assert found.recommended == "none"
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["nll_gain"]["value"] is not None


@pytest.mark.parametrize("by_folds", [False, True])
def test_no_method_is_better_than_a_calibrated_accurate_classifier(by_folds):
    """No error among the rows is no evidence: labels are drawn from the classifier's own probabilities."""
    outcomes = []
    for seed in range(15 if by_folds else 25):
        rng = np.random.default_rng([seed, by_folds])
        labels = rng.integers(2, size=400)
        logits = np.column_stack([np.zeros(400), 4.5 * (rng.normal(size=400) + 4.5 * (labels - 0.5))])
        rows = (logits[:200], labels[:200], logits[200:], labels[200:])
        verdict = compare(*rows[: 2 if by_folds else 4], draws=1, progress=False).verdict
        outcomes.append(str(verdict.outcome))
    assert outcomes.count("better") <= 1
    assert outcomes.count("worse") <= 1


# ---- Labels that do not belong to the rows


@pytest.mark.parametrize("by_folds", [False, True])
def test_labels_no_better_than_chance_are_the_headline(by_folds):
    for seed in range(3):
        task = simulate(600, 5, random_state=seed)
        labels = np.random.default_rng(seed).permutation(task.labels)
        rows = (task.logits[:300], labels[:300], task.logits[300:], labels[300:])
        found = compare(*rows[: 2 if by_folds else 4], draws=1, progress=False)
        verdict = found.verdict
        assert verdict.outcome == "no better than chance"
        assert (found.recommended, verdict.method, found.calibrator) == ("none", "none", None)
        assert found.reason.startswith("No method has a lower log loss than the class frequencies")
        assert str(found).startswith(
            "Check the labels before you calibrate.\nThe classifier is no better than"
        )
        frequencies = np.bincount(found.judged.labels) / 300
        assert verdict.chance_nll == pytest.approx(-frequencies @ np.log(frequencies))


@pytest.mark.parametrize("n_rows", [20, 300])
def test_a_weak_or_overconfident_classifier_is_better_than_chance(n_rows):
    for seed in range(10):
        task = simulate(n_rows, 3, sharpness=2.0, temperature=5.0, random_state=seed)
        found = compare(task.logits, task.labels, draws=1, progress=False)
        assert found.verdict.chance_nll is None
    with pytest.raises(InputError, match="needs labels of at least two classes"):
        compare(task.logits, np.zeros(n_rows, int), draws=1, progress=False)
