"""Learning a prior: a population that is known is found again, and no single data set decides."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax

from temperance import BayesianTemperatureScaling, InputError
from temperance.calibrators.bayes_design import build_design
from temperance.core.fit_data import InMemoryFitData
from temperance.core.logit_rows import LogitRows
from temperance.data import simulate
from temperance.learning import CLASS_WIDTH, WIDTH, TaskSummary, learn_population, summarise_task
from temperance.population import read_population, weak_population, write_population

INTERCEPT = np.array([-0.3, -0.2])
MEAN = np.array([0.1, -0.2, 0.05, 0.3])
DEVIATION = np.array([0.3, 0.2, 0.1, 0.15, 0.2])  # of level and shape, from task to task
SCALES = {"class_scale": 0.2, "bias_scale": 0.5, "interaction_scale": 0.4}


def draw_task(i, precision=400.0, rng=None):
    """Return the summary of a task of a known population, as rows with this much information would give."""
    rng = rng or np.random.default_rng(100 + i)
    entropy = float(rng.uniform(-8, -0.5))
    centre = np.concatenate([[INTERCEPT @ [1, entropy]], MEAN])
    truth = centre + DEVIATION * rng.standard_normal(5)
    root = rng.normal(size=(5, 5))
    information = precision * (np.eye(5) + 0.05 * (root @ root.T))
    seen = rng.multivariate_normal(truth, np.linalg.inv(information))
    return TaskSummary(
        f"task {i}", f"set {i}", 1000, 10, entropy, information, information @ seen, dict(SCALES)
    )


N_TASKS = 30
TASKS = [draw_task(i) for i in range(N_TASKS)]


@pytest.fixture(scope="module")
def learned():
    """Return what the tasks teach."""
    return learn_population(TASKS)


def same(one, other, rtol=1e-8):
    for name in ("intercept", "intercept_scale", "mean", "covariance", *SCALES):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-12)


def test_a_known_population_is_found_again(learned):
    entropies = np.array([task.mean_log_entropy for task in TASKS])
    design = np.column_stack([np.ones(N_TASKS), entropies])
    errors = DEVIATION[0] * np.sqrt(np.linalg.inv(design.T @ design).diagonal())
    assert np.all(np.abs(learned.intercept - INTERCEPT) < 3 * errors)
    assert np.all(np.abs(learned.mean - MEAN) < 3 * DEVIATION[1:] / np.sqrt(N_TASKS))
    # Those of a t distribution with 4 degrees of freedom: narrower than the normal that was drawn from.
    assert 0.5 * DEVIATION[0] < learned.intercept_scale < 1.2 * DEVIATION[0]
    widths = np.sqrt(learned.covariance.diagonal() / WIDTH)
    assert np.all((widths > 0.5 * DEVIATION[1:]) & (widths < 1.2 * DEVIATION[1:]))


@pytest.mark.slow
def test_the_width_is_that_of_the_truth_and_not_of_what_is_known_of_it():
    # Each task is known as well as tasks are alike: the noise neither adds to the width nor hides it.
    tasks = [draw_task(i, precision=25.0) for i in range(40)]
    learned = learn_population(tasks)
    widths = np.append(learned.intercept_scale, np.sqrt(learned.covariance.diagonal() / WIDTH))
    assert np.all((widths > 0.4 * DEVIATION) & (widths < 1.3 * DEVIATION)), widths / DEVIATION


@pytest.mark.slow
def test_tasks_that_say_little_count_for_little(learned):
    vague = [draw_task(i, precision=1e-3) for i in range(100, 115)]
    with_vague = learn_population([*TASKS, *vague])
    assert np.all(np.abs(learned.mean - with_vague.mean) < 0.01)
    assert np.all(np.abs(learned.intercept - with_vague.intercept) < 0.02)


@pytest.mark.parametrize("where", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 3))])
def test_a_wild_data_set_hardly_moves_the_rest(learned, where):
    wild = draw_task(99)
    far = np.linalg.solve(wild.information, wild.linear)
    far[where] += 20  # a hundred deviations
    with_wild = learn_population([*TASKS, replace(wild, linear=wild.information @ far)])
    errors = DEVIATION / np.sqrt(N_TASKS)
    level = abs((learned.intercept - with_wild.intercept) @ [1, -4])
    moved = np.concatenate([[level], np.abs(learned.mean - with_wild.mean)])
    assert np.all(moved < errors), moved / errors
    assert np.all(with_wild.covariance.diagonal() < 1.5 * learned.covariance.diagonal())
    assert with_wild.intercept_scale < 1.3 * learned.intercept_scale


def test_the_same_task_twice_in_its_data_set_changes_nothing(learned):
    twice = [*TASKS, replace(TASKS[3], name="copy"), replace(TASKS[3], name="another"), TASKS[7]]
    same(learn_population(twice), learned)


@pytest.mark.slow
def test_a_data_set_with_many_tasks_weighs_as_much_as_one_with_one():
    one_set = [replace(draw_task(i), dataset="large") for i in range(200, 215)]
    for task in one_set:
        task.linear[:] = task.information @ np.array([3.0, 0, 0, 0, 0])
    few = learn_population([*TASKS[:10], *one_set])
    many = learn_population([*TASKS[:10], *[replace(task, dataset=task.name) for task in one_set]])
    base = learn_population(TASKS[:10])
    assert abs(few.intercept @ [1, -4] - base.intercept @ [1, -4]) < 0.2
    assert abs(many.intercept @ [1, -4] - base.intercept @ [1, -4]) > 0.5
    weights = [task["weight"] for task in few.provenance["tasks"] if task["dataset"] == "large"]
    assert sum(weights) == pytest.approx(1, abs=0.01)


def test_the_order_of_the_tasks_does_not_matter(learned):
    same(learn_population(TASKS[::-1]), learned)


def test_the_scales_are_geometric_means_over_the_data_sets_that_have_them():
    tasks = list(TASKS[:4])
    tasks[0] = replace(tasks[0], scales={"class_scale": 0.8, "bias_scale": 0.5})
    learned = learn_population(tasks)
    assert learned.class_scale == pytest.approx(CLASS_WIDTH**0.5 * (0.8 * 0.2**3) ** 0.25, rel=1e-12)
    assert learned.bias_scale == pytest.approx(CLASS_WIDTH**0.5 * 0.5, rel=1e-12)
    assert learned.interaction_scale == pytest.approx(CLASS_WIDTH**0.5 * 0.4, rel=1e-12)


def test_too_few_data_sets_are_refused():
    for tasks in ([], TASKS[:2], [replace(task, dataset=f"set {i % 2}") for i, task in enumerate(TASKS)]):
        with pytest.raises(InputError, match="tasks of at least 3 data sets"):
            learn_population(tasks)


def test_tasks_of_many_classes_alone_are_refused():
    tasks = [replace(task, scales={"class_scale": 0.1, "bias_scale": 0.2}) for task in TASKS[:5]]
    with pytest.raises(InputError, match="some tasks of at most 32 classes"):
        learn_population(tasks)


def task_of(seed, temperature, n_rows=4000, **options):
    task = simulate(n_rows, 5, temperature=temperature, random_state=seed, **options)
    return summarise_task(f"task {seed}", f"set {seed}", task.logits, task.labels)


PLAIN = {"entropy_slope": 0.0, "class_spread": 0.0}


@pytest.mark.parametrize(("seed", "temperature"), [(0, 0.5), (1, 1.0), (2, 3.0)])
def test_a_summary_has_its_maximum_at_the_truth_within_its_errors(seed, temperature):
    summary = task_of(seed, temperature, **PLAIN)
    off = np.linalg.solve(summary.information, summary.linear)
    off[0] -= np.log(temperature)
    assert off @ summary.information @ off < 20.5  # chi-squared of 5, 0.999
    assert np.linalg.inv(summary.information)[0, 0] < 0.1**2
    assert (summary.n_rows, summary.n_classes) == (4000, 5)


def test_with_its_prior_put_back_a_summary_has_the_penalised_maximum():
    task, weak = simulate(200, 4, temperature=12.0, random_state=5), weak_population()
    summary = summarise_task("a", "b", task.logits, task.labels)
    precision = np.diag([weak.intercept_scale**-2, *weak.covariance.diagonal() ** -1])
    theta = np.linalg.solve(summary.information + precision, summary.linear)  # its mean is 0
    rows = LogitRows(task.logits, task.labels)
    X = build_design(InMemoryFitData(rows), weak).predictor(rows).features

    def loss(theta):
        log_p = log_softmax(task.logits / np.exp(X @ theta)[:, None], axis=1)
        return -log_p[np.arange(200), task.labels].sum() + theta @ precision @ theta / 2

    gradient = [(loss(theta + h) - loss(theta - h)) / 2e-5 for h in 1e-5 * np.eye(5)]
    np.testing.assert_allclose(gradient, 0, atol=1e-2)
    assert (precision @ theta)[0] > 1  # what the prior pulled by is not small


def test_a_summary_holds_more_information_the_more_rows_there_are():
    small, large = task_of(3, 2.0, 400), task_of(3, 2.0, 4000)
    ratio = np.trace(large.information) / np.trace(small.information)
    assert 5 < ratio < 20


def test_the_class_scale_of_a_summary_is_that_of_its_classes():
    narrow, wide = task_of(4, 2.0, **PLAIN), task_of(4, 2.0, entropy_slope=0.0, class_spread=0.5)
    assert narrow.scales["class_scale"] < 0.1 < 0.2 < wide.scales["class_scale"] < 1.5
    assert narrow.scales.keys() == {"class_scale", "bias_scale", "interaction_scale"}


def test_a_summary_refuses_what_is_no_task():
    task = simulate(50, 3)
    with pytest.raises(InputError, match="labels"):
        summarise_task("a", "b", task.logits, task.labels[:49])
    with pytest.raises(InputError, match="NaN"):
        summarise_task("a", "b", np.full((50, 3), np.nan), task.labels)


@pytest.mark.slow
def test_a_prior_learned_from_tasks_knows_the_temperature_of_the_next(tmp_path):
    summaries = [task_of(10 + i, 2.5 * np.exp(0.1 * np.cos(3 * i)), 1000) for i in range(5)]
    learned = learn_population(summaries)
    write_population(learned, tmp_path / "prior.json")
    assert len(read_population(tmp_path / "prior.json").provenance["tasks"]) == 5
    errors, spreads = [], []
    for seed in range(30, 36):
        new = simulate(20, 5, temperature=2.5, random_state=seed)
        for prior in (str(tmp_path / "prior.json"), "weak"):
            cal = BayesianTemperatureScaling(prior=prior).fit(new.logits, new.labels)
            errors.append(abs(np.log(cal.reference_ / 2.5)))
            spreads.append(cal.log_temperature_std(new.logits).mean())
    known, weak = np.reshape(errors, (-1, 2)).mean(axis=0)
    assert known < 0.8 * weak
    known, weak = np.reshape(spreads, (-1, 2)).mean(axis=0)
    assert known < 0.7 * weak
