"""The rule that chooses a method: the default, unless another candidate is better by a gain that matters."""

from dataclasses import replace

import numpy as np
import pytest
from method_results import N_ROWS
from method_results import method_result as method
from scipy.special import softmax

from temperance import CALIBRATORS, compare
from temperance.comparison.recommendation import DEFAULT_METHODS, recommend
from temperance.data import demo_task, simulate
from temperance.inputs.containers import LabelledRows
from temperance.metrics import nll

ERROR = 0.01


def four(**others):
    """Return results of the default methods, with others in the place of some."""
    return {
        "none": method(0.9, n_parameters=0),
        "ts": method(0.5),
        "bayes": method(0.4, n_parameters=8),
        "bayes-bias": method(0.4, n_parameters=12, changed_share=0.12),
    } | {name.replace("_", "-"): result for name, result in others.items()}


def changing(mean_nll, **settings):
    return method(mean_nll, **({"n_parameters": 12, "changed_share": 0.12, "noise": ERROR} | settings))


@pytest.mark.parametrize(
    ("bias", "chosen"),
    [
        (changing(0.4 - 2.6 * ERROR, noise=10 * ERROR), "bayes-bias"),
        (changing(0.4 - 2.4 * ERROR, noise=10 * ERROR), "bayes"),  # less than a quarter of a standard error
        (changing(0.4 - 0.0079, noise=0.0), "bayes"),  # less than 2 %
        (changing(0.4 - 0.0081, noise=0.0), "bayes-bias"),
        (changing(0.4 - 0.0041, noise=0.0, changed_share=0.0), "bayes-bias"),  # 1 %, as every decision stays
        (changing(0.4 - 0.0039, noise=0.0, changed_share=0.0), "bayes"),
        (changing(0.4 - 2.4 * ERROR, noise=10 * ERROR, changed_share=0.0), "bayes"),
    ],
)
def test_another_method_needs_a_gain_that_matters(bias, chosen):
    found = recommend(four(bayes_bias=bias))
    assert found.method == chosen
    assert found.alternative == ("bayes" if chosen != "bayes" and bias.changes_decisions else None)


@pytest.mark.parametrize(("gain", "chosen"), [(2.1, "mine"), (1.9, "bayes")])
def test_a_method_without_a_prior_needs_two_standard_errors(gain, chosen):
    for share in (0.0, 0.1):
        mine = changing(0.4 - gain * ERROR, changed_share=share)
        assert recommend(four(mine=mine)).method == chosen


def test_by_folds_a_difference_includes_the_noise_of_the_fits():
    for folds, chosen in ((None, "mine"), (5, "bayes")):  # 1.5 times the error
        results = four(mine=method(0.4 - 2.5 * ERROR, noise=ERROR))
        results = {name: replace(result, folds=folds) for name, result in results.items()}
        assert recommend(results).method == chosen


def test_a_method_does_not_qualify_by_its_own_large_error():
    noisy = method(0.395, n_parameters=2, noise=0.1)
    assert recommend(four(hts=noisy)).method == "bayes"
    assert recommend({"none": method(0.5, n_parameters=0), "ts": method(0.4), "hts": noisy}).method == "ts"


@pytest.mark.parametrize(("ts", "chosen"), [(0.3959, "ts"), (0.3961, "bayes"), (0.41, "bayes")])
def test_a_simpler_method_needs_the_same_gain(ts, chosen):
    assert recommend(four(ts=method(ts))).method == chosen


def test_of_several_methods_a_more_complex_one_needs_a_gain_over_the_simpler_one():
    results = four(ts=method(0.3), lts=method(0.2999, n_parameters=4), mono=method(0.29, n_parameters=9))
    assert recommend(results).method == "mono"
    del results["mono"]
    assert recommend(results).method == "ts"


