"""The tests of calibration on the page."""

import html

import pytest

from temperance import compare
from temperance.data import simulate
from temperance.report.calibration_tests import calibration_tests


@pytest.fixture(scope="module")
def compared():
    task = simulate(1200, 3, random_state=2)
    return compare(task.logits, task.labels, methods=["ts"], draws=20)


def test_each_test_is_shown_before_and_after(compared):
    shown = html.unescape(str(calibration_tests(compared))).replace("\N{NO-BREAK SPACE}", " ")
    before, after = (compared.results[name].scores for name in ("none", "ts"))
    assert "before: statistic, p-value" in shown
    assert "with ts: statistic, p-value" in shown
    assert len(before.tests) == 4
    for scores in (before, after):
        for _, statistic, p_value in scores.shown_tests():
            assert (
                f"<td>{statistic}, p {p_value}</td>" in shown
                or f"<td>{statistic}, p = {p_value}</td>" in shown
            )
        assert scores.tests["cox"].words in shown


def test_without_methods_only_the_classifier_itself_is_tested():
    task = simulate(300, 3, random_state=2)
    shown = str(calibration_tests(compare(task.logits, task.labels, methods=[], draws=20)))
    assert "before: statistic" in shown
    assert "with " not in shown.split("<table>")[1]
