"""The smooth calibration error against its definition: integrals of reflected Gaussians, a fixed point."""

import metrics_by_definition as definition
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from small_cases import arguments, draw_cases, exact_rows

from temperance import metrics

POINTS = np.linspace(0, 1, 1601)


def residuals(rows):
    """Return the mean residual at each confidence, exactly, then as floats."""
    total, sums = sum(w for _, _, w in rows), {}
    for c, h, w in definition.top_events(rows):
        sums[c] = sums.get(c, 0) + w * (h - c) / total
    return [(float(c), float(r)) for c, r in sums.items() if r]


def images(c, width):
    """Return where a kernel at c comes from: it is reflected at 0 and 1, again and again."""
    return [2 * m + side * c for m in range(-int(4 * width) - 2, int(4 * width) + 3) for side in (1, -1)]


def error_at(found, width):
    """Return the integral of |sum of r kernel|: the total variation of the antiderivative."""
    area = sum(r * ndtr((POINTS - image) / width) for c, r in found for image in images(c, width))
    return np.abs(np.diff(area)).sum()


def smooth_ece(rows):
    """Return the width that equals the error at this width."""
    found = residuals(rows)
    return brentq(lambda width: error_at(found, width) - width, 1e-9, 1.0, xtol=1e-9) if found else 0.0


def run(seed, number):
    for case in draw_cases(seed, number):
        given, weights = arguments(*case)
        want = smooth_ece(exact_rows(*case))
        assert metrics.smooth_ece(*given, **weights) == pytest.approx(want, abs=3e-6), case


def test_smooth_ece_on_small_cases():
    run(seed=3, number=60)


@pytest.mark.slow
def test_smooth_ece_on_many_small_cases():
    run(seed=4, number=2000)


def test_the_integral_of_the_reference_is_that_of_a_quadrature():
    found, width = [(0.25, -0.1), (0.5, 0.3), (1.0, -0.15)], 0.2
    t = (np.arange(100_000) + 0.5) / 100_000
    density = sum(
        r * np.exp(-(((t - i) / width) ** 2) / 2) / np.sqrt(2 * np.pi) / width
        for c, r in found
        for i in images(c, width)
    )
    assert error_at(found, width) == pytest.approx(np.abs(density).mean(), abs=1e-6)
