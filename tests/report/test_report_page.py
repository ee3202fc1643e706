"""The report: complete, self-contained, faithful to the numbers, and safe whatever the names in it."""

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from temperance import compare
from temperance.comparison import learning_curve
from temperance.comparison.verdict import Outcome
from temperance.data import simulate
from temperance.metrics.intervals import Estimate
from temperance.report.methods_table import methods_table
from temperance.report.page import render_report, write_report
from temperance.report.sections import SECTIONS, SYMBOLS, Source, shown_at_first

QUICK = {"draws": 20}
HOSTILE = "<script>alert(1)</script>&\"'.npz"


class Page(HTMLParser):
    """What the tests look at: elements with their attributes, and the text inside some of them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.stack, self.text = [], [], {}
        self.feed(page)
        assert self.stack == [], "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "input", "br"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, "elements are nested"

    def handle_data(self, data):
        for tag in set(self.stack):
            self.text[tag] = self.text.get(tag, "") + data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def comparison():
    val, test = (simulate(n_rows=n, n_classes=4, random_state=seed) for n, seed in ((400, 3), (500, 8)))
    return compare(
        val.logits, val.labels, test.logits, test.labels, methods=["ts", "hts", "ets", "bayes"], **QUICK
    )


@pytest.fixture(scope="module")
def curve(comparison):
    return learning_curve(comparison)


@pytest.fixture(scope="module")
def html(comparison, curve):
    source = Source(HOSTILE, "validation", 400, "0" * 64)
    told = replace(comparison, learning_curve=curve)
    return render_report(told, title=f"Report of {HOSTILE}", sources=[source])


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_every_section_is_there_and_linked(page):
    assert [a["id"] for a in page.all("section")] == list(SECTIONS)
    links = {a["href"] for a in page.all("a")}
    assert {f"#{key}" for key in SECTIONS} <= links


def test_the_page_is_small_and_loads_nothing_from_outside(page, html):
    assert not re.search(r"https?://|url\((?!#)|@import", html)
    assert len(html.encode()) < 5_000_000
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "srcset", "onclick", "onload"} & attributes.keys()


def test_the_policy_allows_the_pages_own_script_and_no_other(page, html):
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    script = re.search(r"<script>(.*)</script></body>", html, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert len(page.all("script")) == 1


def test_names_of_files_are_shown_and_not_run(page, html):
    assert "<script>alert" not in html
    assert HOSTILE in page.text["title"]
    assert HOSTILE in page.text["table"]


def test_every_identifier_is_unique_and_every_reference_has_a_target(page):
    identifiers = [a["id"] for _, a in page.tags if "id" in a]
    assert len(set(identifiers)) == len(identifiers)
    for _, attributes in page.tags:
        for name in attributes.get("aria-labelledby", "").split():
            assert name in identifiers


def test_every_figure_has_a_text_description(page):
    pictures = page.all("svg")
    assert len(pictures) == 6 + 4  # one of each class
    for picture in pictures:
        assert picture["role"] == "img"
    assert len(page.all("desc")) == len(pictures)
    assert len(page.text["desc"]) > 40 * len(pictures)


def test_the_table_shows_the_numbers_of_the_comparison(comparison, html):
    for name, result in comparison.results.items():
        row = re.search(rf'<tr[^>]*data-row="{name}".*?</tr>', html, re.DOTALL).group(0)
        values = [float(v) for v in re.findall(r'data-value="([-0-9.e]+)"', row)]
        scores = result.scores
        assert values[1:7] == [
            scores[key].value for key in ("nll", "brier", "ece", "classwise_ece", "smooth_ece", "accuracy")
        ]
        assert f">{scores['nll'].value:.4f}<" in row
        assert ("recommended" in row) == (name == comparison.recommended)
        assert row.count("<td") == html.count("data-sort") - 1, "a cell for each heading"


def test_the_small_errors_of_many_classes_have_two_digits_and_no_interval_no_text(comparison):
    small = Estimate(1.234e-4, np.nan, np.nan)
    results = {
        name: replace(one, scores=replace(one.scores, estimates={**one.scores, "classwise_ece": small}))
        for name, one in comparison.results.items()
    }
    shown = str(methods_table(replace(comparison, results=results)))
    assert shown.count(">0.0123</td>") == len(results)
    for one in results.values():
        assert f">{100 * one.scores['accuracy'].value:.2f}<small>" in shown


def test_the_page_has_the_verdict_and_its_reason(comparison, page):
    for sentence in comparison.verdict.sentences:
        assert sentence in page.text["p"].replace("\N{NO-BREAK SPACE}", " ")
    assert comparison.reason in page.text["p"]


def test_the_page_says_which_decisions_change(html):
    assert "predictions changed %" not in html
    task = simulate(600, 4, random_state=5)
    result = compare(
        task.logits + 4 * np.eye(4)[0], task.labels, methods=["ts", "bayes-bias"], folds=2, **QUICK
    )
    share = result.results["bayes-bias"].changed_share
    changed = render_report(result)
    page = Page(changed)
    assert result.recommended == "bayes-bias"
    assert "predictions changed %" in page.text["th"]
    for name, value in (("ts", 0.0), ("bayes-bias", share)):
        row = re.search(rf'<tr[^>]*data-row="{name}".*?</tr>', changed, re.DOTALL).group(0)
        assert f'<td data-value="{value}" class="extra">{100 * value:.2f}</td>' in row
    assert result.decision_changes[0] in page.text["p"]
    assert result.reason in page.text["p"]
    assert "If all predictions must stay the same, calibrate with ts (log loss" in page.text["p"]


def test_if_no_other_method_helps_the_classifier_itself_is_the_alternative():
    task = simulate(600, 4, random_state=5)
    result = compare(task.logits + 4 * np.eye(4)[0], task.labels, methods=["bayes-bias"], folds=2, **QUICK)
    page = Page(render_report(result))
    assert "If all predictions must stay the same, leave the classifier as it is (log" in page.text["p"]


def test_every_summary_is_there_in_words(comparison, page):
    for result in comparison.results.values():
        if result.calibrator is not None:
            assert result.calibrator.summary() in page.text["pre"]


def test_the_same_comparison_gives_the_same_page(comparison, curve, html):
    source = Source(HOSTILE, "validation", 400, "0" * 64)
    told = replace(comparison, learning_curve=curve)
    assert render_report(told, title=f"Report of {HOSTILE}", sources=[source]) == html


def test_without_a_curve_there_is_no_section_of_labels_and_no_method_is_fitted(comparison, monkeypatch):
    for result in comparison.results.values():
        if result.calibrator is not None:
            monkeypatch.setattr(
                type(result.calibrator), "fit", lambda *a, **o: pytest.fail("a method was fitted")
            )
    page = Page(render_report(comparison))
    assert [a["id"] for a in page.all("section")] == [key for key in SECTIONS if key != "labels"]


def test_a_saved_report_has_the_curve(comparison, curve, tmp_path):
    told = replace(comparison, learning_curve=curve)
    told.save_report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == render_report(told)


def test_the_file_is_not_overwritten_by_default(tmp_path):
    task = simulate(n_rows=100, n_classes=3, random_state=1)
    comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, **QUICK)
    path = tmp_path / "report.html"
    comparison.save_report(path)
    content = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        write_report(comparison, path)
    assert path.read_bytes() == content
    comparison.save_report(path, overwrite=True)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("n_rows", "n_classes"),
    [(30, 2), (300, 60), (12, 3)],
    ids=["few rows", "many classes", "hardly any rows"],
)
def test_a_report_by_cross_validation_works_for_any_size(n_rows, n_classes):
    task = simulate(n_rows=n_rows, n_classes=n_classes, random_state=1)
    result = compare(task.logits, task.labels, methods=["ts", "bayes"], folds=3, learning_curve=True, **QUICK)
    page = Page(render_report(result))
    shown = [key for key in SECTIONS if key != "production" or result.recommended != "none"]
    assert [a["id"] for a in page.all("section")] == shown
    assert "There was no test set" in page.text["li"]
    assert "nan" not in page.text["td"]


def test_masked_classes_a_single_score_and_weights_can_be_reported(binary):
    task = simulate(300, 4, random_state=2)
    masked = task.logits.copy()
    masked[np.arange(300), (task.labels + 1) % 4] = -np.inf
    weights = np.random.default_rng(0).uniform(0.1, 3, 300)
    for result in (
        compare(*binary, methods=["hts"], **QUICK),
        compare(masked, task.labels, methods=["ts", "bayes"], **QUICK),
        compare(task.logits, task.labels, methods=["ts", "hts"], sample_weight=weights, **QUICK),
    ):
        assert "Verdict" in render_report(result)


def test_no_calibration_is_recommended_for_a_calibrated_classifier():
    task = simulate(3000, 4, temperature=1, entropy_slope=0, class_spread=0, random_state=6)
    result = compare(task.logits, task.labels, methods=["ts", "hts"], **QUICK)
    page = Page(render_report(result))
    assert result.recommended == "none"
    assert "Leave the classifier as it is" in page.text["p"]
    assert "Use it in production" not in page.text["h2"]


@pytest.mark.parametrize("n_classes", [1000, pytest.param(50_257, marks=pytest.mark.slow)])
def test_a_page_of_many_classes_is_small(n_classes):
    rng = np.random.default_rng(0)
    labels = rng.integers(n_classes, size=24)
    logits = rng.standard_normal((24, n_classes), np.float32)
    logits[np.arange(24), labels] += 9
    names = [f"token {k}" for k in range(n_classes)]
    result = compare(logits, labels, methods=["ts", "hts"], folds=2, draws=2, classes=names)
    page = render_report(result)
    assert len(page.encode()) < 250_000
    assert "No class has at least 30 test rows" in page


def test_the_first_methods_are_the_best_the_simplest_and_one_with_a_map():
    task = simulate(400, 4, random_state=2)
    result = compare(task.logits, task.labels, methods=["lts", "hts", "bts", "mono"], folds=2, draws=5)
    nll = {name: r.scores["nll"].value for name, r in result.results.items() if name != "none"}
    shown = shown_at_first(result)
    assert {min(nll, key=nll.get), "hts", "mono", result.verdict.tried} == shown
    assert "bts" not in shown


def test_a_comparison_without_methods_reports_and_tests_the_classifier_itself():
    task = simulate(300, 3, random_state=2)
    result = compare(task.logits, task.labels, methods=[], folds=2, **QUICK)
    assert shown_at_first(result) == set()
    assert "No method was tried." in render_report(result)
    shown = calibration_section(result)
    assert "before: statistic" in shown
    assert "with " not in shown.split("<table>")[1]


def test_every_outcome_has_its_own_symbol():
    assert len(set(SYMBOLS.values())) == len(SYMBOLS) == len(Outcome)


def calibration_section(comparison):
    """Return the section of the page."""
    found = re.search('<section id="tests".*?</section>', render_report(comparison), re.DOTALL).group(0)
    return unescape(found).replace("\N{NO-BREAK SPACE}", " ")


def test_each_test_is_shown_before_and_after(comparison):
    shown, tried = calibration_section(comparison), comparison.verdict.tried
    assert "before: statistic, p-value" in shown
    assert f"with {tried}: statistic, p-value" in shown
    for scores in (comparison.results[name].scores for name in ("none", tried)):
        assert len(scores.tests) == 5
        for _, statistic, p_value in scores.shown_tests():
            assert re.search(f"<td>{statistic}, p (= )?{p_value}</td>", shown)
        assert scores.tests["cox"].words in shown
