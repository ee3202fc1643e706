"""`compare` evaluates on held-out rows, and recommends a method."""

import json
import warnings

import numpy as np
import pytest
from compared import COMPARED
from scipy.special import softmax
from sklearn.base import clone

from temperance import BayesianTemperatureScaling, InputError, compare, make_calibrator, metrics
from temperance.data import simulate

QUICK = {"draws": 20}


@pytest.fixture(scope="module")
def plain():
    """Return a task on which one temperature is the truth."""
    return simulate(2000, 4, entropy_slope=0, class_spread=0, random_state=4)


@pytest.fixture(scope="module")
def everything(task):
    """Return all methods compared on a test set."""
    test = simulate(n_rows=400, n_classes=4, random_state=8)
    return compare(task.logits, task.labels, test.logits, test.labels, "all", **QUICK), test


def test_every_method_is_fitted_to_all_validation_rows_and_evaluated_on_the_test_rows(everything, task):
    result, test = everything
    assert list(result.results) == ["none", *COMPARED]
    assert result.evaluated_on == "the test set"
    assert result.judged.logits is test.logits, "rows are held by reference"
    assert result.results["none"].calibrator is None
    assert result.results["none"].n_parameters == 0
    for key, judged in result.results.items():
        if key == "none":
            probs = softmax(test.logits, axis=1)
        else:
            probs = make_calibrator(key).fit(task.logits, task.labels).predict_proba(test.logits)
            assert judged.calibrator.n_rows_ == len(task.labels)
        assert judged.scores["nll"].value == pytest.approx(metrics.nll(probs, test.labels), rel=1e-9)
        assert judged.row_nll.mean() == pytest.approx(judged.scores["nll"].value, rel=1e-9)
        assert judged.scores["brier"].value == pytest.approx(metrics.brier(probs, test.labels), rel=1e-9)
        assert judged.scores.n_rows == 400
        assert judged.confidence.shape == judged.correct.shape == judged.row_nll.shape == (400,)
        np.testing.assert_array_equal(judged.correct, probs.argmax(axis=1) == test.labels)
        assert judged.correct.mean() == pytest.approx(judged.scores["accuracy"].value)


def test_the_table_fits_80_columns_and_marks_the_recommended_method(everything, task):
    result, _ = everything
    lines = str(result).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith(f"{result.recommended} *")]
    for key in COMPARED:
        assert any(line.split()[:1] == [key] for line in lines), key
    assert lines[0] == f"Calibrate with {result.recommended}."
    bad = compare(1e4 * task.logits, task.labels, methods=["ts"], folds=2, **QUICK)
    assert max(map(len, str(bad).splitlines())) <= 80


def test_the_numbers_can_be_written_as_json(everything):
    result, _ = everything
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["recommended"] == result.recommended
    assert content["reason"] == result.reason
    assert content["methods"].keys() == result.results.keys()
    assert content["methods"]["ts"]["scores"]["nll"]["value"] == result.results["ts"].scores["nll"].value


def test_one_temperature_is_recommended_where_it_is_the_truth(plain):
    result = compare(plain.logits, plain.labels, methods=["ts", "lts", "hts", "hnlts", "ets"], **QUICK)
    assert result.recommended == "ts"
    assert result.calibrator.temperature_ == result.results["ts"].calibrator.temperature_
    assert result.evaluated_on == "5-fold cross-validation"


def test_nothing_is_recommended_for_a_calibrated_classifier():
    task = simulate(2000, 4, temperature=1, entropy_slope=0, class_spread=0, random_state=6)
    result = compare(task.logits, task.labels, methods=["ts", "hts", "lts"], **QUICK)
    assert result.recommended == "none"
    assert result.calibrator is None
    assert "none *" in str(result)


