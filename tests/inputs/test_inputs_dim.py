"""Logits with the classes on any axis: the same results as for (N, K), in the original shape."""

import ml_dtypes
import numpy as np
import pytest

from temperance import BayesianTemperatureScaling, InputError, TemperatureScaling, make_calibrator
from temperance.data import simulate

TASK = simulate(n_rows=240, n_classes=5, random_state=4)
SHAPE = (2, 10, 12)
PIXELS = np.moveaxis(TASK.logits.reshape(*SHAPE, 5), -1, 1)
LABELS = TASK.labels.reshape(SHAPE)
WEIGHTS = np.linspace(0.5, 2, 240)
CAL = BayesianTemperatureScaling().fit(TASK.logits, TASK.labels)
PER_CLASS, PER_ROW = ("predict_proba", "transform"), ("predict", "temperature", "log_temperature_std")


def as_is(array):
    return array


def tensor(array):
    return pytest.importorskip("torch", reason="PyTorch is an extra").from_numpy(np.ascontiguousarray(array))


def differentiated(array):
    return tensor(array).requires_grad_()


@pytest.mark.parametrize("method", PER_CLASS + PER_ROW)
@pytest.mark.parametrize("held", [as_is, tensor, differentiated])
@pytest.mark.parametrize("dim", [0, 1, 2, 3, -1, -3])
def test_every_axis_and_container_gives_the_numbers_of_the_rows(method, held, dim):
    logits = np.moveaxis(PIXELS, 1, dim)
    expected = getattr(CAL, method)(TASK.logits)
    out = getattr(CAL, method)(held(logits), dim=dim)
    assert type(out) is type(held(logits))
    out = np.asarray(out.detach() if held is not as_is else out)
    if method in PER_CLASS:
        assert out.shape == logits.shape
        out = np.moveaxis(out, dim, -1)
    else:
        assert out.shape == SHAPE
    np.testing.assert_allclose(out.reshape(expected.shape), expected, rtol=1e-9, atol=1e-12)


def test_classes_are_on_the_last_axis_by_default():
    tokens = TASK.logits.reshape(*SHAPE, 5)
    np.testing.assert_array_equal(
        CAL.predict_proba(tokens), CAL.predict_proba(TASK.logits).reshape(*SHAPE, 5)
    )


def test_a_table_in_fortran_order_is_the_same_table():
    assert CAL.temperature(TASK.logits.T, dim=0).tolist() == CAL.temperature(TASK.logits).tolist()
    np.testing.assert_array_equal(CAL.transform(TASK.logits.T, dim=0), CAL.transform(TASK.logits).T)


def test_a_square_array_is_read_along_the_axis_of_the_fit():
    cal = BayesianTemperatureScaling().fit(TASK.logits.T, TASK.labels, dim=0)
    square = TASK.logits[: TASK.logits.shape[1]]
    np.testing.assert_array_equal(cal.predict_proba(square.T), CAL.predict_proba(square).T)


def test_the_types_of_narrow_arrays_are_kept_in_any_shape():
    narrow = PIXELS.astype(ml_dtypes.bfloat16)
    rows = np.moveaxis(narrow, 1, -1).reshape(-1, 5)
    out = CAL.predict_proba(narrow, dim=1)
    np.testing.assert_array_equal(np.moveaxis(out, 1, -1).reshape(-1, 5), CAL.predict_proba(rows))


@pytest.mark.parametrize("held", [as_is, tensor])
def test_a_fit_to_pixels_is_a_fit_to_their_rows(held):
    expected = TemperatureScaling().fit(TASK.logits, TASK.labels, WEIGHTS)
    weights = held(WEIGHTS.reshape(SHAPE))
    cal = TemperatureScaling().fit(held(PIXELS), held(LABELS), weights, dim=1)
    assert cal.temperature_ == expected.temperature_
    assert cal.n_rows_ == 240


@pytest.mark.parametrize("ignored", [255, -100])
def test_rows_to_be_ignored_are_left_out_with_their_weights(ignored):
    left = np.arange(240) % 7 != 0
    labels = np.where(left, TASK.labels, ignored).reshape(SHAPE)
    expected = TemperatureScaling().fit(TASK.logits[left], TASK.labels[left], WEIGHTS[left])
    cal = TemperatureScaling().fit(PIXELS, labels, WEIGHTS.reshape(SHAPE), dim=1, ignore_index=ignored)
    assert (cal.temperature_, cal.n_rows_) == (expected.temperature_, left.sum())
    with pytest.raises(InputError, match=f"found other numbers, such as {ignored}"):
        TemperatureScaling().fit(PIXELS, labels, dim=1)


