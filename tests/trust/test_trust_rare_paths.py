"""Paths that few inputs take: each is compared with the usual path, or with what must hold."""

import numpy as np
import pytest

import temperance
from temperance.calibrators import Method, fit_record, method_style
from temperance.core.blocks import row_slices
from temperance.core.fisher import fisher_scoring
from temperance.core.objective import ObjectivePoint
from temperance.core.solution import Solver
from temperance.data import simulate
from temperance.metrics import bins as metric_bins
from temperance.metrics.predictions import check_rows


class Kink:
    """|theta|, whose gradient at 0 points upwards: no step along it goes down."""

    order, noise, total_weight, passes = 1, 0.0, 1.0, 0

    def __call__(self, theta):
        gradient = np.where(theta >= 0, 1.0, -1.0)
        return ObjectivePoint(float(np.abs(theta).sum()), lambda with_fisher: (gradient, np.eye(len(theta))))


def test_where_no_step_goes_down_another_solver_takes_over():
    found = fisher_scoring(Kink(), np.zeros(1))
    assert found.solver is Solver.LBFGS_NO_DESCENT
    assert abs(found.value) < 1e-12


def test_rows_that_are_judged_in_parts_are_read_as_often(monkeypatch):
    task = simulate(400, 5, random_state=0)
    passes = []
    for at_once in (2000, 500):
        monkeypatch.setattr(fit_record, "EVALUATED_LOGITS", at_once)
        passes.append(temperance.TemperatureScaling().fit(task.logits, task.labels).solution_.passes)
    assert passes[0] == passes[1]


def test_the_median_temperature_is_that_of_the_rows():
    task = simulate(501, 4, random_state=1)
    calibrator = temperance.make_calibrator("hts").fit(task.logits, task.labels)
    temperatures = np.sort(calibrator.temperature(task.logits))
    np.testing.assert_allclose(calibrator.temperature_quantiles_[1], temperatures[250], rtol=1e-9)


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
