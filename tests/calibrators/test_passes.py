"""`solution_.passes` counts how often all rows were read, and the status how a fit ended."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from temperance import BayesianTemperatureScaling, make_calibrator
from temperance.core import blocks, evidence
from temperance.core.solution import Solver, Status, parse_message
from temperance.data import simulate


@pytest.fixture
def readings(monkeypatch):
    """Return a list that grows by the number of rows at each pass."""
    found = []
    for name in ("for_each_block", "sum_blocks"):
        real = getattr(blocks, name)

        def counted(values, *rest, real=real, **options):
            found.append(len(values))
            return real(values, *rest, **options)

        monkeypatch.setattr(blocks, name, counted)
    return found


def test_every_pass_over_all_rows_is_counted(method, task, readings, fit):
    assert fit(method, task.logits, task.labels).solution_.passes == readings.count(300)


@pytest.mark.parametrize("method", ["ts", "hts", "bayes"])
def test_passes_over_a_part_of_the_rows_are_not_counted(method, readings, fit):
    task = simulate(20_000, 3, random_state=3)
    passes = fit(method, task.logits, task.labels).solution_.passes
    assert passes == readings.count(20_000) < len(readings)


def test_the_usual_end_is_convergence_by_fisher_scoring(method, fitted):
    solution = fitted(method).solution_
    if method == "pts-ece":  # whose loss has kinks: no step lowers it, or none by enough
        assert solution.solver is Solver.LBFGS_KINKS
    else:
        assert (solution.status, solution.solver) == (Status.CONVERGED, Solver.FISHER)
    assert solution.converged
    assert parse_message(solution.message, converged=solution.converged) == (solution.solver, solution.status)


def test_prior_widths_that_do_not_settle_are_reported_as_not_converged(monkeypatch):
    monkeypatch.setattr(evidence, "MAX_ROUNDS", 1)
    task = simulate(200, 4, random_state=1)
    with pytest.warns(ConvergenceWarning, match="the widths of the prior did not settle"):
        cal = BayesianTemperatureScaling().fit(task.logits, task.labels)
    assert cal.solution_.status is Status.WIDTHS_UNSETTLED
    assert not cal.solution_.converged


def test_an_unknown_message_has_the_default_status():
    assert parse_message("all well", converged=True) == (Solver.FISHER, Status.CONVERGED)
    assert parse_message("something else", converged=False) == (Solver.FISHER, Status.NOT_CONVERGED)
    assert parse_message("SGD: the learning rate reached its floor", converged=True)[0] is Solver.SGD


@pytest.mark.slow
def test_sgd_ends_by_its_own_rule():
    task = simulate(200, 3, random_state=0)
    solution = make_calibrator("hts-sgd").fit(task.logits, task.labels).solution_
    assert (solution.solver, solution.status) == (Solver.SGD, Status.LEARNING_RATE_FLOOR)
    assert np.isfinite(solution.value)
