"""The report: complete, self-contained, faithful to the numbers, and safe whatever the names in it."""

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from temperance import automate, compare
from temperance.comparison import learning_curve
from temperance.comparison.verdict import Outcome
from temperance.data import simulate
from temperance.metrics.finding import p_in_words
from temperance.metrics.intervals import Estimate
from temperance.report.page import (
    DIAGNOSTICS,
    SECTIONS,
    SYMBOLS,
    Source,
    _interval,
    render_report,
    write_report,
)

QUICK = {"draws": 20}
HOSTILE = "<script>alert(1)</script>&\"'.npz"
SOURCE = Source(HOSTILE, "validation", 400, "0" * 64)


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
    by = np.array(["north", HOSTILE])[np.arange(500) % 2]
    methods = ["ts", "hts", "ets", "bayes"]
    return compare(val.logits, val.labels, test.logits, test.labels, methods=methods, by=by, **QUICK)


@pytest.fixture(scope="module")
def curve(comparison):
    return learning_curve(comparison)


@pytest.fixture(scope="module")
def html(comparison, curve):
    told = replace(comparison, learning_curve=curve)
    return render_report(told, title=f"Report of {HOSTILE}", sources=[SOURCE])


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_every_section_is_there_and_the_diagnostics_are_folded(page, html):
    assert [a["id"] for a in page.all("section")] == [*SECTIONS, *DIAGNOSTICS]
    _, folded = html.split('<details id="diagnostics">')
    assert re.findall('<section id="([^"]*)"', folded) == list(DIAGNOSTICS)
    assert "open" not in next(a for a in page.all("details") if a.get("id") == "diagnostics")


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
    assert len(pictures) == 5 + 4  # one per class
    for picture in pictures:
        assert picture["role"] == "img"
    assert len(page.all("desc")) == len(pictures)
    assert len(page.text["desc"]) > 40 * len(pictures)


def section_of(html, name):
    """Return a section of the page as plain text and numbers."""
    found = re.search(f'<section id="{name}".*?</section>', html, re.DOTALL).group(0)
    return unescape(found)


def test_the_table_shows_the_numbers_of_the_comparison_the_lowest_log_loss_first(comparison, html):
    shown, rows = section_of(html, "scores"), []
    for name, result in comparison.results.items():
        row = re.search(rf'<tr><th scope="row">{name}</th>.*?</tr>', shown, re.DOTALL).group(0)
        rows.append((result.scores["nll"].value, shown.index(row)))
        values = [float(v) for v in re.findall(r"<td>([0-9.]+)", row)]
        keys = ("nll", "brier", "ece", "classwise_ece", "smooth_ece", "accuracy")
        factors = (1, 1, 100, 100, 100, 100)
        wanted = [factor * result.scores[key].value for key, factor in zip(keys, factors, strict=True)]
        np.testing.assert_allclose(values[:6], wanted, atol=0.00501)
        assert row.count("<td") == shown.count('scope="col"') - 1, "a cell for each heading"
    assert [place for _, place in sorted(rows)] == sorted(place for _, place in rows)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.01, 0.03, "1.00% to 3.00%"),
        (0.0, 0.03, "0.00% to 3.00%"),
        (0.0, 0.02, "at most 2.00%"),
        (0.01, 0.02, "at least 1.00%"),
        (0.02, 0.03, "at most 3.00%"),
    ],
)
def test_an_interval_that_ends_at_its_calibration_error_is_one_bound(low, high, words):
    estimate = Estimate(0.02, low, high)
    assert _interval(estimate, "{:.2%}".format, bound=True) == words
    assert _interval(estimate, "{:.2%}".format) == f"{low:.2%} to {high:.2%}"


def test_two_test_rows_have_tiles_with_plain_numbers():
    task = simulate(300, 3, random_state=2)
    result = compare(
        task.logits[2:], task.labels[2:], task.logits[:2], task.labels[:2], methods=["ts"], **QUICK
    )
    _, shown = section_of(render_report(result), "verdict").split('class="tiles"')
    assert "nan" not in shown
    assert "inf" not in shown


