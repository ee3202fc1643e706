"""The paper's own training is a reference: it goes down, and never below the exact optimum."""

import warnings

import numpy as np
import pytest

from temperance import make_calibrator, metrics
from temperance.data import simulate

torch = pytest.importorskip("torch", reason="PyTorch is an extra")
from temperance.torch import sgd  # noqa: E402  only where PyTorch is

METHODS = ["lts", "hts", "hnlts", "pts", "pts-ece"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Hold PyTorch to one thread: more of them cost small tensors more than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def short(monkeypatch):
    """Make the training take some 20 epochs."""
    monkeypatch.setattr(sgd, "LEARNING_RATE", 1e-2)
    monkeypatch.setattr(sgd, "LOWEST_RATE", 1e-3)
    monkeypatch.setattr(sgd, "BATCH", 100)
    monkeypatch.setattr(sgd, "PATIENCE", 3)
    monkeypatch.setattr(sgd, "COOLDOWN", 1)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("method", METHODS)
def test_descent_lowers_the_loss_and_keeps_the_decision(method, task):
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
def test_a_fit_leaves_the_global_generator_of_pytorch_alone(task):
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    make_calibrator("hts", solver="sgd").fit(task.logits, task.labels)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_0_do_not_move_the_descent(method, task, monkeypatch):
    monkeypatch.setattr(sgd, "BATCH", 10_000)  # one batch an epoch: the order of the rows plays no part
    kept = np.arange(300) % 3 > 0
    weighted = make_calibrator(method, solver="sgd").fit(task.logits, task.labels, kept.astype(float))
    subset = make_calibrator(method, solver="sgd").fit(task.logits[kept], task.labels[kept])
    np.testing.assert_allclose(
        weighted.predict_proba(task.logits), subset.predict_proba(task.logits), atol=2e-3
    )


@pytest.mark.usefixtures("short")
def test_a_batch_of_nothing_but_weight_0_is_passed_over(task, monkeypatch):
    monkeypatch.setattr(sgd, "BATCH", 4)
    weights = np.zeros(300)
    weights[:20] = 1
    cal = make_calibrator("hts", solver="sgd").fit(task.logits, task.labels, weights)
    assert np.isfinite(cal.predict_proba(task.logits)).all()


@pytest.mark.parametrize("method", ["hts", "lts"])
@pytest.mark.parametrize("weighted", [False, True])
def test_descent_approaches_the_exact_optimum_and_never_beats_it(method, weighted, monkeypatch):
    monkeypatch.setattr(sgd, "LEARNING_RATE", 0.03)
    monkeypatch.setattr(sgd, "LOWEST_RATE", 1e-4)
    monkeypatch.setattr(sgd, "BATCH", 200)
    monkeypatch.setattr(sgd, "PATIENCE", 8)
    monkeypatch.setattr(sgd, "COOLDOWN", 2)
    task = simulate(600, 3, entropy_slope=0.2, random_state=1)
    weights = np.random.default_rng(0).uniform(0.5, 2, 600) if weighted else None
    exact = make_calibrator(method).fit(task.logits, task.labels, weights)
    descent = make_calibrator(method, solver="sgd").fit(task.logits, task.labels, weights)
    assert descent.solution_.value <= exact.solution_.value + 1e-3
    assert descent.solution_.value >= exact.solution_.value - 1e-7
    nll = metrics.nll(descent.predict_proba(task.logits), task.labels, sample_weight=weights)
    assert nll == pytest.approx(descent.solution_.value, abs=1e-6)


@pytest.mark.usefixtures("short")
def test_rows_that_are_all_right_need_no_descent(task):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cal = make_calibrator("hts", solver="sgd").fit(task.logits, task.logits.argmax(axis=1))
    assert any("classified right" in str(warning.message) for warning in caught)
    assert np.ptp(cal.temperature(task.logits)) < 1e-12
