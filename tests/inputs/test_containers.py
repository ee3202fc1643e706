"""Whatever holds the logits, the numbers are those of a float64 array, to the precision of its type."""

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse
from compared import CLASS_KEEPING

from temperance import InputError, TemperatureScaling, logits_from_probs, metrics
from temperance.data import simulate

SMOOTH = [key for key in CLASS_KEEPING if key != "pts-ece"]  # its loss jumps: rounding moves its end
PRECISION = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2}


def as_memory_map(array, folder):
    np.save(folder / "logits.npy", array)
    return np.load(folder / "logits.npy", mmap_mode="r")


def strided(array):
    wide = np.full((2 * array.shape[0], 3 * array.shape[1]), np.nan)
    wide[::2, 1::3] = array
    return wide[::2, 1::3]


def frame(array):
    pandas = pytest.importorskip("pandas", reason="pandas is an extra")
    return pandas.DataFrame(array, columns=[f"class {k}" for k in range(array.shape[1])])


SAME_NUMBERS = {
    "list": lambda z, folder: z.tolist(),
    "tuple of rows": lambda z, folder: tuple(z),
    "F order": lambda z, folder: np.asfortranarray(z),
    "strided": lambda z, folder: strided(z),
    "reversed": lambda z, folder: z[::-1].copy()[::-1],
    "memory map": as_memory_map,
    "DataFrame": lambda z, folder: frame(z),
    "big-endian": lambda z, folder: z.astype(">f8"),
}


@pytest.fixture(scope="module")
def new():
    return simulate(n_rows=50, n_classes=4, random_state=9).logits


@pytest.mark.parametrize("kind", SAME_NUMBERS)
def test_a_container_of_the_same_numbers_gives_the_same_bits(method, kind, task, fit, fitted, tmp_path):
    held = SAME_NUMBERS[kind](task.logits, tmp_path)
    cal = fit(method, held, task.labels)
    for name, value in fitted(method).parameters().items():
        np.testing.assert_array_equal(cal.parameters()[name], value, err_msg=name)
    np.testing.assert_array_equal(cal.predict_proba(held), fitted(method).predict_proba(task.logits))
    np.testing.assert_array_equal(cal.transform(held), fitted(method).transform(task.logits))
    np.testing.assert_array_equal(cal.predict(held), task.logits.argmax(axis=1))


