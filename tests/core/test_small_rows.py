"""Few rows use a fast path: bit-identical to the general one, and without side effects."""

import numpy as np
import pytest

import temperance
from temperance.core import blocks
from temperance.data import simulate
from temperance.formulas import model

METHODS = [key for key in temperance.CALIBRATORS if not key.endswith("-sgd")]
OUTPUTS = ["predict_proba", "transform", "predict", "temperature"]


def fitted(key, n_classes, dtype):
    task = simulate(300, n_classes, random_state=1)
    logits = task.logits.astype(dtype)
    return temperance.make_calibrator(key).fit(logits, task.labels), logits


def outputs(calibrator, logits):
    """Return what a calibrator gives, by method; a mixture has no temperature."""
    given = {}
    for name in OUTPUTS:
        if name == "temperature" and calibrator.key in ("ets", "mono"):
            continue
        given[name] = getattr(calibrator, name)(logits)
    return given


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 10, 31, 60])
@pytest.mark.parametrize("key", METHODS)
def test_few_rows_are_bit_identical_to_many(key, n_classes, dtype, monkeypatch):
    calibrator, logits = fitted(key, n_classes, dtype)
    pairs = [outputs(calibrator, logits[i : i + 2]) for i in range(0, 30, 2)]
    single = [outputs(calibrator, logits[i : i + 1]) for i in range(30)]
    monkeypatch.setattr(model, "MAX_FEW_NUMBERS", 0)
    long = outputs(calibrator, logits)
    for name, whole in long.items():
        for short in (pairs, single):
            parts = np.concatenate([part[name] for part in short])
            assert parts.dtype == whole.dtype
            assert parts.tobytes() == whole[:30].tobytes(), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("key", ["ts", "hts", "lts"])
def test_one_row_of_a_vocabulary_is_bit_identical_to_many(key, dtype):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40, 20_000)).astype(dtype)
    calibrator = temperance.make_calibrator(key).fit(logits, rng.integers(0, 20_000, 40))
    single = np.concatenate([calibrator.predict_proba(logits[i : i + 1]) for i in range(3)])
    assert single.tobytes() == calibrator.predict_proba(logits)[:3].tobytes()


@pytest.mark.filterwarnings("ignore", "error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("key", ["ts", "hts", "bts", "mono", "bayes", "bayes-bias"])
def test_one_unusual_row_is_bit_identical_to_many(key, dtype, monkeypatch):
    calibrator, logits = fitted(key, 4, dtype)
    factors = np.array([[1e-30], [1e-3], [0.0], [50.0], [3e3], [1e5], [1e14]], dtype)
    masked = np.array([[3, 3, -np.inf, 0], [2, 1, 0, -1e9]], dtype)
    unusual = np.concatenate([logits[:1] * factors, logits[:1] + dtype(1e6), masked])
    single = [outputs(calibrator, row[None]) for row in unusual]
    monkeypatch.setattr(model, "MAX_FEW_NUMBERS", 0)
    for name, whole in outputs(calibrator, unusual).items():
        assert np.concatenate([part[name] for part in single]).tobytes() == whole.tobytes(), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", METHODS)
@pytest.mark.parametrize("n_rows", [1, 3])
def test_the_fast_path_is_used(key, n_rows, monkeypatch):
    calibrator, logits = fitted(key, 4, np.float32)
    monkeypatch.setattr(blocks, "for_each_block", None)  # which the general path calls
    assert calibrator.predict_proba(logits[:n_rows]).shape == (n_rows, 4)


@pytest.mark.parametrize(
    "odd",
    [np.array([[1.0, -np.inf, 0.0]]), np.array([[1e300, 0.0, 1.0]]), np.array([[1.0, 2.0, 0.0]], ">f4")],
    ids=["masked", "huge", "of another byte order"],
)
def test_unusual_input_uses_the_general_path(odd):
    calibrator, _ = fitted("ts", 3, np.float64)
    probs = calibrator.predict_proba(odd)
    assert probs.dtype == np.float64
    assert probs.sum() == pytest.approx(1)


def test_prediction_sets_no_threads_of_the_process(monkeypatch):
    calibrator, logits = fitted("bayes-bias", 5, np.float32)

    def refuse(self):
        raise AssertionError("the linear algebra library was limited")

    monkeypatch.setattr(blocks._OneBlasThread, "__enter__", refuse)
    assert calibrator.predict_proba(np.tile(logits, (40, 1))).shape == (12000, 5)


@pytest.mark.parametrize("output", ["predict_proba", "transform", "predict"])
def test_adapted_calibrators_use_the_fast_path_too(output, monkeypatch):
    calibrator, logits = fitted("bayes-bias", 4, np.float32)
    adapted = calibrator.adapt(priors=[0.7, 0.1, 0.1, 0.1])
    short = getattr(adapted, output)(logits[:3])
    monkeypatch.setattr(model, "MAX_FEW_NUMBERS", 0)
    assert short.tobytes() == getattr(adapted, output)(logits)[:3].tobytes()


def test_one_row_is_read_only_its_result_can_be_kept_and_changed_and_bad_rows_are_refused():
    calibrator, logits = fitted("bayes", 3, np.float32)
    row = logits[:1].copy()
    row.flags.writeable = False
    first = calibrator.predict_proba(row)
    assert row.tobytes() == logits[:1].tobytes()
    expected = first.copy()
    calibrator.predict_proba(logits[1:2])[:] = 0
    assert first.flags.writeable
    np.testing.assert_array_equal(first, expected)
    with pytest.raises(temperance.InputError, match="found NaN in 1 row"):
        calibrator.predict_proba([[1.0, np.nan, 0.0]])
    assert calibrator.predict_proba(np.empty((0, 3))).shape == (0, 3)


def test_the_fast_path_takes_plain_rows_of_the_last_axis_up_to_its_size():
    task = simulate(n_rows=50, n_classes=4, random_state=0)
    plain = temperance.TemperatureScaling().fit(task.logits, task.labels).model_
    assert all(model.are_plain_rows(plain, task.logits, dim, None) for dim in (None, -1, 1))
    first = temperance.TemperatureScaling().fit(task.logits.T, task.labels, dim=0).model_
    assert not model.are_plain_rows(first, task.logits, None, None)
    assert model.are_plain_rows(first, task.logits, 1, None)
    most = np.zeros((model.MAX_FEW_NUMBERS // 4, 4))
    assert model._are_few_and_bounded(most)
    assert not model._are_few_and_bounded(np.zeros((len(most) + 1, 4)))
    for limit in (model.MAX_BOUNDED, -model.MAX_BOUNDED):
        assert not model._are_few_and_bounded(np.array([[0.0, limit]]))
