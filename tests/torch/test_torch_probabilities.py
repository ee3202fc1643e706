"""The module and the program of a calibrator of probabilities take probabilities, as its methods do."""

import warnings

import numpy as np
import pytest
import torch
from compared import CLASS_KEEPING

from temperance import make_calibrator
from temperance.data import simulate
from temperance.torch.module import save_program

TASK = simulate(n_rows=300, n_classes=4, random_state=2)
PROBS = torch.softmax(torch.from_numpy(TASK.logits), -1).numpy()
PROBS = np.where(PROBS < 0.003, 0, PROBS)
PROBS /= PROBS.sum(axis=1, keepdims=True)


def fitted(key, probs=PROBS, labels=TASK.labels, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge")
        return make_calibrator(key).fit(probs, labels, from_probs=True, **options)


@pytest.mark.parametrize("output", ["probabilities", "logits"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("key", [*CLASS_KEEPING, "bayes-bias"])
def test_a_module_gives_what_the_methods_give(key, dtype, output):
    cal = fitted(key)
    rows = torch.from_numpy(PROBS).to(dtype)
    use = cal.predict_proba if output == "probabilities" else cal.transform
    found = cal.to_torch(output=output)(rows)
    assert found.dtype == dtype
    atol = 1e-5 if dtype == torch.float32 else 1e-11
    wanted = use(rows.numpy(), from_probs=True)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=atol if output == "logits" else 0, atol=10 * atol)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1), (-1, 2)])
@pytest.mark.parametrize("output", ["probabilities", "logits"])
def test_the_probability_of_one_of_two_classes(shape, output):
    p = np.linspace(0, 1, 60)
    cal = fitted("bayes-bias", p, (np.arange(60) % 7 < p * 7).astype(int))
    given = torch.from_numpy(np.column_stack([1 - p, p]) if shape == (-1, 2) else p.reshape(shape))
    use = cal.predict_proba if output == "probabilities" else cal.transform
    found = cal.to_torch(output=output)(given)
    np.testing.assert_allclose(found.numpy(), use(given.numpy(), from_probs=True), atol=1e-9)


def test_a_program_takes_any_number_of_rows(tmp_path):
    cal = fitted("bayes-bias")
    for dim, rows in ((-1, PROBS), (1, PROBS.reshape(3, 10, 10, 4).transpose(0, 3, 1, 2))):
        save_program(cal, tmp_path / "cal.pt2", dim=dim, overwrite=True)
        loaded = torch.export.load(tmp_path / "cal.pt2")
        assert loaded.graph_signature.user_inputs == ("probabilities",)
        program = loaded.module()
        given = torch.from_numpy(rows).float()
        wanted = cal.predict_proba(PROBS, from_probs=True)
        wanted = wanted if dim == -1 else wanted.reshape(3, 10, 10, 4).transpose(0, 3, 1, 2)
        np.testing.assert_allclose(program(given).numpy(), wanted, atol=1e-5)
        np.testing.assert_allclose(program(given[:1]).numpy(), wanted[:1], atol=1e-5)


def test_rows_are_divided_by_their_sum_where_those_of_the_fit_were():
    percent = (100 * PROBS).round()
    cal = fitted("bayes", percent, renormalise=True)
    found = cal.to_torch(output="probabilities")(torch.from_numpy(percent))
    np.testing.assert_allclose(found.numpy(), cal.predict_proba(percent, from_probs=True), atol=1e-12)


def test_gradients_are_finite_where_a_probability_is_0():
    given = torch.from_numpy(PROBS).requires_grad_()
    fitted("bayes").to_torch(output="probabilities")(given)[:, 0].sum().backward()
    assert torch.isfinite(given.grad).all()
    assert (given.grad[PROBS > 0] != 0).any()
    assert (given.grad[PROBS == 0] == 0).all()


def test_its_description_says_so():
    assert (
        repr(fitted("ts").to_torch())
        == "ProbabilityModule(TemperatureScaling, n_classes=4, dim=-1, of probabilities)"
    )
