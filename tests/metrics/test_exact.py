"""Every metric against its definition in exact arithmetic, on small cases with ties, zeros and weights."""

import metrics_by_definition as definition
import mpmath
import numpy as np
import pytest
from small_cases import arguments, draw_cases, exact_rows

from temperance import metrics
from temperance.metrics.calibration_tests import brownian_survival

CASES = [(exact_rows(*case), *case) for case in draw_cases(seed=0, number=150)]


@pytest.mark.parametrize("name", ["accuracy", "nll", "brier", "overconfidence", "aurc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores(name, dtype):
    for rows, *case in CASES:
        given, weights = arguments(*case, dtype)
        want = float(getattr(definition, name)(rows))
        assert getattr(metrics, name)(*given, **weights) == pytest.approx(want, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("name", ["ece", "mce", "classwise_ece", "debiased_ece"])
@pytest.mark.parametrize("strategy", ["width", "mass"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binned_errors(name, strategy, dtype):
    for i, (rows, *case) in enumerate(CASES):
        given, weights = arguments(*case, dtype)
        bins = (1, 2, 3, 4, 7, 8, 15, 16)[i % 8]  # edges that are sixteenths, and others
        want = float(getattr(definition, name)(rows, bins, strategy))
        found = getattr(metrics, name)(*given, bins=bins, strategy=strategy, **weights)
        assert found == pytest.approx(want, rel=1e-12, abs=1e-14), (bins, rows)


@pytest.mark.parametrize("strategy", ["width", "mass"])
def test_the_bins_of_a_diagram(strategy):
    for rows, *case in CASES:
        given, weights = arguments(*case)
        diagram = metrics.reliability(*given, bins=4, strategy=strategy, **weights)
        want = definition.gaps(definition.top_events(rows), 4, strategy)
        filled = diagram.count > 0
        found = np.column_stack([diagram.share, diagram.gap, diagram.accuracy, diagram.count])[filled]
        np.testing.assert_allclose(found, np.array(want, float), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("column", [None, 0, 1])
def test_calibration_tests(column):
    for rows, *case in CASES:
        given, weights = arguments(*case)
        events = definition.top_events(rows) if column is None else definition.class_events(rows, column)
        found = metrics.spiegelhalter(*given, class_=column, **weights)
        z = definition.spiegelhalter(events)
        assert found.statistic == pytest.approx(float(z), rel=1e-12, abs=1e-13)
        assert found.p_value == pytest.approx(float(mpmath.erfc(abs(z) / mpmath.sqrt(2))), rel=1e-11)
        for statistic in ("kuiper", "ks"):
            test = metrics.cumulative_differences(*given, statistic=statistic, class_=column, **weights)
            size = definition.cumulative(events, statistic)
            assert test.statistic == pytest.approx(float(size), rel=1e-12)
            want = float(definition.brownian_survival(size, statistic))
            assert test.p_value == pytest.approx(want, rel=1e-9, abs=1e-14), (statistic, size)


@pytest.mark.parametrize("x", [0.39, 0.4, 0.41, 0.6, 1.0, 3.0, 10.0, 25.0])
def test_a_p_value_of_brownian_motion_has_all_its_digits(x):
    wide, half = mpmath.mpf(x), mpmath.mpf(x) / 2
    ranges = [(-1) ** (k - 1) * k * mpmath.ncdf(-k * wide) for k in range(1, 200)]
    assert brownian_survival(x, "kuiper") == pytest.approx(float(8 * mpmath.fsum(ranges)), rel=1e-10, abs=0)
    maxima = [(-1) ** k * mpmath.ncdf(-(2 * k + 1) * half) for k in range(200)]
    assert brownian_survival(x / 2, "ks") == pytest.approx(float(4 * mpmath.fsum(maxima)), rel=1e-10, abs=0)
