"""Edges of bins, and what is computed from them; test_exact.py has the errors by their definitions."""

import numpy as np
import pytest

from temperance import metrics
from temperance.core.ece_loss import assign_bins, equal_width_edges


def bin_of(confidence, bins):
    confidence = np.atleast_1d(confidence)
    return assign_bins(confidence, equal_width_edges(bins, confidence.dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_confidence_of_i_over_m_belongs_to_bin_i_for_all_m_to_100(dtype):
    for bins in range(1, 101):
        quotients = np.arange(1, bins + 1).astype(dtype) / dtype(bins)  # as the caller would compute it
        assert quotients.dtype == dtype
        np.testing.assert_array_equal(bin_of(quotients, bins), np.arange(bins))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_next_number_after_an_edge_belongs_to_the_next_bin(dtype):
    for bins in range(2, 101):
        above = np.nextafter((np.arange(1, bins) / bins).astype(dtype), dtype(1))
        np.testing.assert_array_equal(bin_of(above, bins), np.arange(1, bins))


def test_long_double_is_binned_as_float64():
    p = np.arange(8, 16) / 15
    expected = metrics.reliability(p, [1] * 8).count
    np.testing.assert_array_equal(metrics.reliability(p.astype(np.longdouble), [1] * 8).count, expected)


def test_the_public_function_respects_the_edges_in_float32():
    # 0.7 of float32 is below 0.7 of float64, and 0.6 above: widening first would move the second.
    probs = np.array([[0.7, 0.3], [0.6, 0.4]], dtype=np.float32)
    np.testing.assert_array_equal(metrics.reliability(probs, [0, 0], bins=10).count[5:7], [1, 1])


def test_wilson_interval_solves_its_quadratic_equation():
    # 7 of 10 right: the interval is the pair of rates p with (0.7 - p)^2 = z^2 p (1 - p) / 10.
    diagram = metrics.reliability([[0.7, 0.3]] * 10, [0] * 7 + [1] * 3, bins=1)
    roots = np.roots([1 + 0.384145882, -(1.4 + 0.384145882), 0.49])  # z^2 / 10 = 0.3841...
    np.testing.assert_allclose([diagram.low[0], diagram.high[0]], np.sort(roots), rtol=1e-7)
    empty = metrics.reliability([[0.7, 0.3]] * 10, [0] * 10, bins=2)
    assert np.isnan([empty.low[0], empty.high[0]]).all()


def test_the_class_wise_error_of_classes_that_do_not_occur_is_that_of_the_definition(simulate):
    probs, _, _ = simulate(50, 30, sharpen=1.5)
    labels = np.arange(50) % 4
    residual = np.eye(30)[labels] - probs
    index = np.clip(np.ceil(probs * 15).astype(int) - 1, 0, 14)
    direct = sum(np.abs(np.bincount(index[:, k], residual[:, k])).sum() for k in range(30)) / (50 * 30)
    assert metrics.classwise_ece(probs, labels) == pytest.approx(direct, rel=1e-10)
