"""Keep, watch, act: no "keep" above a gap outside its range, and what would settle a watch."""

import json
import re
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from temperance import monitoring
from temperance.report.history import confidence_chart, render_history


def with_wrong_labels(world, part, share, seed):
    """Return rows, of whose labels a share is replaced by another class."""
    _, logits, labels = world
    wrong = np.random.default_rng(seed).random(len(labels[part])) < share
    return logits[part], (labels[part] + wrong) % 3


week = st.tuples(st.integers(1, 250), st.sampled_from([0.0, 0.0, 0.1, 0.2, 0.4]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(weeks=st.lists(week, min_size=1, max_size=8), seed=st.integers(0, 2**16))
def test_nothing_green_stands_above_a_number_outside_its_range(world, tmp_path_factory, weeks, seed):
    history = tmp_path_factory.mktemp("states") / "checks.jsonl"
    first = np.random.default_rng(seed).integers(0, 4000)
    for rows, share in weeks:
        part = slice(first, first + rows)
        first += rows
        found = monitoring.check(world[0], *with_wrong_labels(world, part, share, seed), history=history)
        labelled, limits = [record.labelled for record in found.records], found.limits
        for together in (labelled[-1:], labelled[-3:]):
            sums = reduce(add, together)
            mean, n = sums.residuals / sums.rows, sums.rows
            errors = np.sqrt((np.maximum(sums.squares - n * mean**2, 0) + 1) / (n + 1) / n + limits.errors**2)
            z = np.append(3, np.full(3, norm.isf(norm.sf(3) / 3)))
            differs = np.abs(mean - limits.center) > z * errors
            if (differs & ((mean < limits.low) | (mean > limits.high))).any():
                assert found.state != "keep"
        assert (found.state == "act") == found.alarm == found.acts
        assert found.records[-1].action == found.action
        assert found.sentences[0].lower().startswith(found.state)
        every = np.array([reduce(add, some).means for some in (labelled[-1:], labelled[-3:], labelled)])
        within = bool(((limits.low <= every) & (every <= limits.high)).all())
        assert ("No change beyond the tolerance." in found.words) == (within and found.state == "keep")
        page = render_history(found)
        assert ('class="verdict better"' in page) == (within and found.state == "keep")
        assert ('class="verdict watch"' in page) == (found.state == "watch")
        last = found.gaps[0]
        assert (last.rows, last.date) == (rows, found.records[-1].date)


@pytest.fixture
def watched(world, tmp_path):
    """Return the checks of three good weeks, then two with wrong labels, and the history's path."""
    path, found = tmp_path / "checks.jsonl", []
    for number in range(5):
        rows = with_wrong_labels(world, slice(100 * number, 100 * number + 100), 0.4 * (number > 3), 1)
        found.append(monitoring.check(world[0], *rows, history=path, name=f"week{number}.npz"))
    return found, path


def test_a_watch_tells_the_last_check_the_last_three_and_all(watched):
    found = watched[0][-1]
    assert (found.state, found.action, found.alarm, found.acts) == ("watch", "watch", False, False)
    assert re.match(r"Watch\. Confidence is too high: [\d.]+% on average, [\d.]+% correct in", found.words)
    assert [gap.checks for gap in found.gaps] == [1, 3, 5]
    assert (found.gaps[0].name, found.gaps[0].outside, found.gaps[0].within) == ("week4.npz", True, False)
    for which in ("The last 3 checks since ", "All 5 checks since "):
        (said,) = [sentence for sentence in found.sentences if sentence.startswith(which)]
        assert re.search(r"\d: Confidence [\d.]+% on average, [\d.]+% correct in \d00 rows of", said)
    assert any(
        sentence.startswith("Allowed: 0 to the difference at the fit, ") for sentence in found.sentences
    )
    assert 'class="verdict watch"' in render_history(found)
    assert json.loads(json.dumps(found.to_dict()))["gaps"][0]["name"] == "week4.npz"


def test_the_labels_that_would_settle_it_do(watched, world):
    """Rows like those of the last week raise the alarm after about as many as the check says."""
    found, path = watched
    number = found[-1].labels.number
    assert "One more check like this would settle it." in found[-1].words or (
        f"about {number:,} more labels will settle it." in found[-1].words
    )
    rows, labels = with_wrong_labels(world, slice(400, 500), 0.4, 1)
    again = np.arange(2 * number) % 100
    enough = monitoring.check(world[0], rows[again], labels[again], history=path, name="more")
    assert enough.alarm
    assert 20 <= number <= 2000


def test_a_name_that_is_a_number_is_told_as_a_class(world, shifted):
    assert "More frequent than predicted: class 0 (" in monitoring.check(world[0], *shifted).words


def test_the_mean_confidence_is_drawn_even_where_it_is_extreme(world, tmp_path):
    for scale in (1, 1, 1, 1, 0.1):
        found = monitoring.check(world[0], scale * world[1][:300], history=tmp_path / "h", name=str(scale))
    chart = confidence_chart(found)
    low, high = chart.y.limits
    line = chart.marks[1]
    assert low < line.y.min() < line.y.max() < high
    np.testing.assert_allclose(
        line.y[-1], 100 * world[0].predict_proba(0.1 * world[1][:300]).max(axis=1).mean()
    )