def test_the_page_has_the_verdict_its_reason_and_each_number_once(comparison, page, html):
    verdict = comparison.verdict
    for sentence in (verdict.advice, verdict.remaining_in_words, *verdict.notes, comparison.why):
        assert sentence in page.text["p"]
    unfolded = unescape(re.sub("<svg.*?</svg>|<pre.*?</pre>|<style.*?</style>", "", html, flags=re.DOTALL))
    unfolded, _ = re.sub("<[^>]*>", " ", unfolded).split("Diagnostics")
    for number in (
        *(f"{one.nll:.4f}" for one in (verdict.before, verdict.after)),
        *(f"{100 * one.ece:.2f}%" for one in (verdict.before, verdict.after)),
        *(f"{100 * one.gap:+.1f}".replace("-", "\N{MINUS SIGN}") for one in (verdict.before, verdict.after)),
        f"{verdict.nll_gain.value:.4f}",
    ):
        # The learning curve, on request, ends at the log loss of its own test rows.
        assert unfolded.split("Would more labels help?")[0].count(f" {number}") == 1, number


def test_tiles_of_a_classifier_that_is_left_alone_have_no_arrow():
    task = simulate(1500, 4, temperature=1, entropy_slope=0, class_spread=0, random_state=6)
    result = compare(task.logits, task.labels, methods=["ts"], folds=3, **QUICK)
    assert result.recommended == "none"
    shown = section_of(render_report(result), "verdict")
    assert "\N{RIGHTWARDS ARROW}" not in shown
    rise = -result.verdict.nll_gain.value
    assert rise > 0
    assert f"Best candidate, ts: +{rise:.4f}; " in shown
    assert "Uncalibrated</span>" in shown
    assert "TS</span>" not in shown, "the picture has the classifier alone"


def test_two_classes_have_the_base_rate_and_the_probability_of_the_second():
    rng = np.random.default_rng(0)
    z = rng.normal(-3, 1.5, 3000)
    labels = (rng.random(3000) < 1 / (1 + np.exp(-z))).astype(int)
    result = compare(np.c_[np.zeros(3000), 2 * z + 1], labels, classes=["ham", "spam"], **QUICK)
    page = render_report(result)
    shown = section_of(page, "verdict")
    assert f"base rate {100 * labels.mean():.1f}%" in shown
    assert ">P(class spam)<" in shown
    assert "P(spam): O/E" in shown
    assert "Confidence minus accuracy" not in shown
    before, after = result.verdict.before.finding, result.verdict.after.finding
    assert f"Before calibration: {before}" in shown
    assert f"After calibration: {after}" in shown
    assert not re.search("(over|under)confident", page)
    assert "argmax" not in page
    assert 'id="class-reliability"' not in page
    diagram = result.results["none"].class_reliability[1]
    counts = diagram.count[diagram.count > 0]
    assert counts.max() < 1.2 * counts.min(), "bins hold about the same number of rows"
    score = 1 / (1 + np.exp(-(2 * z + 1)))
    assert score.mean() < labels.mean()
    tile = unescape(re.search(r"P\(spam\): O/E.*?</div>", shown, re.DOTALL).group(0))
    assert f"{labels.mean() / score.mean():.2f} \N{RIGHTWARDS ARROW} </span>{after.ratio.value:.2f}" in tile
    assert f"95% interval: {after.ratio.low:.2f} to {after.ratio.high:.2f}" in tile


def test_at_chance_the_page_asks_to_check_the_labels_and_offers_no_commands():
    rng = np.random.default_rng(1)
    result = compare(rng.normal(0, 2, (400, 4)), rng.integers(4, size=400), folds=2, **QUICK)
    assert result.verdict.outcome is Outcome.CHANCE
    page = render_report(result)
    assert result.verdict.headline in unescape(page)
    assert 'class="tile"' not in page
    assert result.recommended == "none"
    assert "Why" not in page, "no method is recommended on the page"
    assert "Bayes</span>" not in section_of(page, "verdict")
    assert not re.search('<section id="(production|methods|class-reliability)"', page)


