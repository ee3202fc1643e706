"""Tables and pictures as a reader sees them: whole columns, whole words, axes in line."""

import pytest
from screens import DESK, PHONE, SCREENS

pytestmark = pytest.mark.browser


HIDDEN = "e => e.scrollWidth - e.clientWidth"
LINES = """cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
}"""


def test_the_table_of_scores_shows_all_columns_on_a_desk(open_page):
    page = open_page(**DESK)
    assert page.locator("#scores td small").count() >= 6
    assert page.locator("#scores .scroll").evaluate(HIDDEN) <= 0


def test_the_table_of_scores_scrolls_on_a_phone_and_names_its_methods(open_page):
    page = open_page(**PHONE)
    scroll, name = page.locator("#scores .scroll"), page.locator("#scores tbody th").first
    assert scroll.evaluate(HIDDEN) > 0
    scroll.evaluate("e => e.scrollLeft = 200")
    assert name.bounding_box()["x"] == pytest.approx(scroll.bounding_box()["x"], abs=1)


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


def test_the_date_is_on_one_line(open_page):
    page = open_page(**PHONE)
    assert page.locator(".about time").evaluate(LINES) == 1


@SCREENS
def test_the_shares_of_rows_are_below_their_confidence(open_page, screen):
    page = open_page(**screen)
    pictures = page.locator("#figure-reliability svg").all()
    assert pictures
    for picture in pictures:
        lefts = picture.evaluate(
            "svg => [...svg.querySelectorAll('g.axes')].map(g => Math.min("
            "...[...g.querySelectorAll('line.grid')].map(line => line.getBoundingClientRect().left)))"
        )
        assert len(lefts) == 2
        assert lefts[0] == pytest.approx(lefts[1], abs=0.1)