@pytest.mark.parametrize(
    ("method", "weighted"),
    [("ts", False), *((key, True) for key in ("ts", "lts", "hts", "hnlts", "ets", "bts"))],
)
def test_cross_validation_equals_folds_fitted_by_hand(method, weighted, plain):
    weights = np.random.default_rng(0).integers(1, 4, 2000).astype(float) if weighted else None
    result = compare(
        plain.logits, plain.labels, methods=[method], sample_weight=weights, folds=3, random_state=5, **QUICK
    )
    assert result.results[method].calibrator.n_rows_ == 2000
    fold = np.random.default_rng(5).permutation(2000) % 3
    expected = np.empty(2000)
    for held in range(3):
        inside, outside = fold == held, fold != held
        cal = clone(result.results[method].calibrator).fit(
            plain.logits[outside], plain.labels[outside], None if weights is None else weights[outside]
        )
        probs = cal.predict_proba(plain.logits[inside])
        expected[inside] = -np.log(probs[np.arange(inside.sum()), plain.labels[inside]])
    np.testing.assert_allclose(result.results[method].row_nll, expected, rtol=1e-5, atol=1e-6)
    mean = np.average(expected, weights=weights)
    assert result.results[method].scores["nll"].value == pytest.approx(mean, abs=1e-6)


def test_the_same_seed_gives_the_same_result_and_another_one_other_folds(task):
    first, again, other = (
        compare(task.logits, task.labels, methods=["ts"], random_state=seed, **QUICK) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.results["ts"].row_nll, again.results["ts"].row_nll)
    assert first.results["ts"].scores.to_dict() == again.results["ts"].scores.to_dict()
    assert (first.results["ts"].row_nll != other.results["ts"].row_nll).any()


def test_float32_and_binary_logits_are_compared_as_well(binary, task):
    scores, labels = binary
    assert compare(scores, labels, methods=["ts"], **QUICK).results["ts"].scores.n_classes == 2
    narrow = compare(task.logits.astype(np.float32), task.labels, methods=["ts"], **QUICK)
    wide = compare(task.logits, task.labels, methods=["ts"], **QUICK)
    np.testing.assert_allclose(narrow.results["ts"].row_nll, wide.results["ts"].row_nll, rtol=1e-3, atol=1e-5)


def test_warnings_of_a_method_are_collected_once_and_not_raised(task):
    right = task.logits.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = compare(task.logits, right, methods=["ts", "hts"], folds=2, **QUICK)
    for key in ("ts", "hts"):
        messages = result.results[key].warnings
        assert any("classified correctly" in message for message in messages)
        assert len(set(messages)) == len(messages)
    assert result.to_dict()["methods"]["ts"]["warnings"] == list(result.results["ts"].warnings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_logits": np.zeros((3, 4))}, "test_logits and test_labels must be given together"),
        ({"test_labels": np.zeros(3, int)}, "test_logits and test_labels must be given together"),
        ({"methods": ["ts", "magic"]}, "there is no method 'magic'. .* one of ts, "),
        ({"methods": "ts"}, "methods must be .*found the string 'ts'"),
        ({"folds": 1}, "folds must be a whole number from 2 to the number of rows, 300; found 1"),
        ({"folds": 301}, "folds must be a whole number from 2 to the number of rows, 300; found 301"),
        ({"folds": 2.5}, "folds must be .*found 2.5"),
        ({"sample_weight": np.ones(7)}, r"sample_weight must be .*found shape \(7,\) for 300 rows"),
        ({"bins": 0}, "bins must be .*found 0"),
        ({"confidence": 1.5}, "confidence must .*found 1.5"),
        (
            {"test_logits": np.zeros((3, 5)), "test_labels": np.zeros(3, int)},
            "same classes, one column each; found 4 and 5",
        ),
    ],
)
def test_incomparable_input_is_refused(task, change, message):
    with pytest.raises(InputError, match=message):
        compare(task.logits, task.labels, **({"methods": ["ts"]} | QUICK | change))


def test_a_prior_makes_a_method_simpler_than_its_number_of_coefficients(everything):
    results = everything[0].results
    bayes = results["bayes"].calibrator
    assert results["bayes"].n_parameters == pytest.approx(bayes.effective_parameters_.sum())
    assert results["bayes"].n_parameters < bayes.coefficients_.size + bayes.map_slopes_.size - 1