def test_the_page_says_which_predictions_change_and_how_to_fit_the_alternative():
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
        row = re.search(rf'<tr><th scope="row">{name}</th>.*?</tr>', changed, re.DOTALL).group(0)
        assert f"<td>{100 * value:.2f}</td>" in row
    assert result.verdict.predictions_in_words in page.text["p"]
    assert "If all predictions must stay the same, calibrate with ts (log loss" in page.text["p"]
    assert "If all predictions must stay the same: ts" in page.text["h3"]
    assert "temperance.TemperatureScaling()" in page.text["pre"]


def test_if_no_other_method_helps_the_classifier_itself_is_the_alternative():
    task = simulate(600, 4, random_state=5)
    result = compare(task.logits + 4 * np.eye(4)[0], task.labels, methods=["bayes-bias"], folds=2, **QUICK)
    page = Page(render_report(result))
    assert "If all predictions must stay the same, leave the classifier as it is (log" in page.text["p"]
    assert "If all predictions must stay the same" not in page.text["h3"]


def test_a_saved_report_is_the_same_page_again(comparison, curve, html, tmp_path):
    told = replace(comparison, learning_curve=curve)
    write_report(told, tmp_path / "report.html", title=f"Report of {HOSTILE}", sources=[SOURCE])
    assert (tmp_path / "report.html").read_text() == html


