"""A class bias after calibrated log-probabilities: fit, leave-one-out and prediction."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from temperance.core import class_bias as stage
from temperance.core.class_bias import ClassBias, ClassBiasLikelihood, Widths, fit_class_bias
from temperance.core.features import LOG_PROB_FLOOR
from temperance.core.fisher import fisher_scoring
from temperance.core.kernels import centred
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import InMemoryFitData, Prior
from temperance.core.row_block import RowBlock
from temperance.core.tensor_rows import TensorRows


def log_probs_of(n_rows, n_classes, seed=0, scale=2.0):
    z = scale * np.random.default_rng(seed).standard_normal((n_rows, n_classes))
    return log_softmax(z, axis=1)


def draw(probs, seed):
    below = probs.cumsum(axis=1) < np.random.default_rng(seed).random((len(probs), 1))
    return np.minimum(below.sum(axis=1), probs.shape[1] - 1)


def task(n_rows, n_classes, size=1.0, seed=0):
    """Return log-probabilities whose classes have a bias of this size, and labels."""
    bias = size * np.random.default_rng(seed + 1000).standard_normal(n_classes)
    base = log_probs_of(n_rows, n_classes, seed)
    return base, draw(softmax(base + bias, axis=1), seed)


def extreme_task(n_classes):
    """Return log-probabilities with masked classes and with some far below the floor, and labels."""
    base = log_probs_of(400, n_classes, scale=8.0)
    labels = draw(softmax(base / 4 + np.linspace(-1, 1, n_classes), axis=1), 0)
    return masked(base, labels), labels


def rows_of(log_probs, labels):
    return LogitRows(np.asarray(log_probs), np.asarray(labels, np.intp))


def fit(log_probs, labels, weights=None, *, auto=True):
    return fit_class_bias(InMemoryFitData(rows_of(log_probs, labels), weights), auto=auto)


def apply(fitted: ClassBias, log_probs, weight=None, *, log=True):
    rows = RowBlock(np.asarray(log_probs), log=log)
    output = np.array(log_probs if log else np.exp(log_probs))
    weight = fitted.weight if weight is None else weight
    return rows.class_bias(output, fitted.beta, fitted.bias, fitted.interactions, weight)


def mean_loss(log_probs, labels):
    return -np.mean(log_probs[np.arange(len(labels)), labels])


def masked(log_probs, labels, seed=5):
    """Mask some classes of each row that are not its label."""
    mask = np.random.default_rng(seed).random(log_probs.shape) < 0.3
    mask[np.arange(len(labels)), labels] = False
    return log_softmax(np.where(mask, -np.inf, log_probs), axis=1)


@pytest.mark.parametrize("n_classes", [4, 40])
def test_the_fit_is_the_optimum_under_its_widths(n_classes):
    base, y = task(600, n_classes)
    found = fit(base, y, auto=False)
    widths = Widths()
    scales = [widths.bias, widths.interaction][: len(found.taus)]
    sizes = [n_classes, n_classes**2]
    variances = np.concatenate(
        [[widths.log_temperature**2]]
        + [np.full(n, s**2 * tau) for n, s, tau in zip(sizes, scales, found.taus, strict=False)]
    )
    prior = Prior(np.zeros(len(variances)), 1 / variances / 600)
    interacting = n_classes <= stage.MAX_INTERACTING
    objective = ClassBiasLikelihood(rows_of(base, y), None, prior, interacting=interacting)
    best = minimize(
        lambda at: (objective(at).value, objective(at).gradient),
        np.zeros(len(variances)),
        jac=True,
        tol=1e-12,
    )
    errors = 1 / np.sqrt(600 * objective.diagonal(best.x))
    assert found.beta == pytest.approx(np.exp(-best.x[0]), abs=0.05 * errors[0])
    away = (found.bias - best.x[1 : 1 + n_classes]) / errors[1 : 1 + n_classes]
    assert np.abs(away).max() < 0.05


def refitted_without(i, base, labels, found, widths):
    """Return log p of a row's label by a fit to all other rows, with the widths held."""
    n_classes, interacting = base.shape[1], "interactions" in found.taus
    others = np.arange(len(labels)) != i
    variances = np.append(widths.log_temperature**2, np.full(n_classes, widths.bias**2 * found.taus["bias"]))
    if interacting:
        variances = np.append(
            variances, np.full(n_classes**2, widths.interaction**2 * found.taus["interactions"])
        )
    objective = ClassBiasLikelihood(rows_of(base[others], labels[others]), interacting=interacting)
    prior = Prior(np.zeros(len(variances)), 1 / variances / others.sum())
    best = fisher_scoring(objective.with_prior(prior), found.mode)
    return -loss_of_row(i, base, labels, best.parameters, interacting)


