"""The fits of a study, and that their random seeds depend on nothing else."""

from pathlib import Path

import numpy as np
import pytest
from compared import CLASS_KEEPING

from temperance import CALIBRATORS, InputError
from temperance.calibrators.external_methods import find_methods
from temperance.study.protocol import METHODS, WorkUnit, in_order, plan, study_methods
from temperance.study.tasks import TaskFile

TASK = TaskFile("cats__net", Path("cats__net.npz"), "0", rows=100, test_rows=50, classes=3)
OTHER = TaskFile("dogs__net", Path("dogs__net.npz"), "0", rows=100, test_rows=50, classes=3)


def unit(task=TASK, n=20, draw=0, seed=0, methods=("ts",)):
    return WorkUnit(task, n, draw, seed, find_methods(methods))


def test_a_subsample_has_n_different_rows_in_the_order_of_the_file():
    rows = unit().rows()
    assert len(rows) == 20
    assert (np.diff(rows) > 0).all()
    assert 0 <= rows.min() <= rows.max() < 100


def test_a_subsample_is_the_same_for_all_methods_and_whatever_else_is_studied():
    assert (unit(methods=("ts", "hts")).rows() == unit(methods=("pts",)).rows()).all()
    wide = {
        (c.n, c.draw): c
        for c in plan([OTHER, TASK], find_methods(["ts", "pts"]), [50, 20], 3, 0)
        if c.task is TASK
    }
    narrow = {(c.n, c.draw): c for c in plan([TASK], find_methods(["pts"]), [20], 2, 0)}
    assert (20, 1) in wide
    for key, one in narrow.items():
        assert (one.rows() == wide[key].rows()).all()
        assert one.random_state() == wide[key].random_state()


@pytest.mark.parametrize("other", [unit(task=OTHER), unit(draw=1), unit(seed=1)])
def test_tasks_draws_and_seeds_have_subsamples_of_their_own(other):
    assert (unit().rows() != other.rows()).any()
    assert unit().random_state() != other.random_state()


def test_every_row_is_drawn_equally_often():
    counts = np.bincount(np.concatenate([unit(draw=draw).rows() for draw in range(1000)]), minlength=100)
    assert counts.min() > 150  # 200 expected, with a deviation of 13
    assert counts.max() < 250


def test_a_task_with_no_more_rows_uses_all_and_fits_deterministic_methods_once():
    fits = [fit for c in plan([TASK], find_methods(["ts", "pts"]), [50, 200, 5000], 3, 0) for fit in c.fits()]
    assert len(fits) == len(set(fits))
    assert [(fit.n, fit.draw) for fit in fits if fit.method == "ts"] == [(50, 0), (100, 0), (50, 1), (50, 2)]
    assert [(fit.n, fit.draw) for fit in fits if fit.method == "pts" and fit.n == 100] == [
        (100, d) for d in range(3)
    ]
    assert [(fit.n, fit.draw) for fit in fits if fit.method == "none"] == [(0, 0)]
    assert (unit(n=100).rows() == np.arange(100)).all()


def test_finished_work_is_not_planned_again():
    def planned(done=()):
        units = plan([TASK, OTHER], find_methods(["ts", "pts"]), [10, 20], 3, 0, set(done))
        return [fit for unit in units for fit in unit.fits()]

    everything = planned()
    done = everything[::3]
    assert planned(done) == [fit for fit in everything if fit not in done]


def test_a_study_that_is_stopped_has_all_tasks():
    draws = [c.draw for c in plan([TASK, OTHER], find_methods(["ts"]), [10, 20], 5, 0)]
    assert draws == sorted(draws)


@pytest.mark.parametrize("key", METHODS)
def test_every_method_can_be_built_and_accepts_a_seed_if_it_is_random(key):
    made = CALIBRATORS[key].seeded(7)
    assert CALIBRATORS[key].is_random == ("random_state" in made.get_params())
    assert made.get_params().get("random_state", 7) == 7
    assert made.get_params().get("solver", "exact") == ("sgd" if key.endswith("-sgd") else "exact")


def test_methods_are_those_of_the_registry_and_slow_variants_must_be_named():
    assert "bayes-bias" not in study_methods(None)
    assert set(CLASS_KEEPING) - {"mono"} < set(study_methods(None)) < set(METHODS) == set(CALIBRATORS)
    assert CALIBRATORS["ets-brier"]().loss == "brier"
    assert list(study_methods(["pts-sgd", "ts", "ts"])) == in_order(["pts-sgd", "ts"]) == ["ts", "pts-sgd"]
    with pytest.raises(InputError, match="no method 'tss'"):
        study_methods(["tss"])
    with pytest.raises(InputError, match="at least one method"):
        study_methods([])
