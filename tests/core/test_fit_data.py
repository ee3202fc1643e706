"""Rows in parts: every objective is the mean over parts of that of each part, derivatives included."""

import gc
import re
import weakref

import numpy as np
import pytest
from core_models import draw

from temperance import CALIBRATORS, make_calibrator
from temperance.core.blocks import sampled_rows
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData, weighted_sum
from temperance.data import simulate

N, K = 90, 4
Z, Y = draw(N, K)
WEIGHTS = np.random.default_rng(2).uniform(0, 3, N)


def test_fit_data_in_memory_counts_sums_and_subsamples():
    sample = FitData(LogitRows(Z, Y), WEIGHTS)
    assert (sample.n_rows, sample.n_classes) == (N, K)
    assert sample.total_weight == pytest.approx(WEIGHTS.sum())
    some = sample.every(4)
    at = sampled_rows(4, N)
    np.testing.assert_array_equal(some.rows.values, Z[at])
    assert some.total_weight == pytest.approx(WEIGHTS[at].sum())
    (total,) = sample.total(lambda rows, weights: (weighted_sum(rows.values, weights),))
    np.testing.assert_allclose(total, WEIGHTS @ Z, rtol=1e-12)
    found = sample.quantiles(lambda rows, weights: (rows.label_gap, weights), np.array([0.5]))
    assert WEIGHTS[sample.rows.label_gap <= found.values[0]].sum() >= WEIGHTS.sum() / 2


@pytest.mark.parametrize("key", [key for key in CALIBRATORS if not re.search("pts|sgd", key)])
def test_samples_of_a_fit_are_freed_with_it(key, monkeypatch):
    """Without a cycle of references: the garbage collector can be far away when memory is short."""
    samples, take = [], LogitRows.take

    def remembered(rows, index):
        found = take(rows, index)
        samples.append(weakref.ref(found))
        return found

    monkeypatch.setattr(LogitRows, "take", remembered)
    task = simulate(n_rows=20_000, n_classes=3, random_state=0)
    gc.disable()
    try:
        make_calibrator(key).fit(task.logits, task.labels)
        assert len(samples) > 2
        assert [sample for sample in samples if sample() is not None] == []
    finally:
        gc.enable()
