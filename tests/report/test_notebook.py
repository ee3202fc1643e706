"""What a notebook shows of calibrators and comparisons."""

import numpy as np
import pytest
from markupsafe import escape

from temperance import TemperatureScaling, compare


def test_a_fitted_calibrator_shows_what_it_has_learnt(fitted, method):
    cal = fitted(method)
    html = cal._repr_html_()
    assert cal.summary().splitlines()[0] in html
    assert cal._repr_mimebundle_()["text/html"] == html
    assert cal._repr_mimebundle_()["text/plain"] == repr(cal)


def test_a_calibrator_that_is_not_fitted_says_so():
    assert "not fitted yet" in TemperatureScaling()._repr_html_()


def test_a_comparison_shows_its_verdict_and_table(task):
    result = compare(task.logits, task.labels, methods=["ts"], draws=20)
    html = result._repr_html_()
    assert result.reason in html
    assert 'data-row="ts"' in html
    assert f"{result.results['ts'].scores['nll'].value:.4f}" in html
    assert "<script" not in html


def test_a_comparison_shows_which_decisions_change(task):
    result = compare(
        task.logits + 4 * np.eye(4)[0], task.labels, methods=["ts", "bayes-bias"], folds=2, draws=20
    )
    html = result._repr_html_()
    assert "decisions changed %" in html
    assert result.decision_changes
    assert escape(result.decision_changes[0]) in html


@pytest.mark.parametrize("name", ["<b>", "a&b"])
def test_options_are_escaped(name, tmp_path):
    from temperance import BayesianTemperatureScaling

    assert f"prior='{name}'" not in BayesianTemperatureScaling(prior=name)._repr_html_()
