"""The layout on a wide screen and on a phone: the verdict first, nothing cut, no overlaps."""

from dataclasses import replace

import numpy as np
import pytest
from screens import DESK, PHONE, SCREENS

from temperance import compare
from temperance.comparison import learning_curve
from temperance.data import simulate
from temperance.report.page import write_report
from temperance.report.snippets import Snippets

pytestmark = pytest.mark.browser


OVERLAPS = """svg => {
    const shown = [...svg.querySelectorAll('text')].filter(t => t.textContent && t.getClientRects().length);
    const boxes = shown.map(t => [t.textContent, t.getBoundingClientRect(), t.classList.contains('note')]);
    const found = [];
    boxes.forEach(([a, p, note], i) => boxes.slice(i + 1).forEach(([b, q, other]) => {
        const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const along = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (across > 1 && along > 3) found.push(`${a} | ${b}`);
    }));
    return found;
}"""
CUT = """svg => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(t => t.textContent && t.getClientRects().length)
        .filter(t => {
            const box = t.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1
                || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
        }).map(t => t.textContent);
}"""
MARKS = """svg => [...svg.querySelectorAll('polyline.line, circle, rect.bar, line.whisker')]
    .filter(mark => mark.getClientRects().length).length"""
SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"


def few_rows():
    """Return 60 rows of 3 classes, evaluated by cross-validation."""
    task = simulate(60, 3, random_state=5)
    return compare(task.logits, task.labels, methods=["ts", "hts", "bts", "mono"], folds=3, draws=5)


def two_classes():
    """Return two classes with names, and probabilities with zeros as a forest has them."""
    rng = np.random.default_rng(1)
    share = rng.binomial(20, rng.beta(0.4, 0.4, 600)) / 20
    labels = (rng.random(600) < 0.2 + 0.6 * share).astype(int)
    logits = np.log(np.maximum(np.c_[1 - share, share], 1e-3))
    return compare(logits, labels, methods=["ts", "lts", "bayes-bias"], draws=5, classes=["ham", "spam"])


def extreme_logits():
    """Return a classifier like naive Bayes, certain of almost every prediction, and one outlying row."""
    task = simulate(900, 4, random_state=3)
    logits = 15 * task.logits
    logits[:5] = 0.1 * logits[:5]
    return compare(logits, task.labels, methods=["ts", "hts", "bts", "mono"], folds=3, draws=5)


def many_classes():
    """Return 60 classes with long names."""
    task = simulate(2500, 60, random_state=2)
    names = [f"a class with a long name, number {k}" for k in range(60)]
    return compare(task.logits, task.labels, methods=["ts", "hts"], folds=2, draws=5, classes=names)


def left_alone():
    """Return a calibrated classifier, which calibration can only make worse."""
    task = simulate(1500, 4, temperature=1, entropy_slope=0, class_spread=0, random_state=6)
    return compare(task.logits, task.labels, methods=["ts", "bts"], folds=3, draws=5)


TASKS = {task.__name__: task for task in (few_rows, two_classes, extreme_logits, many_classes, left_alone)}


@pytest.fixture(scope="session")
def task_page(tmp_path_factory):
    """Return a function that writes the page of a task once."""
    folder, written = tmp_path_factory.mktemp("tasks"), {}

    def page_of(name):
        if name not in written:
            result = TASKS[name]()
            shell = [
                "temperance fit 'a file with a very long name, of validation rows.npz' -m ts -o cal.json"
            ]
            path = folder / f"{name}.html"
            title = "Calibration report: a_file_with_a_very_long_name_of_validation_rows.npz"
            told = replace(result, learning_curve=learning_curve(result, draws=2))
            write_report(told, path, title=title, snippets=Snippets({result.recommended: shell}))
            written[name] = path, result
        return written[name]

    return page_of


@pytest.fixture
def open_task(open_file, task_page):
    """Return a function that opens the page of a task on a screen."""
    return lambda name, screen: open_file(task_page(name)[0], **screen)


@SCREENS
@pytest.mark.parametrize("name", TASKS)
def test_no_figure_is_empty_no_text_is_cut_or_overlaps_and_the_page_does_not_scroll_sideways(
    name, screen, open_task
):
    page = open_task(name, screen)
    assert page.evaluate(SIDEWAYS) <= 0
    for figure in page.locator("figure:visible").all():
        svg = figure.locator("svg")
        assert svg.evaluate(MARKS) > 0, figure.get_attribute("id")
        assert svg.evaluate(CUT) == [], figure.get_attribute("id")
        assert svg.evaluate(OVERLAPS) == [], figure.get_attribute("id")


@pytest.mark.parametrize("name", TASKS)
def test_a_phone_shows_the_verdict_first(name, open_task):
    page = open_task(name, PHONE)
    verdict = page.locator(".verdict").bounding_box()
    assert verdict["y"] + verdict["height"] <= 844
    assert page.locator(".outcome").is_visible()


@SCREENS
def test_no_interval_runs_through_the_value_that_is_written_at_the_edge(screen, open_task):
    page = open_task("extreme_logits", screen)
    (svg,) = page.locator("figure:visible svg:has(.note):has(line.whisker)").all()
    ends = "lines => Math.max(...lines.map(line => +line.getAttribute('x2')))"
    assert svg.locator("line.whisker").evaluate_all(ends) <= svg.locator("line.grid").evaluate_all(ends)
    note = svg.locator(".note").first
    halo, height = note.evaluate(
        "t => ['strokeWidth', 'fontSize'].map(k => parseFloat(getComputedStyle(t)[k]))"
    )
    assert halo >= 0.7 * height, "it covers the line behind the letters"


@SCREENS
def test_lettering_is_large_enough_to_read(screen, open_task):
    page = open_task("many_classes", screen)
    heights = page.evaluate(
        "[...document.querySelectorAll('svg .tick')].filter(t => t.getClientRects().length)"
        ".map(t => parseFloat(getComputedStyle(t).fontSize)"
        " * t.ownerSVGElement.clientWidth / t.ownerSVGElement.viewBox.baseVal.width)"
    )
    assert min(heights) >= 9


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_box_has_the_colour_and_the_name_of_the_outcome(scheme, open_task, task_page):
    colours = set()
    for name in ("few_rows", "two_classes", "left_alone"):
        page = open_task(name, DESK | {"color_scheme": scheme})
        outcome = task_page(name)[1].verdict.outcome
        assert page.locator(".outcome").inner_text().endswith(f"Calibration: {outcome}")
        edge = "getComputedStyle(document.querySelector('.verdict')).borderLeftColor"
        colours.add((str(outcome), page.evaluate(edge)))
    assert len({outcome for outcome, _ in colours}) == len({colour for _, colour in colours}) >= 2


def test_a_block_of_commands_is_copied(open_task):
    page = open_task("two_classes", DESK | {"permissions": ["clipboard-read", "clipboard-write"]})
    page.get_by_role("button", name="Copy Shell").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("temperance fit 'a file with")
