"""What monitoring and `adapt` know of the fit does not depend on the order of its rows."""

import numpy as np
import pytest

from temperance import make_calibrator, metrics, monitoring
from temperance.core.blocks import sampled_rows
from temperance.data import simulate
from temperance.monitoring.sums import allowed


def in_turn(n_classes, rows):
    """Return rows whose labels are 0, 1, ..., K - 1, 0, 1, ..."""
    task = simulate(2 * rows, n_classes, random_state=0)
    of_class = np.argsort(task.labels, kind="stable")
    starts = np.searchsorted(task.labels[of_class], np.arange(n_classes))
    i = np.arange(rows)
    at = of_class[starts[i % n_classes] + i // n_classes]
    return task.logits[at], task.labels[at]


def sorted_by_class(n_classes, rows):
    logits, labels = in_turn(n_classes, rows)
    order = np.argsort(labels, kind="stable")
    return logits[order], labels[order]


@pytest.mark.filterwarnings("ignore:check needs rows that the fit has not seen")
@pytest.mark.parametrize("ordered", [in_turn, sorted_by_class])
@pytest.mark.parametrize(("n_classes", "rows"), [(2, 16_000), (10, 40_000)])
@pytest.mark.parametrize("method", ["ts", "bayes-bias"])
def test_rows_in_turn_or_sorted_are_described_as_any_others(ordered, n_classes, rows, method):
    logits, labels = ordered(n_classes, rows)
    calibrator = make_calibrator(method).fit(logits, labels)
    probs, limits = calibrator.predict_proba(logits), allowed(calibrator.model_)
    off = np.abs(calibrator.baseline_.label_frequencies - 1 / n_classes)
    assert off.max() < 4 * np.sqrt(1 / n_classes / calibrator.baseline_.rows)
    for wide in (limits.low, limits.high):
        assert np.abs(wide).max() < 0.06
    adapted = calibrator.adapt(logits).predict_proba(logits)
    assert metrics.nll(adapted, labels) - metrics.nll(probs, labels) < 0.005
    for given in (None, labels):
        found = monitoring.check(calibrator, logits, given)
        assert (found.action, found.shift.alarm) == ("keep", False)


@pytest.mark.parametrize("period", [2, 3, 7, 10, 16, 610, 4181])
@pytest.mark.parametrize("step", [2, 16, 4181, 2 * 4181])
def test_every_place_of_a_period_is_sampled_alike(period, step):
    """The golden ratio, which spreads rows evenly, would miss some: it nearly repeats after 4181."""
    rows = sampled_rows(step, 20_000 * step)
    assert len(rows) == 20_000
    assert (rows // step == np.arange(20_000)).all()
    groups = min(period, 16)  # of neighbouring places
    counts = np.bincount(rows % period * groups // period, minlength=groups)
    share = np.bincount(np.arange(period) * groups // period) / period
    assert (np.abs(counts - 20_000 * share) < 5 * np.sqrt(20_000 * share)).all()
