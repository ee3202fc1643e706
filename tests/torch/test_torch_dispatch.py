"""Which tensors NumPy computes, without a copy, and which PyTorch does."""

import tracemalloc

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from temperance import InputError, make_calibrator
from temperance.core.blocks import BFloat16
from temperance.inputs.containers import framework_of, open_logits


def test_the_framework_of_a_tensor():
    plain = torch.zeros(3, 4)
    assert framework_of(plain) is None
    assert framework_of(plain.numpy()) is None
    assert framework_of([[0.0, 1.0]]) is None
    assert framework_of(plain[None]) == "torch"
    assert framework_of(plain.to("meta")) == "torch"
    needs = torch.zeros(3, 4, requires_grad=True)
    assert framework_of(needs) == "torch"
    with torch.no_grad():
        assert framework_of(needs) is None


VIEWS = {
    "whole": lambda z: z,
    "rows": lambda z: z[::3],
    "columns": lambda z: z[:, 1::2],
    "transposed": lambda z: z.T,
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("view", VIEWS)
def test_a_tensor_on_the_cpu_is_opened_without_a_copy(dtype, view):
    held = VIEWS[view](torch.randn(30, 8).to(dtype))
    values = open_logits(held).values
    array = values.bits if isinstance(values, BFloat16) else values
    assert array.__array_interface__["data"][0] == held.data_ptr()
    assert array.strides == tuple(step * held.element_size() for step in held.stride())


@pytest.mark.parametrize(
    ("dtype", "strided"), [(torch.bfloat16, True), (torch.float32, True), (torch.float64, False)]
)
def test_a_fit_takes_a_fraction_of_the_memory_of_its_tensor(dtype, strided):
    torch.manual_seed(0)
    wide = torch.randn(500, 16000).to(dtype)
    logits = wide[:, ::2] if strided else wide
    labels = torch.where(torch.rand(500) < 0.7, logits.argmax(dim=1), torch.randint(0, 8000, (500,)))
    tracemalloc.start()
    make_calibrator("hts").fit(logits, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Blocks of a megabyte or so for each thread, whatever the size of the tensor.
    assert peak < 14e6, peak
    assert logits.numel() * 4 > 15e6


def test_whole_numbers_of_more_axes_and_one_temperature_for_all_of_them(calibrator):
    whole = torch.randint(-20, 20, (2, 3, 7, 5))
    torch.testing.assert_close(
        calibrator("lts").transform(whole), calibrator("lts").transform(whole.double())
    )
    assert calibrator("ts").temperature(whole.double()).shape == (2, 3, 7)


REFUSED = {
    "nan": ("hts", torch.nan, r"found NaN in 1 row \(first: row 1\)"),
    "inf": ("ts", torch.inf, r"found \+inf in 1 row \(first: row 1\)"),
    "mask": ("lts", -torch.inf, "LinearTemperatureScaling, which weighs every"),
    "mask, pts": ("pts", -torch.inf, "ParametrizedTemperatureScaling, which weighs every"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("method", ["transform", "predict_proba"])
def test_invalid_rows_are_refused_with_the_same_message(case, method, calibrator):
    variant, value, message = REFUSED[case]
    cal = calibrator(variant)
    bad = torch.randn(3, 5)
    bad[1, 2] = value
    for logits in (bad, bad.clone().requires_grad_(), bad[None]):
        with pytest.raises(InputError, match=message):
            getattr(cal, method)(logits)


def test_other_numbers_of_classes_are_refused_and_no_rows_return_no_rows(calibrator):
    with pytest.raises(InputError, match="must have 5 columns; found 4"):
        calibrator("ts").transform(torch.zeros(2, 3, 4))
    with pytest.raises(AttributeError, match="a row has no temperature"):
        calibrator("ets").temperature(torch.zeros(2, 3, 5))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make_calibrator("ts").transform(torch.zeros(2, 3, 5))
    assert calibrator("hts").predict_proba(torch.zeros(0, 3, 5)).shape == (0, 3, 5)
    assert np.asarray(calibrator("hts").predict_proba(torch.zeros(0, 5))).shape == (0, 5)
