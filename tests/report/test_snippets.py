"""Lines of Python that fit and use the recommended method: they work when pasted, with its options."""

import re
from html import unescape

import numpy as np
import pytest

import temperance
from temperance import compare
from temperance.data import simulate
from temperance.report.page import render_report
from temperance.report.snippets import Snippets, python_lines

TASK = simulate(600, 3, random_state=4)


class Shrunk:
    """A method from outside: it divides the logits by 2."""

    supports_masked_classes = True

    def fit(self, logits, labels):
        """Learn nothing."""
        return self

    def predict_proba(self, logits):
        """Return the softmax of half the logits."""
        odds = np.exp(np.asarray(logits) / 2)
        return odds / odds.sum(axis=1, keepdims=True)


def lines_of(methods, **options):
    result = compare(TASK.logits, TASK.labels, methods=methods, folds=2, draws=5, **options)
    assert result.recommended != "none"
    return result, "\n".join(python_lines(result, Snippets(), result.recommended))


def pasted(lines, **names):
    exec(lines, names)
    return names


def test_the_lines_fit_save_and_apply(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights = np.random.default_rng(0).uniform(0.5, 2, 600)
    result, lines = lines_of(["ts"], sample_weight=weights, classes=["cat", "dog", "emu"])
    found = pasted(
        lines, val_logits=TASK.logits, val_labels=TASK.labels, val_weights=weights, logits=TASK.logits
    )
    np.testing.assert_allclose(found["probs"], result.calibrator.predict_proba(TASK.logits))
    assert found["calibrator"].class_names_ == ("cat", "dog", "emu")


@pytest.mark.parametrize("key", ["pts-ece", "bayes-bias", "ets-brier"])
def test_the_options_of_a_method_are_in_the_lines(key):
    _, lines = lines_of([key])
    made = re.search(r"calibrator = (temperance\..*)", lines).group(1)
    calibrator = eval(made, {"temperance": temperance})
    assert calibrator.get_params() == temperance.make_calibrator(key).get_params()


def test_the_positive_class_is_in_the_lines():
    result, lines = lines_of(["ts"], classes=["cat", "dog", "emu"], positive="dog")
    assert "positive='dog'" in lines
    names = pasted(lines.partition("calibrator.save")[0], val_logits=TASK.logits, val_labels=TASK.labels)
    assert names["calibrator"].positive_ == result.calibrator.positive_ == 1
    assert "positive=2" in lines_of(["ts"], positive=2)[1]


def test_options_that_cannot_be_written_reuse_the_fit_of_the_comparison():
    prior = temperance.BayesianTemperatureScaling(prior=np.str_("population"))
    _, lines = lines_of({"mine": prior})
    assert "calibrator = comparison.results['mine'].calibrator" in lines


def test_a_method_from_outside_is_taken_from_the_comparison_and_is_not_exported():
    result, lines = lines_of({"shrunk": Shrunk()})
    found = pasted(lines, comparison=result, logits=TASK.logits)
    np.testing.assert_allclose(found["probs"], Shrunk().predict_proba(TASK.logits))
    assert "Export to" not in render_report(result)


def test_ours_can_be_exported_and_each_block_copied():
    result, _ = lines_of(["ts"])
    page = render_report(result)
    assert re.findall(r'aria-label="Copy ([^"]*)"', page) == ["Python", "Export to ONNX or PyTorch"]
    assert 'calibrator.to_onnx("cal.onnx")' in unescape(page)


def test_the_demonstration_can_be_pasted(tmp_path, monkeypatch):
    from temperance.cli.compare import demo_snippets
    from temperance.data import demo_task

    monkeypatch.chdir(tmp_path)
    task = demo_task()
    result = compare(task.val_logits[:500], task.val_labels[:500], methods=["ts"], folds=2, draws=5)
    lines = "\n".join(python_lines(result, demo_snippets(), result.recommended))
    found = pasted(lines, logits=task.test_logits[:10])
    assert found["probs"].shape == (10, 10)
