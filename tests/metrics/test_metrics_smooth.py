import numpy as np
import pytest

from temperance import metrics
from temperance.metrics.predictions import check_rows
from temperance.metrics.smooth import grid_mean, grid_sums, smoothed


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


def test_the_grid_keeps_the_size_and_the_position_of_each_residual():
    confidence = np.array([0.5, 0.61803, 0.75, 0.9])
    rows = check_rows(np.column_stack([confidence, 1 - confidence]), [0, 1, 0, 1])
    masses = grid_sums(rows, rows.residual)(np.eye(4))
    centres = (np.arange(len(masses)) + 0.5) / len(masses)
    np.testing.assert_allclose(masses.sum(axis=0), rows.residual, rtol=1e-12)
    np.testing.assert_allclose(centres @ masses / rows.residual, confidence, rtol=1e-12)


def direct_error_at(confidence, correct, width):
    """Return the integral of the kernel sum, with reflections at 0 and at 1, on a fine mesh."""
    t = (np.arange(1000) + 0.5) / 1000
    images = np.concatenate([confidence, -confidence, 2 - confidence])
    kernel = np.exp(-((t[:, None] - images) ** 2) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    smoothed = kernel @ np.tile(correct - confidence, 3) / len(confidence)
    return np.abs(smoothed).mean()


@pytest.mark.parametrize("width", [0.01, 0.03, 0.1])
def test_the_error_at_a_given_width_is_that_of_the_kernel_sum(top, width):
    probs, labels, confidence, correct = top
    direct = direct_error_at(confidence, correct, width)
    assert error_at(probs, labels, width) == pytest.approx(direct, rel=1e-3)


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


def test_the_result_is_a_fixed_point(top):
    probs, labels, confidence, correct = top
    width = metrics.smooth_ece(probs, labels)
    assert error_at(probs, labels, width) == pytest.approx(width, abs=1e-6)
    assert direct_error_at(confidence, correct, width) == pytest.approx(width, rel=1e-3)


def test_no_mass_is_lost_at_certainty():
    # All residual in one place: its integral is the same for every width.
    assert metrics.smooth_ece([[1.0, 0.0]] * 4, [0, 0, 0, 1]) == pytest.approx(0.25, abs=1e-6)


def test_rows_that_are_right_and_certain_have_no_smooth_error():
    assert metrics.smooth_ece([[1.0, 0.0]] * 4, [0] * 4) == 0


def test_the_smooth_error_of_a_calibrated_classifier_vanishes_with_more_rows(simulate):
    few, many = (metrics.smooth_ece(*simulate(n, 3)[:2]) for n in (500, 50_000))
    assert many < 0.01
    assert many < few
