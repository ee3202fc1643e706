"""The paper's own training is a reference: it lowers the loss, and never below the exact optimum."""

import warnings

import numpy as np
import pytest
from core_reference import draw

from temperance import make_calibrator, metrics
from temperance.core import descent
from temperance.core.ece_loss import BINS, EceLoss
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import Linear, Network, Softplus
from temperance.data import simulate

METHODS = ["lts", "hts", "hnlts", "pts", "pts-ece"]


@pytest.fixture
def short(monkeypatch):
    """Make the training take some 20 epochs."""
    monkeypatch.setattr(descent, "LEARNING_RATE", 1e-2)
    monkeypatch.setattr(descent, "MIN_RATE", 1e-3)
    monkeypatch.setattr(descent, "BATCH", 100)
    monkeypatch.setattr(descent, "PATIENCE", 3)
    monkeypatch.setattr(descent, "COOLDOWN", 1)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("method", METHODS)
def test_sgd_lowers_the_loss_and_keeps_the_decision(method, task):
    cal = make_calibrator(method, solver="sgd").fit(task.logits, task.labels)
    probs = cal.predict_proba(task.logits)
    assert cal.solution_.iterations > 3
    assert cal.solution_.message.startswith("SGD")
    assert np.isfinite(probs).all()
    np.testing.assert_array_equal(probs.argmax(axis=1), task.logits.argmax(axis=1))
    loss = metrics.nll if method != "pts-ece" else lambda p, y: metrics.ece(p, y, bins=10)
    before = np.exp(task.logits - np.logaddexp.reduce(task.logits, axis=1, keepdims=True))
    assert loss(probs, task.labels) < loss(before, task.labels)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bits(method, task):
    first, again = (make_calibrator(method, solver="sgd").fit(task.logits, task.labels) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(task.logits), again.predict_proba(task.logits))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_0_do_not_move_the_descent(method, task, monkeypatch):
    monkeypatch.setattr(descent, "BATCH", 10_000)  # one batch an epoch: the order of the rows plays no part
    kept = np.arange(300) % 3 > 0
    weighted = make_calibrator(method, solver="sgd").fit(task.logits, task.labels, kept.astype(float))
    subset = make_calibrator(method, solver="sgd").fit(task.logits[kept], task.labels[kept])
    np.testing.assert_allclose(
        weighted.predict_proba(task.logits), subset.predict_proba(task.logits), atol=2e-3
    )


@pytest.mark.usefixtures("short")
def test_a_masked_class_has_probability_0_after_sgd(task):
    logits = task.logits.copy()
    masked = np.arange(0, 300, 7), (task.labels[::7] + 1) % logits.shape[1]
    logits[masked] = -np.inf
    cal = make_calibrator("hts", solver="sgd").fit(logits, task.labels)
    assert np.isfinite(cal.solution_.value)
    np.testing.assert_array_equal(cal.predict_proba(logits)[masked], 0)


@pytest.mark.usefixtures("short")
def test_a_batch_with_only_weight_0_is_skipped(task, monkeypatch):
    monkeypatch.setattr(descent, "BATCH", 4)
    weights = np.zeros(300)
    weights[:20] = 1
    cal = make_calibrator("hts", solver="sgd").fit(task.logits, task.labels, weights)
    assert np.isfinite(cal.predict_proba(task.logits)).all()


@pytest.mark.parametrize("method", ["hts", "lts"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sgd_approaches_the_exact_optimum_and_never_beats_it(method, weighted, monkeypatch):
    monkeypatch.setattr(descent, "LEARNING_RATE", 0.03)
    monkeypatch.setattr(descent, "MIN_RATE", 1e-4)
    monkeypatch.setattr(descent, "BATCH", 200)
    monkeypatch.setattr(descent, "PATIENCE", 8)
    monkeypatch.setattr(descent, "COOLDOWN", 2)
    task = simulate(600, 3, entropy_slope=0.2, random_state=1)
    weights = np.random.default_rng(0).uniform(0.5, 2, 600) if weighted else None
    exact = make_calibrator(method).fit(task.logits, task.labels, weights)
    trained = make_calibrator(method, solver="sgd").fit(task.logits, task.labels, weights)
    assert trained.solution_.value <= exact.solution_.value + 1e-3
    assert trained.solution_.value >= exact.solution_.value - 1e-7
    nll = metrics.nll(trained.predict_proba(task.logits), task.labels, sample_weight=weights)
    assert nll == pytest.approx(trained.solution_.value, abs=1e-6)


@pytest.mark.usefixtures("short")
def test_rows_that_are_all_right_need_no_descent(task):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cal = make_calibrator("hts", solver="sgd").fit(task.logits, task.logits.argmax(axis=1))
    assert any("classified correctly" in str(warning.message) for warning in caught)
    assert np.ptp(cal.temperature(task.logits)) < 1e-12


def by_torch(loss, task, start, epochs):
    """Train with PyTorch's optimiser, schedule and derivatives; all rows are one batch."""
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    z, y = torch.from_numpy(task.logits), torch.from_numpy(task.labels)
    features = torch.cat([torch.ones(len(z), 1), z - z.mean(dim=1, keepdim=True)], dim=1).double()
    theta = torch.tensor(start, requires_grad=True)
    optimiser = torch.optim.SGD([theta], lr=descent.LEARNING_RATE, momentum=0.9, nesterov=True)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.1, patience=descent.PATIENCE, cooldown=descent.COOLDOWN, min_lr=0.0
    )
    rates = []
    for _ in range(epochs):
        optimiser.zero_grad()
        value = loss(torch, z / torch.nn.functional.softplus(features @ theta)[:, None], y)
        value.backward()
        optimiser.step()
        plateau.step(float(value.detach()))
        rates.append(optimiser.param_groups[0]["lr"])
    return theta.detach().numpy(), rates


def torch_nll(torch, scaled, labels):
    return torch.nn.functional.cross_entropy(scaled, labels)


def torch_ece(torch, scaled, labels):
    confidence, top = scaled.softmax(dim=1).max(dim=1)
    group = (confidence.detach() * BINS).ceil().long().clamp(1, BINS) - 1
    gaps = torch.zeros(BINS, dtype=torch.float64).index_add(0, group, (top == labels).double() - confidence)
    return gaps.abs().sum() / len(labels)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("ours", "theirs"), [(LogLikelihood, torch_nll), (EceLoss, torch_ece)])
