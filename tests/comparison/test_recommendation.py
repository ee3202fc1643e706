"""The rule that chooses a method: keep every decision unless changing some is clearly better."""

import numpy as np
import pytest

from temperance import compare
from temperance.comparison.method_result import MethodResult
from temperance.comparison.recommendation import recommend
from temperance.metrics import Estimate

N_ROWS = 400
NOISE = np.random.default_rng(0).standard_normal(N_ROWS)
NOISE = (NOISE - NOISE.mean()) / NOISE.std()
ERROR = 0.01  # the standard error of the mean of ERROR * sqrt(N_ROWS) * NOISE


def method(nll, n_parameters=1, changed_share=0.0, accuracy=0.8, noise=0.0):
    """Return a result whose mean NLL is `nll`, and whose differences to others have an error of `noise`."""
    return MethodResult(
        "a method",
        None,
        n_parameters=n_parameters,
        scores={"accuracy": Estimate(accuracy, accuracy, accuracy)},
        row_nll=nll + noise * np.sqrt(N_ROWS) * NOISE,
        confidence=np.ones(N_ROWS),
        correct=np.ones(N_ROWS, bool),
        changed_share=changed_share,
        seconds=0.0,
        warnings=(),
    )


def with_bias(nll, **settings):
    """Return results of two methods that keep every decision, and of one that does not."""
    return {
        "none": method(0.9, n_parameters=0),
        "ts": method(0.5),
        "bayes": method(0.4, n_parameters=8),
        "bayes-bias": method(
            nll, **({"n_parameters": 12, "changed_share": 0.12, "accuracy": 0.88, "noise": ERROR} | settings)
        ),
    }


def test_a_method_that_changes_decisions_is_chosen_for_a_gain_above_its_standard_error():
    chosen = recommend(with_bias(0.4 - 1.5 * ERROR), None)
    assert (chosen.method, chosen.alternative) == ("bayes-bias", "bayes")
    assert chosen.reason == (
        "Its NLL, 0.3850, is below that of bayes, the choice among methods that keep every decision, by "
        "0.0150 ± 0.0100, more than one standard error."
    )


def test_decisions_are_kept_if_the_gain_is_within_its_standard_error():
    chosen = recommend(with_bias(0.4 - 0.5 * ERROR), None)
    assert (chosen.method, chosen.alternative) == ("bayes", None)
    assert chosen.reason == (
        "Its NLL, 0.4000, is the lowest of the methods that keep every decision; no simpler one is within "
        "one standard error. bayes-bias has a lower NLL by 0.0050 ± 0.0100, within its standard error, and "
        "would change 12.0 % of decisions."
    )


@pytest.mark.parametrize("nll", [0.4, 0.41])
def test_a_change_without_a_gain_is_not_mentioned(nll):
    chosen = recommend(with_bias(nll, noise=0.0), None)
    assert chosen.method == "bayes"
    assert chosen.reason == "Its NLL, 0.4000, is the lowest; no simpler one is within one standard error."


def test_simplicity_alone_is_no_reason_to_change_decisions():
    assert recommend(with_bias(0.4 - 0.5 * ERROR, n_parameters=0.5), None).method == "bayes"


def test_a_method_that_changes_no_decision_of_the_rows_competes_as_the_others():
    chosen = recommend(with_bias(0.4 - 0.5 * ERROR, n_parameters=0.5, changed_share=0.0), None)
    assert (chosen.method, chosen.alternative) == ("bayes-bias", None)
    assert "lowest; no simpler one" in chosen.reason


def test_the_gain_is_over_the_simplest_method_that_keeps_decisions():
    results = with_bias(0.5 - 1.5 * ERROR)
    results["bayes"] = method(0.5 - 0.5 * ERROR, n_parameters=8, noise=ERROR)
    chosen = recommend(results, None)
    assert (chosen.method, chosen.alternative) == ("bayes-bias", "ts")
    results["bayes-bias"] = method(0.5 - 0.8 * ERROR, n_parameters=12, changed_share=0.12, noise=ERROR)
    chosen = recommend(results, None)
    assert chosen.method == "ts"
    assert (
        "one standard error (0.0100) of the lowest of the methods that keep every decision" in chosen.reason
    )
    assert "bayes-bias has a lower NLL by 0.0080 ± 0.0100" in chosen.reason


def test_only_methods_that_change_decisions_have_to_be_clearly_better():
    results = with_bias(0.6)
    results["bayes"] = method(0.5 - 0.9 * ERROR, n_parameters=8, noise=ERROR)
    results["steady"] = method(0.5 - 0.1 * ERROR, n_parameters=5)  # beyond the error of its own difference
    chosen = recommend(results, None)
    assert (chosen.method, chosen.alternative) == ("ts", None)


def test_of_several_methods_that_change_decisions_the_simplest_clearly_better_one_is_chosen():
    results = with_bias(0.3)
    results["simple"] = method(0.3 + 0.5 * ERROR, n_parameters=3, changed_share=0.2)
    results["complex"] = method(0.3 + 0.5 * ERROR, n_parameters=30, changed_share=0.1)
    results["too little"] = method(0.4 - 0.5 * ERROR, n_parameters=2, changed_share=0.3, noise=ERROR)
    assert recommend(results, None).method == "simple"


def test_the_alternative_may_be_the_classifier_itself():
    results = {"none": method(0.4, n_parameters=0), "mine": method(0.3, changed_share=0.0001, accuracy=0.81)}
    chosen = recommend(results, None)
    assert (chosen.method, chosen.alternative) == ("mine", "none")
    assert "below that of the uncalibrated classifier, the choice" in chosen.reason


def test_rows_count_by_their_weight():
    results = with_bias(0.4, noise=0.0)
    gain = np.where(np.arange(N_ROWS) < N_ROWS // 2, 0.1, -0.1)
    results["bayes-bias"].row_nll[:] -= gain
    assert recommend(results, None).method == "bayes"
    assert recommend(results, (gain > 0).astype(float)).method == "bayes-bias"
    assert recommend(results, (gain < 0).astype(float)).method == "bayes"


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


def test_the_chosen_method_beats_the_classifier_itself():
    simple_but_uncertain = method(0.4 + 0.5 * ERROR, noise=30 * ERROR)
    results = {"none": method(0.5, n_parameters=0), "ts": simple_but_uncertain}
    results["bayes"] = method(0.4, n_parameters=8)
    assert recommend(results, None).method == "bayes"


def test_a_noisy_method_does_not_hide_one_that_is_clearly_better():
    results = {"none": method(0.5, n_parameters=0), "ts": method(0.495, noise=0.0004)}
    results["vs"] = method(0.49, n_parameters=10, noise=0.02)
    chosen = recommend(results, None)
    assert chosen.method == "ts"
    assert chosen.reason == (
        "Its NLL, 0.4950, is the lowest of the methods that beat the uncalibrated classifier by more than "
        "one standard error; no simpler one is within one standard error."
    )
