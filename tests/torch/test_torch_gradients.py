"""Gradients with respect to the logits: right against differences, and never NaN."""

import pytest
import torch
from compared import CLASS_KEEPING
from torch.autograd import gradcheck

from temperance import CALIBRATORS

MASKED = [key for key in CLASS_KEEPING if CALIBRATORS[key].supports_masked_classes] + ["bayes, bias"]


def smooth_rows(n_classes, n_rows=6):
    """Return rows without ties, away from the kinks of the clips."""
    generator = torch.Generator().manual_seed(n_classes)
    return torch.randn(n_rows, n_classes, generator=generator, dtype=torch.float64) * 3


def test_the_gradient_is_that_of_differences(variant, calibrator):
    cal = calibrator(variant)
    z = smooth_rows(cal.n_classes_, n_rows=2).requires_grad_()
    many = cal.n_classes_ > 5  # then along random directions
    assert gradcheck(cal.to_torch(), z, eps=1e-7, atol=1e-6, fast_mode=many)
    assert gradcheck(cal.predict_proba, z, eps=1e-7, atol=1e-6, fast_mode=many)


def test_at_a_tie_of_the_top_the_gradient_of_a_smooth_function_is_right(calibrator):
    z = torch.tensor([[1.0, 3.0, 3.0, 0.0, 3.0]], dtype=torch.float64, requires_grad=True)
    for variant in ("ts", "hts", "ets"):
        assert gradcheck(calibrator(variant).predict_proba, z, eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("variant", MASKED)
def test_a_masked_class_gets_no_gradient_and_makes_no_other_nan(variant, calibrator):
    cal = calibrator(variant)
    z = smooth_rows(5)
    z[0, 1] = z[1, 0] = z[1, 3] = float("-inf")
    z[2, :4] = float("-inf")  # a single possible class
    z.requires_grad_()
    possible = torch.isfinite(z.detach())
    loss = torch.nn.functional.cross_entropy(cal.transform(z), torch.full((6,), 4))
    (gradient,) = torch.autograd.grad(loss, z)
    assert torch.isfinite(gradient).all()
    assert (gradient[~possible] == 0).all()
    # The row without its masked class, approximated by a very low logit.
    low = torch.where(possible, z.detach(), -1e4)[3:].requires_grad_()
    loss = torch.nn.functional.cross_entropy(cal.transform(low), torch.full((3,), 4))
    torch.testing.assert_close(torch.autograd.grad(loss, low)[0], 2 * gradient[3:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_huge_gaps_and_ties_have_finite_gradients(variant, dtype, calibrator):
    cal = calibrator(variant)
    k = cal.n_classes_
    z = torch.stack(
        [
            torch.zeros(k),
            torch.arange(k) * 1e4,
            torch.arange(k) * -1e4,
            torch.eye(k)[0] * 90,  # near where float32 underflows
            torch.eye(k)[1] * 1e4,
            torch.eye(k)[0] * 25,  # near the floor of the entropy
        ]
    ).to(dtype)
    z.requires_grad_()
    for method in (cal.transform, cal.predict_proba):
        out = method(z)
        assert torch.isfinite(out).all()
        (gradient,) = torch.autograd.grad((out * torch.arange(k, dtype=dtype)).sum(), z)
        assert torch.isfinite(gradient).all()
        assert gradient.dtype == dtype


def test_a_model_is_trained_through_the_calibrator(calibrator):
    module = calibrator("hts").to_torch()
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), module)
    loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 3)), torch.zeros(8, dtype=torch.long))
    loss.backward()
    assert model[0].weight.grad.abs().sum() > 0
    assert not list(module.parameters()), "the fitted numbers stay"
