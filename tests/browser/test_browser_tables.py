"""Tables and pictures as a customer sees them: whole columns, whole words, axes in line."""

import pytest
from screens import DESK, PHONE, SCREENS

pytestmark = pytest.mark.browser


HIDDEN = "e => e.scrollWidth - e.clientWidth"
LINES = """cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
}"""


WIDEST = """intervals => intervals.forEach(small => {
    const digits = small.textContent.split('.').pop().length;
    small.textContent = digits == 4 ? '4.6301 .. 5.7950' : '17.86 .. 21.18';
})"""
DECISIONS = """table => {
    if (table.tHead.textContent.includes('predictions')) return;
    for (const row of table.rows) row.append(row.lastElementChild.cloneNode(true));
    table.tHead.querySelector('th:last-child').textContent = 'predictions changed %';
}"""


def test_the_table_of_methods_shows_all_columns_on_a_desk_also_of_bad_scores(open_page):
    page = open_page(**DESK)
    intervals = page.locator(".methods td small")
    assert intervals.count() >= 6
    intervals.evaluate_all(WIDEST)
    page.locator(".methods").evaluate(DECISIONS)
    assert page.locator("div.scroll:has(.methods)").evaluate(HIDDEN) <= 0


def test_the_main_columns_fit_on_a_phone_and_a_button_shows_all(open_page):
    page = open_page(**PHONE)
    page.locator(".methods td small").evaluate_all(WIDEST)
    scroll, cells = page.locator("div.scroll:has(.methods)"), page.locator(".methods thead th:visible")
    assert scroll.evaluate(HIDDEN) <= 0
    assert [words.split()[0] for words in cells.all_inner_texts()] == ["method", "NLL", "ECE", "accuracy"]
    page.get_by_role("button", name="All columns").click()
    assert cells.count() >= 9
    page.get_by_role("button", name="Main columns").click()
    assert cells.count() == 4
    assert not open_page(**DESK).locator("button.columns").is_visible()


@SCREENS
def test_the_numbers_of_a_figure_fit_and_have_the_methods_of_the_figure(open_page, screen):
    page = open_page(**screen)
    page.locator("figure details").evaluate_all("all => all.forEach(one => one.open = true)")
    tables = page.locator("figure:visible details .scroll").all()
    assert len(tables) >= 5
    for numbers in tables:
        assert numbers.evaluate(HIDDEN) <= 0, numbers.get_attribute("aria-label")
    heads = page.locator("#figure-labels details th[data-method]:visible")
    assert "pts" not in heads.all_inner_texts()
    page.get_by_label("PTS", exact=True).check()
    assert "pts" in heads.all_inner_texts()


@SCREENS
def test_no_command_scrolls_sideways(open_page, screen):
    page = open_page(**screen)
    page.locator(".command code").evaluate_all("all => all.forEach(one => one.textContent = 'a/'.repeat(99))")
    for block in page.locator(".command pre").all():
        assert block.evaluate(HIDDEN) <= 0


def test_a_digest_is_on_one_line_on_a_desk(open_page):
    page = open_page(**DESK)
    digest = page.locator("#provenance table").first.locator("tbody td").last
    assert len(digest.inner_text()) == 64
    assert digest.evaluate(LINES) == 1


def test_the_tests_of_calibration_show_all_columns_on_a_phone(open_page):
    page = open_page(**PHONE)
    cells = page.locator("#tests td").all_inner_texts()
    assert len(cells) >= 8
    assert all(", p\N{NO-BREAK SPACE}" in cell for cell in cells), "a p-value is on one line"
    assert page.locator("#tests .scroll").evaluate(HIDDEN) <= 0


@SCREENS
def test_short_words_and_numbers_of_the_table_of_files_are_not_broken(open_page, screen):
    page = open_page(**screen)
    files = page.locator("#provenance table").first
    files.locator("tbody th").evaluate_all(
        "cells => cells.forEach(th => th.textContent = 'satimage__gnb.npz')"
    )
    files.locator("tbody td:nth-child(2)").evaluate_all(
        "cells => cells.forEach(td => td.textContent = 'validation, logits_val')"
    )
    assert files.locator("thead th").all_inner_texts() == ["file", "used as", "rows", "SHA-256"]
    cells = [*files.locator("thead th").all()[1:3], *files.locator("tbody td").all()[:2]]
    if screen is DESK:
        cells.append(files.locator("tbody th").first)
    for cell in cells:
        words = cell.inner_text().split()
        assert cell.evaluate(LINES) <= len(words), words
    assert files.locator("xpath=..").evaluate(HIDDEN) <= 0


def test_what_was_learnt_is_wrapped_on_a_phone(open_page):
    page = open_page(**PHONE)
    summary = page.locator("details[open] pre").first
    assert len(summary.inner_text()) > 100
    assert summary.evaluate(HIDDEN) <= 0


def test_the_date_is_on_one_line(open_page):
    page = open_page(**PHONE)
    assert page.locator(".about time").evaluate(LINES) == 1


@SCREENS
def test_the_shares_of_rows_are_below_their_confidence(open_page, screen):
    page = open_page(**screen)
    pictures = page.locator("#reliability svg").all()
    assert pictures
    for picture in pictures:
        lefts = picture.evaluate(
            "svg => [...svg.querySelectorAll('g.axes')].map(g => Math.min("
            "...[...g.querySelectorAll('line.grid')].map(line => line.getBoundingClientRect().left)))"
        )
        assert len(lefts) == 2
        assert lefts[0] == pytest.approx(lefts[1], abs=0.1)
