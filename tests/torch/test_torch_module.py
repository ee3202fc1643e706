"""`to_torch` returns an ordinary module: state, devices, types, compile, export."""

import copy
import io
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from temperance import InputError, TemperatureScaling
from temperance.torch import module as module_file


def rows(n_classes, n_rows=30):
    return torch.randn(n_rows, n_classes, generator=torch.Generator().manual_seed(n_rows)) * 4


def test_the_state_is_the_fitted_numbers(variant, calibrator):
    cal = calibrator(variant)
    state = cal.to_torch().state_dict()
    parameters = cal.parameters()
    assert list(state) == list(parameters)
    for name, values in parameters.items():
        assert state[name].dtype == torch.float64
        np.testing.assert_array_equal(state[name].numpy(), values)


@pytest.mark.filterwarnings("ignore:The labels agree with the logits no better")
def test_a_later_fit_of_the_calibrator_changes_no_module(calibrator):
    cal = copy.deepcopy(calibrator("hts"))
    module = cal.to_torch()
    before = module(rows(5))
    rng = np.random.default_rng(0)
    cal.fit(rng.normal(size=(200, 3)), rng.integers(0, 3, 200))
    assert torch.equal(module(rows(5)), before)


def test_casting_a_model_leaves_the_fitted_numbers_exact(variant, calibrator):
    cal = calibrator(variant)
    model = nn.Sequential(nn.Linear(4, cal.n_classes_), cal.to_torch())
    for cast in (model.half, model.bfloat16, lambda: model.to(torch.float32), model.double):
        cast()
        for name, values in cal.parameters().items():
            np.testing.assert_array_equal(model[1].get_buffer(name).numpy(), values)
    model.bfloat16()
    assert model(torch.zeros(2, 4, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_the_device_is_followed(variant, calibrator):
    """The meta device replaces a GPU: shapes, types and devices are computed, numbers are not."""
    cal = calibrator(variant)
    module = cal.to_torch().to("meta")
    z = rows(cal.n_classes_).half().to("meta")
    assert {buffer.device.type for buffer in module.buffers()} == {"meta"}
    out = module(z)
    assert (out.device.type, out.dtype, out.shape) == ("meta", torch.float16, z.shape)
    for method, shape in {"transform": z.shape, "predict_proba": z.shape, "predict": z.shape[:1]}.items():
        out = getattr(cal, method)(z)
        assert (out.device.type, out.shape) == ("meta", shape)


def test_a_device_without_float64_gets_float32(calibrator, monkeypatch):
    cal = calibrator("pts")
    expected = cal.to_torch()(rows(5))
    monkeypatch.setattr(module_file, "NO_DOUBLES", {"meta"})
    assert {buffer.dtype for buffer in cal.to_torch().to("meta").buffers()} == {torch.float32}
    monkeypatch.setattr("temperance.torch.module.NO_DOUBLES", {"cpu"})
    torch.testing.assert_close(cal.to_torch()(rows(5)), expected)


@pytest.mark.parametrize("variant", ["hts", "lts", "pts", "bayes, bias"])
def test_any_leading_shape_and_any_axis(variant, calibrator):
    cal = calibrator(variant)
    z = rows(5, 24)
    flat = cal.to_torch()(z)
    tokens = z.reshape(2, 3, 4, 5)
    torch.testing.assert_close(cal.to_torch()(tokens), flat.reshape(2, 3, 4, 5))
    pixels = cal.to_torch(dim=1)(tokens.movedim(-1, 1))
    assert pixels.shape == (2, 5, 3, 4)
    torch.testing.assert_close(pixels.movedim(1, -1), flat.reshape(2, 3, 4, 5))
    torch.testing.assert_close(cal.to_torch()(z[0]), flat[0])
    torch.testing.assert_close(torch.vmap(cal.to_torch())(z), flat)
    assert cal.to_torch()(z[:0]).shape == (0, 5)


def test_a_wrong_number_of_classes_is_refused(calibrator):
    with pytest.raises(InputError, match="must have 5 columns; found 4"):
        calibrator("ts").to_torch()(torch.zeros(3, 4))
    with pytest.raises(InputError, match=r"axis 1.*found shape \(5,\)"):
        calibrator("ts").to_torch(dim=1)(torch.zeros(5))


def test_a_row_that_the_library_refuses_gives_nan(calibrator):
    bad = rows(5, 3)
    bad[0, 2] = -torch.inf
    for key in ("lts", "hnlts", "pts"):
        out = calibrator(key).to_torch()(bad)
        assert out[0].isfinite().sum() == 0
        assert out[1:].isfinite().all()


def test_autocast_loses_no_digits(variant, calibrator):
    cal = calibrator(variant)
    module, z = cal.to_torch(), rows(cal.n_classes_)
    expected = module(z)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(module(z), expected)
        model = nn.Sequential(nn.Linear(4, cal.n_classes_), module)
        assert model(torch.zeros(2, 4)).dtype == torch.bfloat16


@pytest.mark.parametrize("variant", ["lts", "hnlts", "pts", "bts", "ets", "bayes, bias"])
def test_it_is_traced_as_one_graph(variant, calibrator):
    module, z = calibrator(variant).to_torch(), rows(5)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(z), module(z))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="PyTorch compiles with a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's compiler uses deprecated code
def test_it_is_compiled(calibrator):
    module, z = calibrator("hts").to_torch(), rows(5)
    z[0, 1] = -torch.inf
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True)
    torch.testing.assert_close(compiled(z), module(z))


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "variant", ["pts", "bayes", pytest.param("hnlts", marks=SLOW), pytest.param("bts", marks=SLOW)]
)
def test_it_is_exported_for_any_number_of_rows(variant, calibrator):
    module, z = calibrator(variant).to_torch(), rows(5)
    program = torch.export.export(module, (z,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    held = io.BytesIO()
    torch.export.save(program, held)
    held.seek(0)
    loaded = torch.export.load(held).module()
    for n_rows in (1, 7, 100):
        torch.testing.assert_close(loaded(rows(5, n_rows)), module(rows(5, n_rows)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(loaded(z), module(z))


def test_it_has_a_description(calibrator):
    assert "EntropyTemperatureScaling, n_classes=5, dim=1" in repr(calibrator("hts").to_torch(dim=1))


def test_only_a_fitted_calibrator_becomes_a_module_with_one_of_two_outputs(calibrator):
    with pytest.raises(Exception, match="not fitted yet"):
        TemperatureScaling().to_torch()
    with pytest.raises(InputError, match="output must be one of 'logits', 'probabilities'; found 'probs'"):
        calibrator("ts").to_torch(output="probs")
