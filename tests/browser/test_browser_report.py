"""The report in a real browser: nothing fails, nothing is fetched, everything works by mouse and keyboard."""

import pytest
from screens import DESK, PHONE

from temperance.report.page import DIAGNOSTICS, SECTIONS

pytestmark = pytest.mark.browser

WORDS = ("p", ".verdict", ".value", "td", "small", "caption", "figcaption", "summary", "button", "dd")
LETTERING = ("svg .tick", "svg .label", ".legend")


def sections(page):
    found = page.locator("section").all()
    assert len(found) == len(SECTIONS) + len(DIAGNOSTICS)
    return found


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


def test_the_first_screen_has_verdict_picture_and_tiles(open_page):
    page = open_page(**DESK)
    box, picture, tiles = (
        page.locator(selector).bounding_box() for selector in (".verdict", "#figure-reliability", ".tiles")
    )
    assert box["x"] + box["width"] <= picture["x"]
    assert max(box["y"] + box["height"], picture["y"] + picture["height"]) <= tiles["y"]
    assert tiles["y"] + tiles["height"] <= 900
    assert page.locator(".tile").count() == 3


@pytest.mark.parametrize(("screen", "most"), [(DESK, 5), (PHONE, 7)], ids=["desk", "phone"])
def test_the_page_is_short_until_the_diagnostics_are_opened(open_page, screen, most):
    """With twelve methods, a learning curve and groups, which are all more than usual."""
    page = open_page(**screen)
    page.locator("#diagnostics > summary").click()
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= most * screen["viewport"]["height"]


def test_a_mark_says_what_it_is(open_page):
    page = open_page()
    words = page.locator("#figure-reliability circle.dot title").all_text_contents()
    assert words
    assert all("rows: confidence" in one for one in words)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_ground_follows_the_theme_of_the_system(open_page, scheme):
    page = open_page(color_scheme=scheme)
    red = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0]")
    assert (int(red) < 60) == (scheme == "dark")


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
    assert not page.locator(".copy").first.is_visible()


def test_on_paper_there_are_no_controls_and_no_dark_ground(open_page):
    page = open_page(color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator(".copy").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf()) > 10_000


def test_the_page_can_be_used_with_the_keyboard_only(open_page):
    page = open_page()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
    assert {"copy", "SUMMARY", "scroll"} <= reached
    summary = page.locator("#diagnostics > summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert not page.locator("#scores").is_visible()
    page.keyboard.press("Enter")
    assert page.locator("#scores").is_visible()