def test_the_path_is_that_of_pytorch(ours, theirs, task, monkeypatch):
    monkeypatch.setattr(descent, "BATCH", 10_000)
    rows = LogitRows(task.logits, task.labels)
    objective = ours(rows, Linear(np.ones((rows.n_rows, 1)), rows), Softplus(1e-6, 1e6))
    start = np.array([0.7, *np.linspace(-0.1, 0.1, task.logits.shape[1])])
    found = descent.descend(objective, start)
    expected, rates = by_torch(theirs, task, start, found.iterations)
    np.testing.assert_allclose(found.parameters, expected, rtol=1e-9, atol=1e-12)
    assert rates[-1] <= descent.MIN_RATE * (1 + 1e-6) < rates[-2], "both end in the same epoch"


def test_a_network_descends_by_its_own_gradient(task):
    rng = np.random.default_rng(0)
    rows = LogitRows(task.logits, task.labels)
    objective = LogLikelihood(rows, Network(rng.standard_normal((rows.n_rows, 3)), (4,)), Softplus(1e-6, 1e6))
    held = descent._held(objective)
    theta = rng.standard_normal(objective.n_parameters)
    some = rng.permutation(rows.n_rows)[:50]
    for ours, theirs in ((held, objective), (held.take(some), objective.take(some))):
        here, there = ours(theta, with_fisher=False), theirs(theta)
        assert here.value == pytest.approx(there.value, rel=1e-12)
        np.testing.assert_allclose(here.gradient, there.gradient, rtol=1e-9, atol=1e-14)


def test_a_network_starts_as_pytorchs_layers_do():
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    network = Network(np.zeros((1, 10)), (5, 5))
    ours = np.stack([network.usual_start(np.random.default_rng(seed)) for seed in range(400)])
    torch.manual_seed(0)
    layers = [torch.nn.Linear(*shape) for _ in range(400) for shape in network.shapes]
    theirs = [[p.detach().numpy() for p in (layer.weight, layer.bias)] for layer in layers]
    at = 0
    for i, (n_in, n_out) in enumerate(network.shapes):
        for kind, size in enumerate((n_in * n_out, n_out)):
            mine, its = ours[:, at : at + size], np.concatenate([t[kind].ravel() for t in theirs[i::3]])
            assert np.abs(mine).max() == pytest.approx(np.abs(its).max(), rel=0.01)
            assert mine.std() == pytest.approx(its.std(), rel=0.06)
            at += size
    assert at == network.n_parameters


@pytest.mark.usefixtures("short")
def test_sgd_does_not_standardise_the_inputs_of_a_network(task):
    cal = make_calibrator("pts", solver="sgd").fit(task.logits, task.labels)
    assert (cal.input_mean_ == 0).all()
    assert (cal.input_scale_ == 1).all()
    assert (make_calibrator("pts").fit(task.logits, task.labels).input_scale_ != 1).any()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_learning_rate_falls_when_pytorchs_does(seed):
    torch = pytest.importorskip("torch")
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=1e-4)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, patience=100, cooldown=50)
    ours = descent._Plateau(1e-4)
    rng = np.random.default_rng(seed)
    loss, rates = 1.0, []
    while ours.rate > 2e-7:  # PyTorch makes no smaller steps
        loss *= 1 - rng.choice([0, 5e-7, 1.1e-4], p=[0.9, 0.09, 0.01])  # seldom enough to count
        ours.step(loss)
        theirs.step(loss)
        rates.append((ours.rate, optimiser.param_groups[0]["lr"]))
    mine, reference = np.transpose(rates)
    np.testing.assert_allclose(mine, reference, rtol=1e-12)


def test_a_loss_that_falls_by_a_ten_thousandth_and_no_more_has_not_improved():
    plateau = descent._Plateau(1.0)
    plateau.step(1.0)
    for _ in range(descent.PATIENCE):
        plateau.step(1.0 - descent.IMPROVEMENT)
    assert plateau.rate == 1.0
    plateau.step(1.0 - descent.IMPROVEMENT)
    assert plateau.rate == 0.1


@pytest.mark.parametrize(
    ("limits", "start"), [((0.05, 0.5), 0.5 / 1.01), ((2.0, 9.0), 2.02), ((0.1, 10), 1.0)]
)
def test_a_descent_has_the_settings_of_the_paper_and_starts_where_t_is_1_or_just_inside_its_limits(
    limits, start
):
    assert (descent.LEARNING_RATE, descent.MIN_RATE, descent.MOMENTUM) == (1e-4, 1e-7, 0.9)
    assert (descent.BATCH, descent.PATIENCE, descent.COOLDOWN) == (1000, 100, 50)
    z, y = draw(30, 3)
    link = Softplus(*limits)
    objective = LogLikelihood(LogitRows(z, y), Linear(np.ones((30, 1))), link)
    assert link.temperature(descent._first_guess(objective))[0] == pytest.approx(start, rel=1e-12)
