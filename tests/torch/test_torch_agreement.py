"""The module and tensors with gradients give what NumPy gives, whatever the rows."""

import numpy as np
import pytest
import torch
from compared import CLASS_KEEPING

from temperance.core.tensor_rows import TensorRows
from temperance.torch.module import TORCH

# Of probabilities. Float32 is NumPy's own error: sums of numbers of 1e4 that cancel to a few.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


def softmax(z):
    return torch.softmax(z, dim=-1).numpy()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "variant", [*CLASS_KEEPING, "bayes, bias", "bayes, biases of 3", "bayes, biases of 33"]
)
def test_ten_thousand_wild_rows_agree(variant, dtype, calibrator, wild):
    cal = calibrator(variant)
    rows = wild(cal.n_classes_).astype(dtype)
    expected = cal.predict_proba(rows)
    got = cal.predict_proba(torch.from_numpy(rows)[None])[0]
    assert got.dtype == getattr(torch, dtype)
    np.testing.assert_allclose(got.numpy(), expected, atol=TOLERANCE[dtype], rtol=0)
    module = cal.to_torch()
    logits = module(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(logits, cal.transform(rows), rtol=5 * TOLERANCE[dtype], atol=1e-5)
    if dtype == "float32":
        # z / T has the rounding of numbers as large as z: without the largest logit there is none.
        from_top = torch.from_numpy(rows - rows.max(axis=1, keepdims=True))
        np.testing.assert_allclose(softmax(module(from_top)), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_temperatures_and_their_spread_agree(variant, dtype, calibrator):
    cal = calibrator(variant)
    rows = np.random.default_rng(0).normal(0, 5, (200, cal.n_classes_)).astype(dtype)
    held = torch.from_numpy(rows).requires_grad_()
    rtol = 1e-12 if dtype == "float64" else 1e-5
    if hasattr(cal, "temperature_quantiles_"):
        T = cal.temperature(held).detach()
        assert T.shape == (200,)
        np.testing.assert_allclose(T, cal.temperature(rows), rtol=rtol)
    if variant.startswith("bayes"):
        spread = cal.log_temperature_std(held).detach()
        np.testing.assert_allclose(spread, cal.log_temperature_std(rows), rtol=100 * rtol)
    assert cal.predict(held).tolist() == cal.predict(rows).tolist()


def test_a_confident_row_keeps_the_digits_of_its_small_probabilities():
    z = torch.tensor([[0.0, -40.0, -45.0, -60.0]])
    exact = np.exp(-40.0) + np.exp(-45.0) + np.exp(-60.0)
    np.testing.assert_allclose(TensorRows(z, 4, TORCH).log_confidence(), [[-exact]], rtol=1e-6)


def hostile(n_classes, masks):
    """Return rows of ties, of equal logits, and of huge gaps; with masks down to one possible class."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-3, 3, (60, n_classes)) * 1.5
    rows[:5] = 0
    rows[5:10] *= 1e4
    rows[10:12] = 1e12 * np.arange(n_classes)
    if masks:
        rows[12:40][rng.random((28, n_classes)) < 0.4] = -np.inf
        rows[40:45] = -np.inf
        rows[np.arange(60), rng.integers(0, n_classes, 60)] = 2.0
    return rows


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_ties_masks_and_huge_gaps_agree(variant, dtype, calibrator):
    cal = calibrator(variant)
    masks = cal.supports_masked_classes
    rows = hostile(cal.n_classes_, masks).astype(dtype)
    held = torch.from_numpy(rows).requires_grad_()
    got, expected = cal.predict_proba(held).detach().numpy(), cal.predict_proba(rows)
    np.testing.assert_allclose(got, expected, atol=TOLERANCE[dtype])
    logits, wanted = cal.transform(held).detach().numpy(), cal.transform(rows)
    np.testing.assert_array_equal(np.isneginf(logits), np.isneginf(wanted))
    np.testing.assert_allclose(logits, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(cal.to_torch()(held.detach()).numpy(), logits, rtol=1e-6, atol=1e-6)
    assert cal.predict(held).tolist() == cal.predict(rows).tolist()


@pytest.mark.parametrize("variant", ["bayes of 2", "hts of 2"])
def test_binary_logits_of_one_axis_agree(variant, calibrator):
    cal = calibrator(variant)
    z = np.linspace(-30, 30, 41)
    held = torch.from_numpy(z).requires_grad_()
    np.testing.assert_allclose(cal.to_torch()(held).detach(), cal.transform(z), rtol=1e-12)
    np.testing.assert_allclose(cal.transform(held).detach(), cal.transform(z), rtol=1e-12)
    np.testing.assert_allclose(cal.predict_proba(held).detach(), cal.predict_proba(z), atol=1e-12)
    np.testing.assert_allclose(cal.temperature(held).detach(), cal.temperature(z), rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits_are_computed_in_float32(variant, dtype, calibrator):
    cal = calibrator(variant)
    rows = torch.randn(50, cal.n_classes_, generator=torch.Generator().manual_seed(0)) * 5
    narrow = rows.to(dtype)
    module = cal.to_torch()
    out = module(narrow)
    assert out.dtype == dtype
    assert torch.equal(out, module(narrow.float()).to(dtype))
    again = cal.transform(narrow.requires_grad_())
    assert again.dtype == dtype
    assert torch.equal(again, out)
