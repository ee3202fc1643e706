"""Paths that few inputs take: each is compared with the usual path, or with what must hold."""

import numpy as np
import pytest

import temperance
from temperance.calibrators import Method, method_style
from temperance.core.blocks import row_slices
from temperance.metrics import bins as metric_bins
from temperance.metrics.predictions import check_rows


def test_the_class_wise_error_of_several_blocks_is_that_of_one(monkeypatch):
    rng = np.random.default_rng(3)
    rows = check_rows(rng.dirichlet(np.full(12, 0.2), size=90), rng.integers(0, 9, 90))
    whole = metric_bins.classwise_error(rows, 15)
    monkeypatch.setattr(metric_bins, "cached_slices", lambda n_rows, n_columns: row_slices(n_rows, 7))
    assert metric_bins.classwise_error(rows, 15) == pytest.approx(whole, rel=1e-12)


def test_a_method_is_used_by_default_only_if_it_says_so():
    method = Method("own", temperance.TemperatureScaling, method_style("ts"))
    assert not method.in_comparison
    assert not method.in_study
