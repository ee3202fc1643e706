"""What the core does at the edges of its ranges: exact limits, rounded weights, sizes of blocks."""

import numpy as np
import pytest
from core_models import quadratic
from core_reference import draw

from temperance.core import descent, evidence, fisher, frequencies, logit_rows
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.evidence import Block, maximise_evidence
from temperance.core.kernels import exponentiate, mixed
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import Linear, Softplus
from temperance.core.row_block import RowBlock
from temperance.core.solution import Status


@pytest.mark.parametrize("log", [False, True])
def test_a_mixture_is_a_probability_where_rounded_weights_add_up_to_more_than_1(log):
    weights = np.array([0.5, 0.25, 0.25 + 1e-15])
    found = mixed(np.array([[0.0, -1e4]]), np.ones((3, 1)), weights, log=log)
    assert found[0, 0] == (0.0 if log else 1.0)


def test_a_class_exactly_20000_units_below_the_top_counts():
    shape = LogitRows(-np.array([[0.0, 8.0, 20_000.0]])).shape_at(1.0)
    assert shape.gap_to_third[0] == 20_000
    assert shape.gap_to_mean[0] == pytest.approx(20_008 / 3, rel=1e-12)


def test_a_probability_of_exp_minus_20000_is_that_of_an_impossible_class_to_a_class_bias():
    def value(lowest):
        rows = LogitRows(np.array([[-0.1, -2.5, lowest]]), np.array([0]))
        theta = np.concatenate([[0.1, 0.2, -0.1, 0.3], np.linspace(-0.2, 0.2, 9)])
        return ClassBiasLikelihood(rows, interacting=True)(theta).value

    assert value(-20_000.0) == value(-1e9)
    assert value(-19_999.0) != value(-1e9)


def test_a_class_bias_of_weight_0_changes_no_logarithm():
    rows = RowBlock(np.array([[0.0, -1.0, -np.inf]]), log=True)
    output, bias = np.array([[-0.3, -1.3, -np.inf]]), np.array([0.2, 0.1, 0.0])
    assert rows.class_bias(output.copy(), 1.1, bias, None, 0.0).tolist() == output.tolist()


def test_blocks_whose_products_are_summed_have_a_limited_size(monkeypatch):
    monkeypatch.setattr(logit_rows, "GRAM_SIZE", 60)
    rows, sizes = LogitRows(np.zeros((50, 4))), []
    rows.sum(lambda z, i, j, scratch: (np.array([sizes.append(j - i) or 0.0]),))
    assert max(sizes) == 60 // 4
    sizes.clear()
    rows.sum(lambda z, i, j, scratch: (np.array([sizes.append(j - i) or 0.0]),), width=20)
    assert max(sizes) == 60 // 20
    assert sum(sizes) == 50


@pytest.mark.parametrize(
    ("limits", "start"), [((0.05, 0.5), 0.5 / 1.01), ((2.0, 9.0), 2.02), ((0.1, 10), 1.0)]
)
def test_a_descent_starts_where_t_is_1_or_just_inside_its_limits(limits, start):
    z, y = draw(30, 3)
    link = Softplus(*limits)
    objective = LogLikelihood(LogitRows(z, y), Linear(np.ones((30, 1))), link)
    assert link.temperature(descent._first_guess(objective))[0] == pytest.approx(start, rel=1e-12)


def test_many_parameters_need_more_rows_for_a_subsample(monkeypatch):
    monkeypatch.setattr(fisher, "SUBSAMPLE_ROWS", 10)
    monkeypatch.setattr(fisher, "ROWS_PER_PARAMETER", 50)
    z, y = draw(404, 3)
    taken = []

    class Watched(LogLikelihood):
        def every(self, step):
            taken.append(step)
            return super().every(step)

    features = np.column_stack([np.ones(404), np.random.default_rng(0).normal(size=404)])
    for n_rows, steps in ((399, []), (404, [4])):
        at = slice(n_rows)
        objective = Watched(LogitRows(z[at], y[at]), Linear(features[at]), Softplus())
        fisher.solve(objective, np.zeros(2), n_rows)
        assert taken == steps


def test_the_hessian_of_frequencies_takes_all_rows_or_as_many_as_its_work_allows():
    work = frequencies.HESSIAN_WORK
    assert frequencies.hessian_step_for(1000, 1000) == 1
    for n_rows, n_classes in ((10**7, 200), (10**6, 5000)):
        step = frequencies.hessian_step_for(n_rows, n_classes)
        assert work <= n_rows * n_classes**2 / step < 2 * work


def test_widths_that_do_not_settle_give_the_optimum_under_them_and_say_so(monkeypatch):
    monkeypatch.setattr(evidence, "MAX_ROUNDS", 2)
    z, y = draw(200, 3, spread=4.0)
    features = np.column_stack([np.ones(200), np.random.default_rng(0).normal(size=(200, 2))])
    objective = LogLikelihood(LogitRows(z, y), Linear(features), Softplus())
    blocks = [Block("all", np.full(3, 3.0), 100 * np.eye(3), 4.0)]
    found = maximise_evidence(objective, blocks, np.ones(3), 200)
    assert found.solution.status is Status.WIDTHS_UNSETTLED
    fitted = objective.with_prior(evidence._prior(blocks, np.array([found.taus["all"]]), 200.0))
    assert np.abs(fitted(found.mode).gradient).max() < 1e-4


def test_secants_correct_a_matrix_that_misjudges_the_curvature_but_not_within_bounds():
    curvature, optimum = np.array([[2.0, 0.6], [0.6, 1.0]]), np.array([1.0, -2.0])

    bowl, wide = quadratic(curvature, optimum, np.diag([10.0, 3.0])), (np.full(2, -100.0), np.full(2, 100.0))
    plain = fisher.fisher_scoring(bowl, np.zeros(2), bounds=wide)
    corrected = fisher.fisher_scoring(bowl, np.zeros(2))
    assert corrected.iterations < plain.iterations / 2
    np.testing.assert_allclose(corrected.parameters, optimum, atol=1e-6)


@pytest.mark.parametrize(("n_rows", "steps"), [(99, []), (100, [2]), (160, [3])])
def test_a_subsample_chooses_the_prior_of_frequencies_where_it_is_large_enough(n_rows, steps, monkeypatch):
    monkeypatch.setattr(frequencies, "SUBSAMPLE_ROWS", 50)
    monkeypatch.setattr(frequencies, "ROWS_PER_CLASS", 1)
    taken = []

    class Watched(frequencies.ProbabilityRows):
        def every(self, step):
            taken.append(step)
            return super().every(step)

    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=n_rows)
    fitted = frequencies.LabelFrequencies(np.full(3, 1 / 3), np.ones(3, bool))
    frequencies.estimate_frequencies(Watched(probs), fitted)
    assert taken == steps


def test_the_largest_number_of_a_row_may_be_too_large_for_its_exponential():
    sums, log_sums = exponentiate(np.array([[2000.0, 1999.0], [-2000.0, -2001.0]]))
    np.testing.assert_allclose(
        log_sums, [2000 + np.log1p(np.exp(-1)), -2000 + np.log1p(np.exp(-1))], rtol=1e-14
    )
    np.testing.assert_allclose(sums, 1 + np.exp(-1), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_noise_of_an_objective_is_that_of_the_type_it_is_computed_in(dtype):
    z, y = draw(300, 4)
    objective = ClassBiasLikelihood(LogitRows(z.astype(dtype), y), interacting=False)
    assert objective.noise == np.finfo(dtype).eps