def loss_of_row(i, base, labels, theta, interacting):
    return ClassBiasLikelihood(rows_of(base[[i]], labels[[i]]), interacting=interacting)(theta).value


# By the diagonal, classes are taken one by one, which makes a row's own pull too large: the safe side.
@pytest.mark.parametrize(
    ("n_rows", "n_classes", "least", "most", "largest"),
    [(60, 3, -0.05, 0.05, 0.1), (80, 40, -0.3, -0.1, 0.4)],
)
def test_leave_one_out_predictions_are_close_to_refits(n_rows, n_classes, least, most, largest):
    base, labels = task(n_rows, n_classes, size=1.5)
    widths = Widths(bias=1.0, bias_freedom=1e6, interaction=0.3, interaction_freedom=1e6)  # long levers
    data, interacting = InMemoryFitData(rows_of(base, labels)), n_classes <= stage.MAX_INTERACTING
    build = partial(ClassBiasLikelihood, interacting=interacting)
    found = stage._posterior(data, build, widths, interacting=interacting)
    some = np.arange(0, n_rows, 2)
    approximate = build(data.rows, None).leave_one_out_log_probs(found.mode, found.covariance)[some]
    exact = np.array([refitted_without(i, base, labels, found, widths) for i in some])
    inside = -np.array([loss_of_row(i, base, labels, found.mode, interacting) for i in some])
    optimism = np.mean(inside - exact)
    assert optimism > 0.05
    assert least * optimism < np.mean(approximate - exact) < most * optimism
    assert np.abs(approximate - exact).max() < largest * np.abs(inside - exact).max()


@pytest.mark.parametrize("n_classes", [5, 40])
def test_a_bias_is_found_and_improves_the_score(n_classes):
    base, y = task(3000, n_classes)
    found = fit(base[:2000], y[:2000])
    assert found.weight > 0.8
    after = mean_loss(apply(found, base[2000:]), y[2000:])
    assert after < 0.9 * mean_loss(base[2000:], y[2000:])


@pytest.mark.parametrize("n_classes", [2, 6, 50])
@pytest.mark.parametrize("n_rows", [20, 300])
def test_without_a_bias_little_is_lost(n_classes, n_rows):
    ratios = []
    for seed in range(5):
        base = log_probs_of(n_rows + 2000, n_classes, seed)
        y = draw(np.exp(base), seed)
        found = fit(base[:n_rows], y[:n_rows])
        test = base[n_rows:], y[n_rows:]
        ratios.append([mean_loss(apply(found, test[0], w), test[1]) / mean_loss(*test) for w in (None, 1.0)])
    auto, always = np.mean(ratios, axis=0)
    assert auto <= 1.005
    assert always <= 1.02


def test_twenty_rows_of_a_naive_bayes_do_no_harm():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(8):
        centres = rng.standard_normal((10, 4))
        y = rng.integers(10, size=1020)
        x = centres[y] + rng.standard_normal((1020, 4))
        repeated = np.repeat(x, 5, axis=1)  # copies of the features, which it takes for evidence
        z = -((repeated[:, None] - np.repeat(centres, 5, axis=1)) ** 2).sum(axis=2) / 2
        base = log_softmax(z / 4, axis=1)
        found = fit(base[:20], y[:20])
        before = mean_loss(base[20:], y[20:])
        ratios.append([mean_loss(apply(found, base[20:], w), y[20:]) / before for w in (None, 1.0)])
    assert np.mean(ratios, axis=0).max() <= 1.02


def test_weights_count_as_rows():
    base, y = task(300, 4)
    counts = np.random.default_rng(0).integers(0, 4, 300)
    repeated = fit(np.repeat(base, counts, axis=0), np.repeat(y, counts))
    weighted = fit(base, y, counts.astype(float))
    np.testing.assert_allclose(weighted.bias, repeated.bias, atol=1e-6)
    np.testing.assert_allclose(weighted.taus, repeated.taus, rtol=1e-4)