def test_the_reasons():
    found = recommend(four(bayes_bias=changing(0.4 - 2.5 * ERROR)))
    assert found.reason == (
        "Its log loss is lower than with bayes, the choice among methods that keep all predictions, by "
        "0.0250 \u00b1 0.0100, a gain of 2% or more."
    )
    found = recommend(four(bayes_bias=changing(0.4 - 0.5 * ERROR)))
    assert found.reason == (
        "It is the default; no other candidate is better by a gain that matters. "
        "bayes-bias has a log loss lower by 0.0050 \u00b1 0.0100 and would change 12.0% of predictions; a "
        "gain of 2% is needed."
    )
    found = recommend(four(ts=method(0.4 - 1.5 * ERROR, noise=ERROR)))
    assert found.reason.endswith("ts has a log loss lower by 0.0150 \u00b1 0.0100; that is too uncertain.")
    found = recommend(four(ts=method(0.3)))
    assert found.reason == (
        "Its log loss is lower than with bayes, the default, by 0.1000 \u00b1 0.0000, a gain of 1% or more."
    )
    results = {"none": method(0.5, n_parameters=0), "ts": method(0.495, noise=ERROR)}
    found = recommend(results)
    assert found.reason == (
        "ts, the simplest method, does not lower the log loss by 1 standard error (0.0050 \u00b1 0.0100)."
    )
    results = {"none": method(0.5, n_parameters=0), "bayes": method(0.499, noise=0.1 * ERROR)}
    found = recommend(results)
    assert found.reason == ("bayes, the default, lowers the log loss by less than 1% (0.0010 \u00b1 0.0010).")


def test_only_candidates_are_recommended():
    results = four(hts=method(0.2, n_parameters=2))
    found = recommend(results, DEFAULT_METHODS)
    assert (found.method, found.candidates) == ("bayes", ("none", *DEFAULT_METHODS))
    assert found.reason.endswith("hts has a lower log loss, but is a candidate only if you name it.")
    assert recommend(results).method == "hts"


# ---- Two classes


def two(nll, **settings):
    return method(nll, n_classes=2, **settings)


def of_two(**others):
    """Return results of two classes: a candidate differs from `bayes-bias`, which has no noise."""
    return {"none": two(0.9), "bayes": two(0.4), "bayes-bias": two(0.4, changed_share=0.3)} | others


def rows_of(n_rare, names=("no", "yes"), **settings):
    labels = (np.arange(N_ROWS) < n_rare).astype(int)
    return LabelledRows(np.zeros((N_ROWS, 2)), labels, class_names=names, **settings)


@pytest.mark.parametrize(
    ("bayes", "chosen"),
    [
        (two(0.4 - 0.9 * ERROR, noise=ERROR), "bayes-bias"),
        (two(0.4 - 1.1 * ERROR, noise=ERROR), "bayes"),
        (two(0.4 + 0.1 * ERROR, noise=ERROR), "bayes-bias"),
    ],
)
def test_of_two_classes_bayes_needs_one_standard_error(bayes, chosen):
    """Whatever predictions change at 1/2, where few people act."""
    found = recommend(of_two(bayes=bayes))
    assert (found.method, found.alternative) == (chosen, None)
    assert "would change" not in found.reason


@pytest.mark.parametrize(("lead", "chosen"), [(0.9, "bayes-bias"), (1.1, "none"), (-0.1, "bayes-bias")])
def test_two_classes_are_left_as_they_are_only_if_that_is_better_by_one_standard_error(lead, chosen):
    found = recommend(of_two(none=two(0.4 - lead * ERROR, noise=ERROR)))
    assert found.method == chosen
    if chosen == "none":
        raised = "raises the log loss by more than one standard error (0.0110 \u00b1 0.0100)."
        assert found.reason == f"bayes-bias {raised}"


