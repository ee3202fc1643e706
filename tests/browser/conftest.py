"""A real browser. Where Chromium or Playwright is not installed, the tests say so and are skipped."""

import shutil
from functools import partial

import pytest

from temperance import compare
from temperance.data import simulate
from temperance.report.page import Source, write_report

ARGUMENTS = ["--no-sandbox", "--disable-background-networking"]


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """Return the report of a comparison of all methods."""
    val, test = (simulate(n_rows=n, n_classes=5, random_state=seed) for n, seed in ((600, 3), (1500, 8)))
    result = compare(
        val.logits,
        val.labels,
        test.logits,
        test.labels,
        "all",
        by=test.labels % 3,
        draws=50,
        learning_curve=True,
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(result, path, sources=[Source("val.npz", "validation", 600, "0" * 64)])
    return path, result


@pytest.fixture(scope="session")
def browser():
    """Return Debian's Chromium, headless."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_file(browser):
    """Return a function that opens a page and its diagnostics; what goes wrong is collected."""
    contexts = []

    def opened(path, **settings):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.troubles, page.requests = [], []
        page.on("console", lambda message: page.troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(path.as_uri())
        for summary in page.locator("#diagnostics > summary").all():
            summary.click()
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(open_file, report):
    """Return a function that opens the report on a screen."""
    return partial(open_file, report[0])