# ---- Decisions that change


@pytest.fixture(scope="module")
def biased():
    """Return a comparison, and its test rows, of a classifier that predicts its first class far too often."""
    task = simulate(1200, 4, random_state=6)
    logits = task.logits + np.array([4.0, 0, 0, 0])
    rows = (logits[:600], task.labels[:600], logits[600:], task.labels[600:])
    return compare(*rows, methods=["ts", "bayes", "bayes-bias"], **QUICK), *rows[2:]


def test_a_class_bias_that_helps_is_recommended_with_what_it_changes(biased):
    result, logits, labels = biased
    assert result.recommended == "bayes-bias"
    judged = result.results["bayes-bias"]
    decided = judged.calibrator.predict(logits)
    assert judged.changed_share == np.mean(decided != logits.argmax(axis=1)) > 0.05
    assert judged.accuracy == np.mean(decided == labels) > result.results["none"].accuracy
    assert result.recommendation.alternative in ("ts", "bayes")
    assert f"lower than with {result.recommendation.alternative}," in result.reason


def test_changed_decisions_are_reported_below_the_table_and_in_the_numbers(biased):
    result, _, _ = biased
    before, after = (100 * result.results[name].accuracy for name in ("none", "bayes-bias"))
    share = 100 * result.results["bayes-bias"].changed_share
    change = f"rises from {before:.1f}% to {after:.1f}%"
    sentence = f"changes {share:.1f}% of predictions; accuracy {change}."
    assert f"bayes-bias {sentence}" in " ".join(str(result).split())
    assert max(map(len, str(result).splitlines())) <= 80
    content = result.to_dict()
    assert content["alternative"] == result.recommendation.alternative
    assert content["methods"]["bayes-bias"]["changed_share"] == result.results["bayes-bias"].changed_share
    assert content["methods"]["ts"]["changed_share"] == 0


def test_unchanged_decisions_are_not_mentioned(plain):
    result = compare(plain.logits, plain.labels, methods=["ts"], folds=2, **QUICK)
    assert "All predictions stay the same." in str(result)
    assert result.to_dict()["alternative"] is None


@pytest.fixture
def limited_bias(monkeypatch):
    """Make a class bias refuse its rows, as it does where there are too many classes."""
    fit = BayesianTemperatureScaling.fit

    def refuse(self, logits, labels, sample_weight=None):
        if self.class_bias:
            raise InputError("a class bias takes at most 3 classes; found 4. Use bayes instead.")
        return fit(self, logits, labels, sample_weight)

    monkeypatch.setattr(BayesianTemperatureScaling, "fit", refuse)


def test_a_class_bias_that_does_not_support_the_rows_is_left_out_with_a_reason(task, limited_bias):
    test = simulate(n_rows=100, n_classes=4, random_state=8)
    result = compare(task.logits, task.labels, test.logits, test.labels, **QUICK)
    assert list(result.results) == ["none", "ts", "bayes"]
    assert result.failures == {
        "bayes-bias": "a class bias takes at most 3 classes; found 4. Use bayes instead."
    }
    assert "bayes-bias failed: a class bias takes at most 3 classes; found 4." in str(result)
    assert max(map(len, str(result).splitlines())) <= 80


def test_a_class_bias_that_was_named_raises_if_it_does_not_support_the_rows(task, limited_bias):
    with pytest.raises(InputError, match="at most 3 classes"):
        compare(task.logits, task.labels, methods=["ts", "bayes-bias"], **QUICK)


def test_an_error_that_is_not_about_the_rows_is_not_hidden(task, monkeypatch):
    def fail(self, logits, labels, sample_weight=None):
        raise ZeroDivisionError

    monkeypatch.setattr(BayesianTemperatureScaling, "fit", fail)
    with pytest.raises(ZeroDivisionError):
        compare(task.logits, task.labels, **QUICK)