@pytest.mark.parametrize(
    ("n_rare", "chosen"), [(9, "bayes"), (10, "none"), (N_ROWS - 9, "bayes"), (90, "none")]
)
def test_few_rows_of_the_rarer_class_compare_bayes_and_bayes_bias_alone(n_rare, chosen):
    results = {"none": two(0.01), "bayes": two(0.0399), "bayes-bias": two(0.04)}
    found = recommend(results, None, rows_of(n_rare))
    assert found.method == chosen
    name = "yes" if n_rare < N_ROWS / 2 else "no"
    assert found.few == (f"9 rows of class {name}" if chosen == "bayes" else None)
    assert (f"with 9 rows of class {name}" in found.reason) == (chosen == "bayes")


def test_few_rows_of_the_rarer_class_do_not_show_that_labels_are_of_other_rows():
    """Their frequency in the same rows is the best constant prediction, and hardly a better one elsewhere."""
    results = {"none": two(0.9), "bayes-bias": two(0.1, right=0.99)}
    assert recommend(results, None, rows_of(9)).method == "bayes-bias"
    assert recommend(results, None, rows_of(15)).chance_nll is not None


def test_rows_of_weight_0_are_none_of_the_rarer_class():
    weights = np.where(np.arange(N_ROWS) < 8, 0.0, 1.0)
    results = {"none": two(0.01), "bayes-bias": two(0.005)}
    assert recommend(results, None, rows_of(12, None, weights=weights)).few == "4 rows of class 1"
    assert recommend(results, None, rows_of(9, weights=weights)).few == "1 row of class yes"


def test_another_method_for_two_classes_needs_a_gain_that_matters():
    for gain, chosen in ((2.1, "mine"), (1.9, "bayes-bias")):
        mine = two(0.4 - gain * ERROR, noise=ERROR, changed_share=0.5, n_parameters=3)
        assert recommend(of_two(mine=mine)).method == chosen
    results = {"none": two(0.5), "ts": two(0.4), "mine": two(0.395, changed_share=0.5, n_parameters=3)}
    assert recommend(results).method == "mine", "without bayes and bayes-bias, 1% even if predictions change"
    assert recommend(of_two(), None, rows_of(450, None, positions=True)).method == "bayes", "not two classes"


# ---- Leave the classifier as it is


@pytest.mark.parametrize(
    ("bayes", "chosen"),
    [
        (method(0.91, noise=0.001), "none"),  # the classifier is better by 1 % and two standard errors
        (method(0.901, noise=0.0001), "none"),
        (method(0.9, noise=0.001), "none"),  # a gain of 1 % is excluded
        (method(0.898, noise=0.001), "none"),
        (method(0.898, noise=0.006), "bayes"),  # it is not, and there is a gain
        (method(0.898, noise=0.009), "none"),  # of less than a quarter of its standard error
        (method(0.91, noise=0.01), "none"),
    ],
)
def test_the_default_needs_a_gain_that_may_matter(bayes, chosen):
    assert recommend({"none": method(0.9, n_parameters=0), "bayes": bayes}).method == chosen


@pytest.mark.parametrize(("noise", "chosen"), [(0.5, "ts"), (1.5, "none")])
def test_a_method_without_a_prior_has_to_gain_more_than_one_standard_error(noise, chosen):
    results = {"none": method(0.5, n_parameters=0), "ts": method(0.5 - ERROR, noise=noise * ERROR)}
    assert recommend(results).method == chosen


def test_the_alternative_may_be_the_classifier_itself():
    results = {"none": method(0.4, n_parameters=0), "mine": method(0.3, changed_share=0.0001, right=0.81)}
    chosen = recommend(results)
    assert (chosen.method, chosen.alternative) == ("mine", "none")
    assert "lower than with the uncalibrated classifier, the choice" in chosen.reason
    results["mine"] = method(0.4, changed_share=0.1)
    assert recommend(results).reason == "No method that keeps all predictions was tried."


