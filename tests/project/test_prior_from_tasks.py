"""Learning a prior: a known population is recovered, and no single data set dominates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax

from temperance import BayesianTemperatureScaling, InputError
from temperance.calibrators.bayes import build_design
from temperance.core.kernels import KNOTS
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import EMPHASIS
from temperance.core.objective import FitData
from temperance.data import simulate
from temperance.population import read_population, weak_population, write_population

INTERCEPT = np.array([-0.3, -0.2])
MEAN = np.array([0.1, -0.2, 0.05, 0.3])
MAP_MEAN = np.array([0.5, -0.1, 0.1, 0.0, 0.1, -0.2, 0.3, 0.2])
SHAPE_DEVIATION = np.array([0.2, 0.1, 0.15, 0.2])
MAP_DEVIATION = np.array([0.3, 0.4, 0.3, 0.4, 0.3, 0.4, 0.3, 0.4])
DEVIATION = np.concatenate([[0.3], SHAPE_DEVIATION, MAP_DEVIATION])  # from task to task
N_COEFFICIENTS = len(DEVIATION)


def draw_task(script, i, precision=400.0, rng=None):
    """Return the summary of a task of a known population, as rows with this much information would give."""
    rng = rng or np.random.default_rng(100 + i)
    entropy = float(rng.uniform(-8, -0.5))
    centre = np.concatenate([[INTERCEPT @ [1, entropy]], MEAN, MAP_MEAN])
    truth = centre + DEVIATION * rng.standard_normal(N_COEFFICIENTS)
    root = rng.normal(size=(N_COEFFICIENTS, N_COEFFICIENTS))
    information = precision * (np.eye(N_COEFFICIENTS) + 0.05 * (root @ root.T))
    seen = rng.multivariate_normal(truth, np.linalg.inv(information))
    return script.TaskSummary(
        name=f"task {i}",
        dataset=f"set {i}",
        n_rows=1000,
        n_classes=10,
        data_hash="",
        mean_log_entropy=entropy,
        information=information,
        linear=information @ seen,
        class_scale=0.2,
    )


N_TASKS = 30


@pytest.fixture(scope="module")
def script(benchmark_script):
    return benchmark_script("prior_from_tasks")


@pytest.fixture(scope="module")
def tasks(script):
    return [draw_task(script, i) for i in range(N_TASKS)]


@pytest.fixture(scope="module")
def learned(script, tasks):
    """Return the population learned from the tasks."""
    return script.learn_population(tasks)


def same(one, other, rtol=1e-8):
    for name in (
        "intercept",
        "intercept_scale",
        "mean",
        "covariance",
        "map_mean",
        "map_covariance",
        "class_scale",
    ):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-12)


def widths_of(script, population):
    """Return the standard deviations of level, shape and map before a new task is held by part of them."""
    shape = population.covariance.diagonal() / script.SHAPE.width
    of_map = population.map_covariance.diagonal() / script.MAP.width
    return np.sqrt(np.concatenate([[population.intercept_scale**2 / script.LEVEL.width], shape, of_map]))


def test_a_known_population_is_found_again(script, tasks, learned):
    entropies = np.array([task.mean_log_entropy for task in tasks])
    design = np.column_stack([np.ones(N_TASKS), entropies])
    errors = DEVIATION[0] * np.sqrt(np.linalg.inv(design.T @ design).diagonal())
    assert np.all(np.abs(learned.intercept - INTERCEPT) < 3 * errors)
    assert np.all(np.abs(learned.mean - MEAN) < 3 * SHAPE_DEVIATION / np.sqrt(N_TASKS))
    assert np.all(np.abs(learned.map_mean - MAP_MEAN) < 3 * MAP_DEVIATION / np.sqrt(N_TASKS))
    # Those of a t distribution with 4 degrees of freedom: narrower than the normal that was drawn from.
    ratios = widths_of(script, learned) / DEVIATION
    assert np.all((ratios > 0.5) & (ratios < 1.2)), ratios


@pytest.mark.slow
def test_the_width_is_that_of_the_truth_and_not_of_the_estimates(script):
    # Each task is known as well as tasks are alike: the noise neither adds to the width nor hides it.
    tasks = [draw_task(script, i, precision=25.0) for i in range(40)]
    learned = script.learn_population(tasks)
    ratios = widths_of(script, learned) / DEVIATION
    assert np.all((ratios > 0.4) & (ratios < 1.3)), ratios


@pytest.mark.slow
def test_uninformative_tasks_have_little_weight(script, tasks, learned):
    vague = [draw_task(script, i, precision=1e-3) for i in range(100, 115)]
    with_vague = script.learn_population([*tasks, *vague])
    assert np.all(np.abs(learned.mean - with_vague.mean) < 0.01)
    assert np.all(np.abs(learned.map_mean - with_vague.map_mean) < 0.01)
    assert np.all(np.abs(learned.intercept - with_vague.intercept) < 0.02)


@pytest.mark.parametrize("where", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 3, 7))])
def test_an_outlying_data_set_hardly_changes_the_population(script, tasks, learned, where):
    wild = draw_task(script, 99)
    far = np.linalg.solve(wild.information, wild.linear)
    far[where] += 20  # a hundred deviations
    with_wild = script.learn_population([*tasks, replace(wild, linear=wild.information @ far)])
    errors = DEVIATION / np.sqrt(N_TASKS)
    level = abs((learned.intercept - with_wild.intercept) @ [1, -4])
    shape, of_map = learned.mean - with_wild.mean, learned.map_mean - with_wild.map_mean
    moved = np.abs(np.concatenate([[level], shape, of_map]))
    assert np.all(moved < errors), moved / errors
    assert np.all(widths_of(script, with_wild) < 1.3 * widths_of(script, learned))


def test_the_same_task_twice_in_its_data_set_changes_nothing(script, tasks, learned):
    twice = [*tasks, replace(tasks[3], name="copy"), replace(tasks[3], name="another"), tasks[7]]
    same(script.learn_population(twice), learned)


@pytest.mark.slow
def test_a_data_set_with_many_tasks_weighs_as_much_as_one_with_one(script, tasks):
    one_set = [replace(draw_task(script, i), dataset="large") for i in range(200, 215)]
    for task in one_set:
        task.linear[:] = task.information @ (3.0 * np.eye(N_COEFFICIENTS)[0])
    few = script.learn_population([*tasks[:10], *one_set])
    many = script.learn_population([*tasks[:10], *[replace(task, dataset=task.name) for task in one_set]])
    base = script.learn_population(tasks[:10])
    assert abs(few.intercept @ [1, -4] - base.intercept @ [1, -4]) < 0.2
    assert abs(many.intercept @ [1, -4] - base.intercept @ [1, -4]) > 0.5
    weights = [task["weight"] for task in few.provenance["tasks"] if task["dataset"] == "large"]
    assert sum(weights) == pytest.approx(1, abs=0.01)


def test_the_order_of_the_tasks_does_not_matter(script, tasks, learned):
    same(script.learn_population(tasks[::-1]), learned)


def test_the_class_scale_is_the_geometric_mean_over_the_data_sets(script, tasks):
    tasks = [replace(tasks[0], class_scale=0.8), *tasks[1:4]]
    learned = script.learn_population(tasks)
    assert learned.class_scale == pytest.approx(script.CLASS_WIDTH**0.5 * (0.8 * 0.2**3) ** 0.25, rel=1e-12)


def test_too_few_data_sets_are_refused(script, tasks):
    of_two = [replace(task, dataset=f"set {i % 2}") for i, task in enumerate(tasks)]
    for few in ([], tasks[:2], of_two):
        with pytest.raises(InputError, match="tasks from at least 3 data sets; found"):
            script.learn_population(few)


def task_of(script, seed, temperature, n_rows=4000, **options):
    task = simulate(n_rows, 5, temperature=temperature, random_state=seed, **options)
    return script.summarise_task(f"task {seed}", f"set {seed}", task.logits, task.labels)


PLAIN = {"entropy_slope": 0.0, "class_spread": 0.0}


@pytest.mark.parametrize(("seed", "temperature"), [(0, 0.5), (1, 1.0), (2, 3.0)])
def test_a_summary_has_its_maximum_at_the_truth_within_its_errors(script, seed, temperature):
    summary = task_of(script, seed, temperature, **PLAIN)
    off = np.linalg.solve(summary.information, summary.linear)
    off[0] -= np.log(temperature)
    assert off @ summary.information @ off < 34.5  # chi-squared of 13, 0.999
    assert np.linalg.inv(summary.information)[0, 0] < 0.1**2
    assert (summary.n_rows, summary.n_classes) == (4000, 5)


def test_a_summary_with_its_prior_has_the_penalised_maximum(script):
    task, weak = simulate(200, 4, temperature=12.0, random_state=5), weak_population()
    summary = script.summarise_task("a", "b", task.logits, task.labels)
    scales = [weak.intercept_scale**2, *weak.covariance.diagonal(), *4 * weak.map_covariance.diagonal()]
    precision = np.diag(1 / np.array(scales))
    theta = np.linalg.solve(summary.information + precision, summary.linear)  # its mean is 0
    rows = LogitRows(task.logits, task.labels)
    design = build_design(FitData(rows), weak)
    X = design.predictor(rows).features
    e = -log_softmax(task.logits / design.reference, axis=1)
    lengths = np.clip(e[..., None] - KNOTS, 0.0, np.append(np.diff(KNOTS), np.inf))
    right = task.logits.argmax(axis=1) == task.labels

    def loss(theta):
        u = lengths @ np.exp(design.basis @ theta[5:])
        log_p = log_softmax(-u * (design.reference / np.exp(X @ theta[:5]))[:, None], axis=1)
        top = log_p.max(axis=1)
        of_top = np.where(right, top, np.log(-np.expm1(top)))
        label = log_p[np.arange(200), task.labels]
        return -np.sum(label + EMPHASIS * of_top) + theta @ precision @ theta / 2

    gradient = [(loss(theta + h) - loss(theta - h)) / 2e-5 for h in 1e-5 * np.eye(N_COEFFICIENTS)]
    np.testing.assert_allclose(gradient, 0, atol=1e-2)
    assert (precision @ theta)[0] > 1  # what the prior pulled by is not small


def test_a_summary_holds_more_information_the_more_rows_there_are(script):
    small, large = task_of(script, 3, 2.0, 400), task_of(script, 3, 2.0, 4000)
    ratio = np.trace(large.information) / np.trace(small.information)
    assert 5 < ratio < 20


def test_the_class_scale_of_a_summary_is_that_of_its_classes(script):
    narrow, wide = (
        task_of(script, 4, 2.0, **PLAIN),
        task_of(script, 4, 2.0, entropy_slope=0.0, class_spread=0.5),
    )
    assert narrow.class_scale < 0.15 < 0.2 < wide.class_scale < 1.5


def test_the_hash_of_a_summary_is_that_of_its_rows_whatever_their_precision(script):
    task = simulate(60, 3)
    single = task.logits.astype(np.float32)
    one, same_rows = (script.summarise_task("a", "b", z, task.labels) for z in (single, single.astype(float)))
    assert one.data_hash == same_rows.data_hash
    swapped = script.summarise_task("a", "b", single[::-1], task.labels[::-1])
    relabelled = script.summarise_task(
        "a", "b", single, np.append(task.labels[:-1], (task.labels[-1] + 1) % 3)
    )
    assert len({one.data_hash, swapped.data_hash, relabelled.data_hash}) == 3


def test_a_summary_refuses_a_task_whose_labels_determine_no_temperature(script):
    task = simulate(50, 3)
    with pytest.raises(InputError, match="labels"):
        script.summarise_task("a", "b", task.logits, task.labels[:49])
    with pytest.raises(InputError, match="NaN"):
        script.summarise_task("a", "b", np.full((50, 3), np.nan), task.labels)


@pytest.mark.slow
def test_a_prior_learned_from_tasks_predicts_the_temperature_of_the_next(script, tmp_path):
    summaries = [task_of(script, 10 + i, 2.5 * np.exp(0.1 * np.cos(3 * i)), 1000) for i in range(5)]
    learned = script.learn_population(summaries)
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
