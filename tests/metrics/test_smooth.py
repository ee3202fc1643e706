"""The smooth calibration error: its grid, its kernel, its fixed point."""

import numpy as np
import pytest

from temperance import metrics
from temperance.metrics.predictions import check_rows
from temperance.metrics.smooth import coarse_cells, grid_mean, places_on_grid, smoothed


@pytest.mark.parametrize("sharpen", [1.3, 2.0, 4.0])
def test_the_smoothed_residuals_of_the_rows_have_the_smooth_error_as_their_norm(sharpen, simulate):
    probs, labels, _ = simulate(500, 3, sharpen=sharpen)
    rows, value = check_rows(probs, labels), metrics.smooth_ece(probs, labels)
    n_cells = coarse_cells(value)
    assert n_cells >= 4 / value  # four cells in the width of the kernel
    residual = places_on_grid(rows, n_cells) @ rows.residual / 500
    assert np.abs(smoothed(residual, value)).sum() == pytest.approx(value, rel=0.02)


@pytest.fixture(scope="module")
def top(simulate):
    """Return 2000 rows of a four-class task, none within 0.001 of certainty.

    relplot gives half the mass to a row whose confidence is 0 or 1, so the two agree only away from there.
    """
    probs, labels, _ = simulate(3000, 4, sharpen=2.0)
    kept = np.flatnonzero(probs.max(axis=1) < 0.999)[:2000]
    probs, labels = probs[kept], labels[kept]
    return probs, labels, probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(float)


def error_at(probs, labels, width):
    rows = check_rows(probs, labels)
    return np.abs(smoothed(grid_mean(rows), width)).sum()


@pytest.mark.parametrize("width", [0.01, 0.03, 0.1])
def test_the_error_at_a_given_width_agrees_with_relplot(top, width):
    relplot_metrics = pytest.importorskip("relplot.metrics", exc_type=ImportError)
    probs, labels, confidence, correct = top
    # Its grid has 1000 points: a tenth of the smallest width.
    theirs = relplot_metrics.smECE_sigma(confidence, correct, width)
    assert error_at(probs, labels, width) == pytest.approx(theirs, rel=4e-3)


def test_the_fixed_point_agrees_with_relplot_to_its_own_tolerance(top):
    relplot_metrics = pytest.importorskip("relplot.metrics", exc_type=ImportError)
    probs, labels, confidence, correct = top
    # relplot halves [0, 1] ten times, and its value moves by less than the width does.
    assert metrics.smooth_ece(probs, labels) == pytest.approx(
        relplot_metrics.smECE(confidence, correct), abs=1 / 1024
    )


def test_the_grid_keeps_the_size_and_the_position_of_each_residual():
    confidence = np.array([0.5, 0.61803, 0.75, 0.9])
    rows = check_rows(np.column_stack([confidence, 1 - confidence]), [0, 1, 0, 1])
    masses = places_on_grid(rows) @ np.diag(rows.residual)
    centres = (np.arange(len(masses)) + 0.5) / len(masses)
    np.testing.assert_allclose(masses.sum(axis=0), rows.residual, rtol=1e-12)
    np.testing.assert_allclose(centres @ masses / rows.residual, confidence, rtol=1e-12)
