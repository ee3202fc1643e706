"""The page of a history: complete, offline, escaped; and the benchmark with the same code."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from temperance import monitoring
from temperance.data import simulate
from temperance.display.chart import Intervals
from temperance.report.history import _dates, gap_chart, render_history

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found(world, noisy, tmp_path_factory):
    path = tmp_path_factory.mktemp("history") / "checks.jsonl"
    calibrator, logits, _ = world
    for day in range(8):
        part = slice(day * 300, day * 300 + 300)
        result = monitoring.check(calibrator, logits[part], noisy[part], history=path, name=f"<day{day}>")
    return result


def test_the_page_has_the_verdict_the_figures_and_all_checks_and_needs_no_network(found):
    page = render_history(found, title="Checks <of> mine")
    HTMLParser().feed(page)
    assert "Checks &lt;of&gt; mine" in page
    assert "<day0>" not in page
    assert page.count("<svg") == 4
    assert page.count("<tr>") == 1 + 8
    assert "alarm at 20" in page
    assert str(escape(found.sentences[0])) in page
    assert 'class="verdict worse"' in page
    assert "default-src &#39;none&#39;" in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"?http", page)
    assert "prefers-color-scheme: dark" in page


def test_an_unlabelled_check_has_two_pictures(world):
    assert render_history(monitoring.check(world[0], world[1][:50])).count("<svg") == 2


@pytest.mark.parametrize("days", [1, 5, 8, 9, 40])
def test_dates_are_evenly_spaced_and_numbers_if_they_repeat(found, days):
    records = [
        replace(found.records[0], date=f"2026-{1 + i // 28:02}-{1 + i % 28:02}T00:00") for i in range(days)
    ]
    places, names = zip(*_dates(replace(found, records=records)).ticks, strict=True)
    assert 1 <= len(places) <= 6
    assert len(set(np.diff(places))) <= 1
    assert names[0] == "2026-01-01"
    same = _dates(replace(found, records=[found.records[0]] * days)).ticks
    assert days == 1 or [name for _, name in same] == [f"{place:.0f}" for place, _ in same]


def test_gaps_are_inside_the_axis_however_far_from_the_others(found, world, tmp_path):
    chart = gap_chart(found, np.arange(len(found.records)))
    (mark,) = (mark for mark in chart.marks if isinstance(mark, Intervals))
    low, high = chart.y.limits
    assert low < mark.low.min() < mark.high.max() < high
    calibrator, logits, labels = world
    for week in range(4):
        part = slice(week * 300, week * 300 + 300)
        told = (labels[part] + (week == 3)) % 3  # labels of other classes in the last week
        found = monitoring.check(
            calibrator, logits[part], told, history=tmp_path / "h.jsonl", name=f"w{week}"
        )
    chart = gap_chart(found, np.arange(4))
    (mark,) = (mark for mark in chart.marks if isinstance(mark, Intervals))
    assert chart.y.limits[1] > mark.value.max() > 30


@pytest.fixture(scope="module")
def benchmark(benchmark_script):
    return benchmark_script("monitoring")


def test_the_simulation_gives_the_e_value_of_the_command(benchmark, tmp_path):
    """The figures are those of the code that users run."""
    world = benchmark.World.make(300, 0)
    history = benchmark.live(world, benchmark.draw_days(world, benchmark.label_noise, 4, 50, 0))
    log_e, _ = benchmark.evidence_of(benchmark.cumulate(history), world.limits.low, world.limits.high)
    task = simulate(300 + benchmark.POOL, benchmark.CLASSES, sharpness=benchmark.SHARPNESS, random_state=0)
    rng = np.random.default_rng((0, 50, 4))
    for day in range(4):
        at, labels = benchmark.label_noise(world, rng, day, 50)
        found = monitoring.check(
            world.calibrator, task.logits[300:][at], labels, history=tmp_path / "checks.jsonl"
        )
    assert found.log_e == pytest.approx(log_e, rel=1e-6)


def test_a_small_simulation_has_no_false_alarm_and_detects_a_change(benchmark):
    ((alarms, watched, _),) = benchmark.false_alarms(500, 4, plans=((20, 60),))
    assert (alarms, watched <= 0.1) == (0, True)
    found = benchmark.detection("a subgroup gets worse", 1000, 300, 3, benchmark.CHANGES_AFTER + 20)
    assert found["seen"] == 1.0
    assert found["watch"] <= found["median"] <= 15
    assert set(found["advice"]) == {"refit"}


def test_the_page_of_figures_has_all_tables():
    text = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for name, rows in (("false alarms", 6), ("hard cases", 5), ("power", 16), ("shift", 5)):
        table = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end of {name} -->", text, re.S)[1]
        assert len(table.splitlines()) == 2 + rows
        if name in ("false alarms", "hard cases"):
            assert max(map(float, re.findall(r"([\d.]+)% \|", table))) <= 5
