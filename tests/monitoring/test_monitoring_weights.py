"""Weighted rows: a row of weight w counts as min(1, w / mean w) rows."""

import numpy as np
import pytest

from temperance import monitoring
from temperance.monitoring.evidence import log_growth


def test_equal_weights_change_nothing(world):
    calibrator, logits, labels = world
    plain = monitoring.check(calibrator, logits[:500], labels[:500])
    equal = monitoring.check(calibrator, logits[:500], labels[:500], sample_weight=np.full(500, 7.0))
    assert equal.log_e == pytest.approx(plain.log_e)
    assert equal.words == plain.words


@pytest.mark.parametrize("labelled", [True, False])
def test_rows_without_weight_do_not_count(world, labelled):
    calibrator, logits, labels = world
    weights = np.repeat([1.0, 0.0], 300)
    wrong = np.where(weights > 0, labels[:600], (labels[:600] + 1) % 3) if labelled else None
    logits = np.where(weights[:, None] > 0, logits[:600], 5 * logits[:600])
    found = monitoring.check(calibrator, logits, wrong, sample_weight=weights)
    plain = monitoring.check(calibrator, logits[:300], None if wrong is None else wrong[:300])
    assert (found.action, found.rows) == ("keep", 300)
    assert monitoring.check(calibrator, logits, wrong).action != "keep"
    assert found.log_e == pytest.approx(plain.log_e)
    assert [t.difference for t in found.shift.tests] == pytest.approx(
        [t.difference for t in plain.shift.tests]
    )


def test_sums_are_weighted_and_survive_their_history(world, tmp_path):
    calibrator, logits, labels = world[0], world[1][:400], world[2][:400]
    weights = np.random.default_rng(0).uniform(0, 3, 400)
    share = np.minimum(1, weights / weights.mean())
    history = tmp_path / "checks.jsonl"
    monitoring.check(calibrator, logits, labels, sample_weight=weights, history=history)
    found = monitoring.check(calibrator, world[1][400:500], world[2][400:500], history=history)
    sums, probs = found.records[0].labelled, calibrator.predict_proba(logits)
    assert sums.rows == pytest.approx(share.sum())
    np.testing.assert_allclose(sums.probabilities, share @ probs)
    np.testing.assert_allclose(sums.labels, np.bincount(labels, share))
    assert found.labelled_rows == pytest.approx(share.sum() + 100)


@pytest.mark.parametrize("share", [0.1, 0.7, 1.0])
def test_a_share_of_a_bet_gains_nothing_on_average(share):
    """A residual of +1 or -1 with mean m, at the limit."""
    mean, outcomes = 0.2, np.array([[1.0], [-1.0]])
    limit = np.array([mean])
    factors = [np.exp(log_growth(row[None], -limit, limit, np.array([share])))[0] for row in outcomes]
    expected = (1 + mean) / 2 * factors[0] + (1 - mean) / 2 * factors[1]
    np.testing.assert_allclose(expected, 1.0, rtol=1e-12)