def test_without_a_curve_there_is_no_section_of_labels_and_no_method_is_fitted(
    comparison, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    for result in comparison.results.values():
        if result.calibrator is not None:
            monkeypatch.setattr(
                type(result.calibrator), "fit", lambda *a, **o: pytest.fail("a method was fitted")
            )
    comparison.save_report("report.html")
    page = Page(Path("report.html").read_text())
    assert [a["id"] for a in page.all("section")] == [
        key for key in (*SECTIONS, *DIAGNOSTICS) if key != "labels"
    ]


@pytest.mark.parametrize(
    ("n_rows", "n_classes"),
    [(30, 2), (300, 60), (12, 3)],
    ids=["few rows", "many classes", "hardly any rows"],
)
def test_a_report_by_cross_validation_works_for_any_size(n_rows, n_classes):
    task = simulate(n_rows=n_rows, n_classes=n_classes, random_state=1)
    result = compare(task.logits, task.labels, methods=["ts", "bayes"], folds=3, learning_curve=True, **QUICK)
    page = Page(render_report(result))
    found = [a["id"] for a in page.all("section")]
    assert found == [key for key in (*SECTIONS, *DIAGNOSTICS) if key in found]
    assert {"verdict", "methods", "labels", "scores", "temperature", "provenance"} <= set(found)
    assert ("production" in found) == (result.recommended != "none")
    assert "There was no test set" in page.text["p"]
    assert "nan" not in page.text["td"] + page.text["p"]


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
        assert 'class="tile"' in render_report(result)


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
    assert 'id="class-reliability"' not in page, "no class has enough rows"


def test_the_worst_classes_come_first_and_not_too_many():
    task = simulate(2000, 10, random_state=2)
    result = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    after = result.results[result.recommended].class_reliability
    found = [int(k) for k in re.findall(r'<figure id="figure-class-(\d+)"', render_report(result))]
    assert found == sorted(after, key=lambda column: -after[column].error)[:6]


def test_a_comparison_without_methods_reports_and_tests_the_classifier_itself():
    task = simulate(300, 3, random_state=2)
    result = compare(task.logits, task.labels, methods=[], folds=2, **QUICK)
    page = render_report(result)
    assert "No method was tried." in page
    shown = section_of(page, "tests")
    assert ">before</th>" in shown
    assert ">after</th>" not in shown


def test_every_outcome_has_its_own_symbol():
    assert len(set(SYMBOLS.values())) == len(SYMBOLS) == len(Outcome)


def test_the_test_of_the_verdict_is_told_before_and_after(comparison, html):
    shown, used = unescape(section_of(html, "tests")), comparison.recommended
    for when, name in (("before", "none"), ("after", used)):
        found = comparison.results[name].scores.finding
        cells = "</td><td>".join(map(p_in_words, (found.p_value, found.level_p, found.spread_p)))
        assert f"{when}</th><td>{cells}</td>" in shown
    assert comparison.verdict.p_value == comparison.results[used].scores.finding.p_value
    assert "Cox" not in html.partition("</script>")[0]
    assert "Kuiper" not in html


def test_the_page_lists_predictions_that_need_no_person(comparison, html):
    shown, used = section_of(html, "automation"), comparison.recommended
    probs = comparison.results[used].calibrator.predict_proba(comparison.judged.logits)
    for most in (0.05, 0.1):
        rule = automate(np.asarray(probs, float), comparison.judged.labels, most)
        words = (
            "too few rows to promise it" if rule.threshold is None else f"{100 * rule.share:.3g}% of the rows"
        )
        cells = re.search(rf">{most:.0%}</th>(.*?)</tr>", shown, re.DOTALL).group(1)
        assert words in cells.rpartition("<td>")[2]


def test_the_page_lists_no_rule_that_loses_the_positives():
    rng = np.random.default_rng(0)
    odds = rng.normal(-5, 2, 6000)
    labels = np.array(["no", "yes"])[(rng.random(6000) < 1 / (1 + np.exp(-odds))).astype(int)]
    logits = np.column_stack([0 * odds, odds])
    rows = (*(one[:2000] for one in (logits, labels)), *(one[2000:] for one in (logits, labels)))
    told = render_report(compare(*rows, methods=["ts"], classes=["no", "yes"], **QUICK))
    shown = section_of(told, "automation")
    cells = {most: re.search(rf">{most}</th>(.*?)</tr>", shown, re.DOTALL).group(1) for most in ("2%", "10%")}
    assert "no rule: answering no to every row has" in cells["10%"]
    assert re.search(r"Of the held-out rows, decided against their class: \d\d\.\d% of yes", cells["2%"])


def test_without_a_test_set_no_promise_is_made(comparison):
    rows = comparison.fitted
    by_folds = compare(rows.logits, rows.labels, methods=["ts"], folds=2, **QUICK)
    assert 'id="automation"' not in render_report(by_folds)


@pytest.mark.filterwarnings("ignore:rows must be different ones")
def test_the_gap_of_positives_is_by_groups():
    task = simulate(n_rows=300, n_classes=2, random_state=4)
    thrice = [np.repeat(one, 3, axis=0) for one in (task.logits, task.labels)]
    thrice[0] += np.random.default_rng(0).normal(0, 1e-6, (900, 1)) * [1, 0]  # equal rows count as copies
    pages = [
        render_report(compare(*rows, groups=groups, methods=["ts"], folds=2, **QUICK))
        for rows, groups in ((thrice, np.arange(900) // 3), (thrice, None))
    ]
    intervals = [re.search(r"Mean [^<]*interval: ([^<]*)<", page).group(1) for page in pages]
    low, high = (float(end.replace("\N{MINUS SIGN}", "-")) for end in intervals[0].split(" to "))
    narrow = [float(end.replace("\N{MINUS SIGN}", "-")) for end in intervals[1].split(" to ")]
    assert high - low > 1.5 * (narrow[1] - narrow[0])


def test_every_method_has_an_entry_of_its_own_in_the_glossary():
    task = simulate(200, 3, random_state=0)
    result = compare(task.logits, task.labels, methods="all", folds=2, draws=5)
    shown = section_of(render_report(result), "glossary")
    words = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", shown))
    assert len({words[key] for key in result.results}) == len(result.results) == 12
    assert words["pts-ece"] == f"{words['pts']}, fitted to the ECE, not to the log loss"