def test_a_masked_class_stays_impossible_and_is_left_out_of_the_mean():
    base, y = task(2000, 5, size=1.5)
    base = masked(base, y)
    found = fit(base, y)
    assert found.weight > 0.5
    p = np.exp(apply(found, base))
    assert (p[np.isneginf(base)] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    x = centred(base, np.isfinite(base))
    assert (x[np.isneginf(base)] == 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 0, atol=1e-12)


def test_very_small_probabilities_have_little_leverage():
    base = np.array([[0.0, -15.0, -20.0], [0.0, -15.0, -2000.0]])
    x = centred(base, np.isfinite(base))
    np.testing.assert_array_equal(x[0], x[1])
    assert np.ptp(x[0]) == -LOG_PROB_FLOOR


def test_the_formula_of_the_output():
    base, y = task(500, 4)
    found = fit(base, y)
    offsets = found.bias + centred(base, np.isfinite(base)) @ found.interactions.T
    expected = (1 - found.weight) * np.exp(base) + found.weight * softmax(found.beta * base + offsets, axis=1)
    np.testing.assert_allclose(np.exp(apply(found, base)), expected, rtol=1e-12)
    np.testing.assert_allclose(apply(found, base, log=False), expected, rtol=1e-12)


def test_a_weight_of_0_is_bit_identical_to_no_bias():
    base = log_probs_of(100, 5)
    found = fit(base[:20], draw(np.exp(base), 0)[:20])
    np.testing.assert_array_equal(apply(found, base, 0.0), base)
    np.testing.assert_array_equal(apply(found, base, 0.0, log=False), np.exp(base))


@pytest.mark.parametrize("n_classes", [5, 40])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_torch_agrees(n_classes, weight):
    torch = pytest.importorskip("torch")
    from temperance.torch.module import TORCH

    base, y = extreme_task(n_classes)
    found = fit(base, y)
    interactions = None if found.interactions is None else torch.tensor(found.interactions)
    z = torch.tensor(base, requires_grad=True)
    rows = TensorRows(z, n_classes, TORCH)
    numbers = [torch.tensor(number, dtype=z.dtype) for number in (found.beta, found.bias, weight)]
    result = rows.class_bias(z, *numbers[:2], interactions, numbers[2])
    np.testing.assert_allclose(result.detach().numpy(), apply(found, base, weight), atol=1e-10)
    result[torch.isfinite(result)].sum().backward()
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize("n_classes", [5, 40])
def test_onnx_agrees(n_classes):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from temperance.onnx.graph import Array, Graph, OnnxOps
    from temperance.onnx.model import IR_VERSION

    base, y = extreme_task(n_classes)
    found = fit(base, y)
    graph = Graph(np.float64)
    given = Array(graph, "given")
    interactions = None if found.interactions is None else graph.constant(found.interactions)
    numbers = graph.constant(found.beta), graph.constant(found.bias), interactions, graph.constant(0.3)
    result = TensorRows(given, n_classes, OnnxOps(graph)).class_bias(given, *numbers)
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    infos = [helper.make_tensor_value_info(name, double, ("n", n_classes)) for name in ("given", result.name)]
    body = helper.make_graph(graph.nodes, "bias", infos[:1], infos[1:], graph.constants)
    opset = [helper.make_opsetid("", graph.opset)]
    model = helper.make_model(body, opset_imports=opset, ir_version=IR_VERSION)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (computed,) = session.run(None, {"given": base})
    np.testing.assert_allclose(computed, apply(found, base, 0.3), atol=1e-10)


def logarithms(rows: LogitRows):
    return rows.map(lambda block: block.mixture([1.0], np.ones(1)), log=True)


@pytest.mark.parametrize("n_classes", [4, 40])
def test_parts_give_the_fit_of_the_whole(n_classes):
    da = pytest.importorskip("dask.array")
    from temperance.dask.fit_data import open_fit_data

    base, y = task(300, n_classes)
    weights = np.linspace(0.5, 2, 300)
    z = 3.0 + base
    whole = InMemoryFitData(rows_of(z, y), weights).transformed(logarithms)
    parts = open_fit_data(da.from_array(z, chunks=(100, n_classes)), y, weights).transformed(logarithms)
    one, many = (fit_class_bias(data, auto=True) for data in (whole, parts))
    assert one.weight == many.weight > 0
    np.testing.assert_allclose(many.bias, one.bias, atol=1e-5)
