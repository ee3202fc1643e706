"""The report in a real browser: nothing fails, nothing is fetched, everything works by mouse and keyboard."""

import pytest
from screens import PHONE, SCREENS

from temperance.report.sections import SECTIONS

pytestmark = pytest.mark.browser

WORDS = ("p", ".verdict", "td", "small", "caption", "figcaption", "a", "summary", "button", ".tag", "dd")
LETTERING = ("svg .tick", "svg .label", ".legend")


def column(page, number):
    cells = f"table.methods tbody tr > :nth-child({number})"
    return [float(v) for v in page.eval_on_selector_all(cells, "cells => cells.map(c => c.dataset.value)")]


def sections(page):
    found = page.locator("section").all()
    assert len(found) == len(SECTIONS)
    return found


def shown_methods(page, picture):
    marks = page.eval_on_selector_all(
        f"#figure-{picture} [data-method]",
        "gs => gs.filter(g => getComputedStyle(g).display !== 'none').map(g => g.dataset.method)",
    )
    return set(marks)


@pytest.mark.parametrize("settings", [{}, PHONE, {"color_scheme": "dark"}], ids=["desk", "phone", "dark"])
def test_the_page_opens_without_errors_and_without_a_network(open_page, report, settings):
    page = open_page(**settings)
    page.mouse.wheel(0, 5000)
    assert page.troubles == []
    assert page.requests == [report[0].as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for section in sections(page):
        assert section.is_visible()
        assert section.bounding_box()["height"] > 40


@SCREENS
def test_the_table_is_sorted_by_any_column_and_back(open_page, screen):
    page = open_page(**screen)
    before = column(page, 3)
    page.locator("table.methods thead th").nth(2).get_by_role("button").click()
    assert column(page, 3) == sorted(before)
    assert page.locator("table.methods thead th").nth(2).get_attribute("aria-sort") == "ascending"
    page.locator("table.methods thead th").nth(2).get_by_role("button").click()
    assert column(page, 3) == sorted(before, reverse=True)
    page.locator("table.methods thead th").nth(4).get_by_role("button").click()
    assert column(page, 5) == sorted(column(page, 5))
    assert page.locator("th[aria-sort]").count() == 1
    names = page.eval_on_selector_all("table.methods tbody th", "cells => cells.map(c => c.dataset.value)")
    page.locator("table.methods thead th").first.get_by_role("button").click()
    again = page.eval_on_selector_all("table.methods tbody th", "cells => cells.map(c => c.dataset.value)")
    assert again == sorted(names)


@SCREENS
def test_the_boxes_show_and_hide_methods_in_every_figure(open_page, screen):
    page = open_page(**screen)
    for picture in ("temperature", "classes", "labels"):
        assert "ts" in shown_methods(page, picture)
        assert "pts" not in shown_methods(page, picture)
    page.get_by_label("PTS", exact=True).check()
    page.get_by_label("TS", exact=True).uncheck()
    for picture in ("temperature", "classes", "labels"):
        assert "pts" in shown_methods(page, picture)
        assert "ts" not in shown_methods(page, picture)
    assert page.troubles == []


def test_a_mark_says_what_it_is(open_page):
    page = open_page()
    dot = page.locator("#figure-reliability circle.dot").last
    dot.scroll_into_view_if_needed()
    dot.hover(force=True)
    assert page.locator(".tip").is_visible()
    assert "rows: confidence" in page.locator(".tip").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_button_turns_dark_into_light_and_back(open_page, scheme):
    page = open_page(color_scheme=scheme)
    colour = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(colour)
    page.locator("#theme").click()
    assert page.evaluate(colour) != first
    page.locator("#theme").click()
    assert page.evaluate(colour) == first


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_page, scheme):
    page = open_page(color_scheme=scheme)
    ratio = """element => {
        const light = (colour) => {
            const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).slice(0, 3).map((v) => {
                v /= 255;
                return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        let ground = element;
        while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
        const style = getComputedStyle(element);
        const ink = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
        const [a, b] = [light(ink), light(getComputedStyle(ground).backgroundColor)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    }"""
    for selector in WORDS + LETTERING:
        assert page.locator(selector).first.evaluate(ratio) >= 4.5, selector


def test_without_script_everything_can_be_read(open_page):
    page = open_page(java_script_enabled=False)
    assert page.troubles == []
    assert all(section.is_visible() for section in sections(page))
    assert page.locator("figure svg").count() == page.locator("figure svg:visible").count()
    assert not page.locator(".switch").is_visible()


def test_on_paper_there_are_no_controls_and_no_dark_ground(open_page):
    page = open_page(color_scheme="dark")
    page.emulate_media(media="print")
    for selector in ("aside", ".switch", "#theme", ".copy"):
        assert not page.locator(selector).first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf()) > 10_000


def test_the_page_can_be_used_with_the_keyboard_only(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    page.keyboard.press("Enter")
    assert page.url.endswith("#verdict")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"scroll"} <= reached
    page.locator("table.methods thead th").nth(2).get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert column(page, 3) == sorted(column(page, 3))