@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
def test_a_label_to_be_ignored_may_be_that_of_a_class_or_of_no_row():
    kept = TASK.labels != 2
    cal = TemperatureScaling().fit(TASK.logits, TASK.labels, ignore_index=2)
    assert cal.temperature_ == TemperatureScaling().fit(TASK.logits[kept], TASK.labels[kept]).temperature_
    plain = TemperatureScaling().fit(TASK.logits, TASK.labels)
    assert (
        TemperatureScaling().fit(TASK.logits, TASK.labels, ignore_index=99).temperature_ == plain.temperature_
    )


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (
            np.full(SHAPE, 255),
            {"dim": 1, "ignore_index": 255},
            "found 255 in all 240 rows. Pass labelled rows",
        ),
        (LABELS, {"dim": 1, "ignore_index": 0.5}, "ignore_index must be a whole number or None; found 0.5"),
        (LABELS.astype(str), {"dim": 1, "ignore_index": 255}, "whole numbers; found <U.*Drop the rows"),
        (LABELS, {"dim": 4}, r"dim must be the axis of the classes, from -4 to 3 .*; found 4"),
        (LABELS, {"dim": 1.0}, "dim must be .* found 1.0"),
        (
            LABELS[:, :4],
            {"dim": 1},
            r"found shape \(2, 4, 12\) .* axis 1\. Pass labels of shape \(2, 10, 12\)",
        ),
        (TASK.labels, {"dim": 1}, r"found shape \(240,\) .*Pass labels of shape \(2, 10, 12\)"),
    ],
)
def test_contradictory_options_are_refused(labels, options, message):
    with pytest.raises(InputError, match=message):
        TemperatureScaling().fit(PIXELS, labels, **options)


def test_weights_have_the_shape_of_the_labels():
    with pytest.raises(InputError, match=r"sample_weight must have the shape of the logits without the axis"):
        TemperatureScaling().fit(PIXELS, LABELS, WEIGHTS[:7], dim=1)


def test_the_axis_that_fits_is_named():
    with pytest.raises(InputError, match=r"classes in axis 3\. Pass dim=1\."):
        TemperatureScaling().fit(PIXELS, LABELS)
    assert TemperatureScaling().fit(PIXELS, LABELS, dim=1).n_rows_ == 240
    with pytest.raises(InputError, match=r"must have 5 columns; found 12\. Pass dim=1\."):
        CAL.predict_proba(PIXELS)
    with pytest.raises(InputError, match=r"for logits of shape \(5, 240\) .*\. Pass dim=0\."):
        TemperatureScaling().fit(TASK.logits.T, TASK.labels)


def test_dask_arrays_must_be_rows(da):
    pixels = da.from_array(PIXELS)
    with pytest.raises(InputError, match=r"\(N, K\) array.*moveaxis\(logits, dim, -1\)\.reshape\(-1, K\)"):
        CAL.predict_proba(pixels, dim=1)
    rows = da.moveaxis(pixels, 1, -1).reshape(-1, 5)
    np.testing.assert_allclose(CAL.predict_proba(rows).compute(), CAL.predict_proba(TASK.logits))
    with pytest.raises(InputError, match="dim and ignore_index are for arrays in memory"):
        TemperatureScaling().fit(rows, TASK.labels, ignore_index=255)


def test_binary_scores_have_no_axis_of_classes():
    scores, labels = TASK.logits[:, 0] - TASK.logits[:, 1], (TASK.labels == 0).astype(int)
    cal = make_calibrator("hts").fit(scores, labels)
    assert cal.transform(scores, dim=0).shape == (240,)


def test_rows_of_a_table_are_used_without_a_copy():
    from temperance.inputs.containers import open_logits

    assert open_logits(TASK.logits).values is TASK.logits
    assert np.shares_memory(open_logits(TASK.logits.reshape(*SHAPE, 5)).values, TASK.logits)