def test_the_logits_are_not_written_to(method, task, fit):
    logits, labels, weights = task.logits.copy(), task.labels.copy(), np.ones(300)
    for array in (logits, labels, weights):
        array.flags.writeable = False
    cal = fit(method, logits, labels, weights)
    cal.predict_proba(logits)
    cal.transform(logits)
    np.testing.assert_array_equal(logits, task.logits)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_narrow_types_are_predicted_with_the_precision_of_float32(method, dtype, new, fitted):
    narrow = new.astype(dtype)
    exact = narrow.astype(np.float64)
    probs = fitted(method).predict_proba(narrow)
    assert probs.dtype == np.float32
    np.testing.assert_allclose(probs, fitted(method).predict_proba(exact), atol=2e-5)
    np.testing.assert_allclose(
        fitted(method).transform(narrow), fitted(method).transform(exact), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("method", SMOOTH)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_narrow_types_are_fitted_with_the_precision_of_float64(method, dtype, task, new, fit):
    narrow = task.logits.astype(dtype)
    ours, exact = (fit(method, z, task.labels) for z in (narrow, narrow.astype(np.float64)))
    within = 5e-3 if method == "pts" else 2e-4  # the network ends where a step gains less than 1e-6
    np.testing.assert_allclose(ours.predict_proba(new), exact.predict_proba(new), atol=within)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_binary_logits_may_be_of_a_narrow_type(method, dtype, binary, fit):
    scores, labels = binary[0].astype(dtype), binary[1]
    columns = np.column_stack([np.zeros(200), scores.astype(np.float64)]).astype(dtype)
    np.testing.assert_array_equal(
        fit(method, scores, labels).predict_proba(scores), fit(method, columns, labels).predict_proba(columns)
    )


@pytest.mark.parametrize("dtype", PRECISION)
def test_tensors_in_give_tensors_out_of_the_same_type(method, dtype, task, new, fit, fitted, torch):
    held = torch.from_numpy(new).to(getattr(torch, dtype))
    exact = held.double().numpy()
    cal = fitted(method)
    for use in (cal.predict_proba, cal.transform):
        out = use(held)
        assert isinstance(out, torch.Tensor)
        assert out.dtype == held.dtype
        expected = use(exact)
        np.testing.assert_allclose(
            out.double(), expected, rtol=PRECISION[dtype], atol=PRECISION[dtype] * np.abs(expected).max()
        )
    if hasattr(cal, "temperature_quantiles_"):
        assert cal.temperature(held).dtype == held.dtype
    decisions = cal.predict(held)
    assert not decisions.is_floating_point()
    np.testing.assert_array_equal(decisions.numpy(), exact.argmax(axis=1))


@pytest.mark.parametrize("dtype", PRECISION)
def test_a_fit_to_tensors_is_a_fit_to_their_numbers(method, dtype, task, fit, torch):
    held = torch.from_numpy(task.logits).to(getattr(torch, dtype)).requires_grad_()
    weights = np.random.default_rng(0).uniform(0.5, 2, 300).astype(np.float32)
    cal = fit(method, held, torch.from_numpy(task.labels), torch.from_numpy(weights))
    plain = held.detach().to(torch.float32 if dtype == "bfloat16" else held.dtype).numpy()
    expected = fit(method, plain, task.labels, weights)
    for name, value in expected.parameters().items():
        np.testing.assert_array_equal(cal.parameters()[name], value, err_msg=name)
    assert cal.predict_proba(held).requires_grad


def test_strided_tensors_and_integer_tensors_are_read_as_their_numbers(method, task, fitted, torch):
    transposed = torch.from_numpy(task.logits.T.copy()).T
    np.testing.assert_array_equal(
        fitted(method).predict_proba(transposed).numpy(), fitted(method).predict_proba(task.logits)
    )
    whole = torch.arange(12).reshape(3, 4) % 5
    np.testing.assert_allclose(fitted(method).predict_proba(whole).double().sum(dim=1), 1, atol=1e-6)


def test_weights_of_any_narrow_tensor_type_are_read(task, torch):
    weights = torch.from_numpy(np.tile([1.0, 2.0], 150))
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        cal = TemperatureScaling().fit(task.logits, task.labels, weights.to(dtype))
        assert cal.temperature_ == TemperatureScaling().fit(task.logits, task.labels, weights).temperature_


def test_logits_from_probs_keeps_the_container_and_refuses_other_numbers(torch):
    for dtype in PRECISION:
        probs = torch.tensor([[0.25, 0.75]], dtype=getattr(torch, dtype))
        logits = logits_from_probs(probs)
        assert isinstance(logits, torch.Tensor)
        assert logits.dtype == probs.dtype
        np.testing.assert_allclose(logits.double(), np.log([[0.25, 0.75]]), rtol=PRECISION[dtype])
    with pytest.raises(
        InputError, match=r"sum to 1; found other sums, such as 1\.5, in 1 row \(first: row 1\)"
    ):
        logits_from_probs([[0.5, 0.5], [1.0, 0.5]])
    message = r"from 0 to 1.*such as \[-1, 2\], in 1 row \(first: row 0\)\. If these are logits"
    with pytest.raises(InputError, match=message):
        logits_from_probs([[-1.0, 2.0]])


SPARSE = {
    "array": lambda rows, torch: scipy.sparse.csr_array(rows),
    "matrix": lambda rows, torch: scipy.sparse.coo_matrix(rows),
    "tensor": lambda rows, torch: torch.from_numpy(rows).to_sparse(),
}


@pytest.mark.parametrize("kind", SPARSE)
def test_a_sparse_matrix_is_refused_with_advice(kind, task, torch):
    logits, probs = (SPARSE[kind](rows, torch) for rows in (task.logits, task.probabilities))
    cal = TemperatureScaling().fit(task.logits, task.labels)
    for use in (
        lambda: TemperatureScaling().fit(logits, task.labels),
        lambda: TemperatureScaling().fit(probs, task.labels, from_probs=True),
        lambda: cal.predict_proba(logits),
        lambda: cal.predict_proba(probs, from_probs=True),
        lambda: logits_from_probs(probs),
        lambda: metrics.evaluate(probs, task.labels),
        lambda: metrics.nll(task.probabilities, SPARSE[kind](task.labels[None].astype(float), torch)),
    ):
        with pytest.raises(
            InputError, match=r"dense array; found a sparse \w+\. Pass \.to(array|_dense)\(\)"
        ):
            use()
