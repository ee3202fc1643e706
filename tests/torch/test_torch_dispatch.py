"""Which tensors NumPy computes, without a copy, and which PyTorch does."""

import tracemalloc

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch.fx.experimental.proxy_tensor import make_fx

from temperance import InputError, make_calibrator
from temperance.inputs.containers import framework_of, open_logits


@pytest.fixture(autouse=True)
def by_tensors():
    """Let NumPy compute what it can, unlike in the other files of this folder."""


def test_the_framework_of_a_tensor():
    plain = torch.zeros(3, 4)
    assert framework_of(plain) is None
    assert framework_of(plain.numpy()) is None
    assert framework_of([[0.0, 1.0]]) is None
    assert framework_of(plain[None]) is None
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


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("view", VIEWS)
def test_a_tensor_on_the_cpu_is_opened_without_a_copy(dtype, view):
    held = VIEWS[view](torch.randn(30, 8).to(dtype))
    array = open_logits(held).values
    assert array.__array_interface__["data"][0] == held.data_ptr()
    assert array.strides == tuple(step * held.element_size() for step in held.stride())


@pytest.mark.parametrize(("dtype", "strided"), [(torch.float32, True), (torch.float64, False)])
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


def pixels(n_classes, channels_last):
    image = torch.randn(2, n_classes, 30, 7, generator=torch.Generator().manual_seed(0)) * 5
    return image.to(memory_format=torch.channels_last) if channels_last else image


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("key", ["ts", "hts", "bayes"])
def test_a_module_gives_the_numbers_of_the_calibrator_in_the_order_of_its_input(
    key, batch, channels_last, calibrator
):
    cal = calibrator(key)
    image = pixels(5, channels_last)[:batch]
    for options, method in (({}, cal.transform), ({"output": "probabilities"}, cal.predict_proba)):
        got = cal.to_torch(dim=1, **options)(image)
        np.testing.assert_array_equal(got.movedim(1, -1).reshape(-1, 5), method(as_rows(image)))
        assert torch.equal(got, method(image, dim=1))
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
        assert got.is_contiguous(memory_format=memory_format)


def as_rows(image):
    return image.movedim(1, -1).reshape(-1, image.shape[1]).contiguous().numpy()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_module_computes_with_tensors_where_numpy_cannot(calibrator, monkeypatch):
    from temperance.torch import module as module_file

    cal, found, rows = calibrator("hts"), [], module_file.TensorRows
    module, z = cal.to_torch(), torch.randn(6, 5)
    monkeypatch.setattr(module_file, "TensorRows", lambda *given: (found.append(1), rows(*given))[1])
    expected = module(z)
    assert not found
    cases = {
        "gradients": lambda: module(z.clone().requires_grad_()),
        "vmap": lambda: torch.vmap(module)(z),
        "trace": lambda: torch.jit.trace(module, z)(z),
        "graph": lambda: make_fx(module)(z)(z),
        "one row": lambda: torch.stack([module(row) for row in z]),
    }
    for name, case in cases.items():
        found.clear()
        torch.testing.assert_close(case().detach(), expected, msg=name)
        assert found, name


def test_a_refused_row_of_a_module_leaves_the_others_alone(calibrator):
    bad = torch.randn(3, 5)
    module, expected = calibrator("lts").to_torch(), calibrator("lts").to_torch()(bad)
    bad[1, 2] = -torch.inf
    got = module(bad)
    assert got[1].isfinite().sum() == 0
    torch.testing.assert_close(got[[0, 2]], expected[[0, 2]])


@pytest.mark.parametrize("needs_gradients", [False, True])  # NumPy computes, or PyTorch does
def test_a_module_follows_its_state(needs_gradients, calibrator):
    module, z = calibrator("ts").to_torch(), torch.randn(6, 5, requires_grad=needs_gradients)
    module.load_state_dict({name: 2 * held for name, held in module.state_dict().items()})
    torch.testing.assert_close(module(z), calibrator("ts").to_torch()(z) / 2)
