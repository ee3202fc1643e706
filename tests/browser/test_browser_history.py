"""The page of checks, and what a notebook shows, on the screens they are read on."""

import numpy as np
import pytest
from screens import PHONE

from temperance import TemperatureScaling, compare, monitoring
from temperance.data import simulate
from temperance.report.history import write_history

pytestmark = pytest.mark.browser

HIDDEN = "all => Math.max(...all.map(e => e.scrollWidth - e.clientWidth))"


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Return the page of nine checks."""
    folder = tmp_path_factory.mktemp("history")
    task = simulate(3000, 5, random_state=2)
    calibrator = TemperatureScaling().fit(task.logits[:300], task.labels[:300])
    for part in np.array_split(np.arange(300, 3000), 9):
        found = monitoring.check(
            calibrator, task.logits[part], task.labels[part], history=folder / "checks.jsonl"
        )
    write_history(found, folder / "page.html")
    return folder / "page.html"


def test_the_table_of_checks_fits_on_a_phone(open_file, history):
    page = open_file(history, **PHONE)
    assert page.locator(".single td").count() >= 9 * 7
    assert page.locator(".scroll").evaluate_all(HIDDEN) <= 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_comparison_fits_into_a_notebook(open_file, tmp_path):
    task = simulate(300, 3, random_state=0)
    result = compare(task.logits, task.labels, methods=["ts", "bayes-bias"], folds=2, draws=5)
    (tmp_path / "cell.html").write_text(f"<!doctype html><body>{result._repr_html_()}</body>")
    page = open_file(tmp_path / "cell.html", viewport={"width": 980, "height": 800})
    assert page.locator("td").count() == 3 * 4
    assert page.locator(".scroll").evaluate_all(HIDDEN) <= 0