def test_an_alternative_does_no_harm():
    """One that raises neither the NLL nor, beyond its error, the ECE replaces a first choice that does."""
    better = {"bayes_bias": changing(0.1), "bayes": method(0.3, n_parameters=8, said=0.7)}
    assert recommend(four(**better)).alternative == "ts", "bayes is 20 points underconfident"
    better["ts"] = method(0.95, said=0.9)
    assert recommend(four(**better)).alternative == "bayes", "ts raises the NLL, and bayes lowers it"


def test_rows_count_by_their_weight():
    results = four()
    gain = np.where(np.arange(N_ROWS) < N_ROWS // 2, 0.1, -0.1)
    results["bayes-bias"].row_nll[:] -= gain
    assert recommend(results).method == "bayes"
    for kept, chosen in ((gain > 0, "bayes-bias"), (gain < 0, "bayes")):
        weighted = {name: replace(one, share=kept / kept.sum()) for name, one in results.items()}
        assert recommend(weighted).method == chosen


# ---- Comparisons


@pytest.mark.parametrize(("seed", "methods"), [(11, None), (11, "all"), (6, None)])
def test_few_rows_do_not_recommend_a_noisy_method(seed, methods):
    """Of all methods, hts has the lowest NLL by folds on these rows; on 20,000 others it is far worse."""
    task = simulate(20_200, 3, sharpness=5, temperature=1.5, random_state=seed)
    found = compare(task.logits[:200], task.labels[:200], methods=methods, draws=5)
    assert (found.recommended, found.recommendation.candidates) == ("bayes", ("none", *DEFAULT_METHODS))
    rest, labels = task.logits[200:], task.labels[200:]
    assert nll(found.calibrator.predict_proba(rest), labels) < nll(softmax(rest, axis=1), labels)


def test_all_methods_may_be_tried_and_others_named_beside_them(task):
    found = compare(task.logits, task.labels, methods=["all", "hts"], folds=2, draws=2)
    assert list(found.results) == [
        "none",
        *(key for key, known in CALIBRATORS.items() if known.in_comparison),
    ]
    assert set(found.recommendation.candidates) == {"none", *DEFAULT_METHODS, "hts"}
    found = compare(task.logits, task.labels, methods=["ts", "hts"], folds=2, draws=2)
    assert list(found.results) == list(found.recommendation.candidates) == ["none", "ts", "hts"]


def test_decisions_are_not_changed_for_a_tenth_of_a_percent():
    task = demo_task()
    rows = (task.val_logits, task.val_labels, task.test_logits, task.test_labels)
    found = compare(*rows, methods=["bayes", "bayes-bias"], draws=1)
    nll = {name: result.row_nll.mean() for name, result in found.results.items()}
    assert nll["bayes-bias"] < nll["bayes"]
    assert (found.recommended, found.verdict.outcome) == ("bayes", "better")


class FromOutside:
    """A method that gives every row the frequencies of the labels."""

    def fit(self, logits, labels):
        self.frequencies = np.bincount(labels, minlength=logits.shape[1]) / len(labels)

    def predict_proba(self, logits):
        return np.tile(self.frequencies, (len(logits), 1))


def test_the_decisions_of_a_method_from_outside_are_counted_by_weight(task):
    weights = np.random.default_rng(0).uniform(0, 3, len(task.labels))
    judged = compare(
        *(task.logits, task.labels), methods={"mine": FromOutside(), "ts": "ts"}, sample_weight=weights,
        folds=2, draws=5,
    )  # fmt: skip
    fold = np.random.default_rng(0).permutation(len(task.labels)) % 2
    usual = np.array([np.bincount(task.labels[fold != held]).argmax() for held in (0, 1)])[fold]
    changed = np.average(usual != task.logits.argmax(axis=1), weights=weights)
    mine = judged.results["mine"]
    assert 0.1 < changed < 0.95
    assert mine.changed_share == pytest.approx(changed, rel=1e-12)
    assert mine.accuracy == pytest.approx(np.average(usual == task.labels, weights=weights), rel=1e-12)
    assert judged.results["ts"].changed_share == judged.results["none"].changed_share == 0
