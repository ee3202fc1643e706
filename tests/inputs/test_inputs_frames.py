"""Data frames have class names: labels may be names, and columns in another order are refused."""

import numpy as np
import pytest

from temperance import InputError, TemperatureScaling, compare, load, metrics
from temperance.data import simulate

pd = pytest.importorskip("pandas", reason="pandas is an extra")

NAMES = ["cat", "dog", "eel"]
TASK = simulate(n_rows=200, n_classes=3, random_state=1)
FRAME = pd.DataFrame(TASK.logits, columns=NAMES)
WORDS = np.array(NAMES)[TASK.labels]
PLAIN = TemperatureScaling().fit(TASK.logits, TASK.labels)


@pytest.fixture(scope="module")
def cal():
    return TemperatureScaling().fit(FRAME, WORDS)


@pytest.mark.parametrize("dtype", ["object", "str", "string", "string[pyarrow]", "category"], indirect=True)
def test_labels_of_any_type_of_text_are_columns_of_the_frame(dtype):
    fitted = TemperatureScaling().fit(FRAME, pd.Series(WORDS, dtype=dtype))
    assert fitted.temperature_ == PLAIN.temperature_
    assert fitted.class_names_ == tuple(NAMES)


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "int64[pyarrow]", "UInt8", "category", "object"], indirect=True
)
def test_labels_of_any_type_of_whole_numbers_are_indices(dtype):
    fitted = TemperatureScaling().fit(FRAME, pd.Series(TASK.labels).astype(dtype))
    assert fitted.temperature_ == PLAIN.temperature_


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]", "object"], indirect=True)
def test_labels_may_be_booleans_of_any_type(dtype):
    scores, truth = TASK.logits[:, 1] - TASK.logits[:, 0], TASK.labels == 1
    labels = pd.Series(truth).astype(dtype)
    expected = TemperatureScaling().fit(scores, truth.astype(int))
    assert TemperatureScaling().fit(scores, labels).temperature_ == expected.temperature_


@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([*WORDS[:-1], None], dtype="str"),
        pd.Series([*WORDS[:-1], None], dtype="string"),
        pd.Series([*WORDS[:-1], None], dtype="category"),
        pd.Series([*TASK.labels[:-1], None], dtype="Int64"),
        pd.Series([*(TASK.labels[:-1] == 1), None], dtype="boolean"),
        [*WORDS[:-1], None],
        [*TASK.labels[:-1], float("nan")],
    ],
    ids=["str", "string", "category", "Int64", "boolean", "None", "nan"],
)
def test_a_missing_label_is_named_by_its_row_and_dropping_it_helps(labels):
    message = r"must have a label; found missing ones in 1 row \(first: row 199\)\. Drop these rows\."
    with pytest.raises(InputError, match=message):
        TemperatureScaling().fit(FRAME, labels)
    if isinstance(labels, pd.Series):
        kept = labels.notna()
        fitted = TemperatureScaling().fit(FRAME[kept], labels[kept])
        assert fitted.n_rows_ == 199


@pytest.mark.parametrize(
    "dtype", ["Float64", "Float32", "double[pyarrow]", "float32[pyarrow]"], indirect=True
)
def test_nullable_and_arrow_numbers_are_logits(dtype, cal):
    frame = FRAME.astype(dtype)
    np.testing.assert_allclose(cal.predict_proba(frame), cal.predict_proba(TASK.logits), atol=1e-6)
    frame.iloc[7, 1] = pd.NA
    with pytest.raises(InputError, match=r"found NaN in 1 row \(first: row 7\)\. Drop these rows"):
        cal.predict_proba(frame)


def test_nullable_text_is_not_read_as_numbers(cal):
    with pytest.raises(InputError, match="floating point numbers; found object"):
        cal.predict_proba(FRAME.astype("string"))


@pytest.mark.parametrize("use", ["predict_proba", "predict", "transform", "temperature", "adapt"])
def test_columns_in_another_order_are_refused_until_put_in_order(cal, use):
    shuffled = FRAME[["dog", "cat", "eel"]]
    message = r"in their order: 'cat', 'dog', 'eel'; found another order: 'dog', 'cat', 'eel'\. Pass"
    with pytest.raises(InputError, match=message) as caught:
        getattr(cal, use)(shuffled)
    remedy = str(caught.value).rpartition("Pass ")[2].rstrip(".")
    ordered = eval(remedy, {"logits": shuffled, "cal": cal})
    pd.testing.assert_frame_equal(ordered, FRAME)


def test_columns_of_other_names_are_refused_unless_passed_as_an_array(cal):
    renamed = FRAME.rename(columns={"eel": "fox"}).astype("Float64")
    with pytest.raises(InputError, match=r"found 'cat', 'dog', 'fox', without 'eel'\. If .* pass") as caught:
        cal.predict_proba(renamed)
    remedy = str(caught.value).rpartition("pass ")[2].rstrip(".")
    numbers = eval(remedy, {"logits": renamed, "np": np})
    np.testing.assert_array_equal(cal.predict_proba(numbers), cal.predict_proba(FRAME))


def test_more_columns_than_those_of_the_fit_are_refused_until_chosen(cal):
    wider = FRAME.assign(fox=0.0)
    with pytest.raises(InputError, match=r"found others among them: 'cat', 'dog', 'eel', 'fox'"):
        cal.predict_proba(wider)
    assert cal.predict_proba(wider[list(cal.get_feature_names_out())]).shape == (200, 3)


def test_a_file_remembers_the_names(cal, tmp_path):
    cal.save(tmp_path / "cal.json")
    loaded = load(tmp_path / "cal.json")
    with pytest.raises(InputError, match="found another order"):
        loaded.predict_proba(FRAME[NAMES[::-1]])
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), cal.predict_proba(FRAME))


def test_numbered_columns_are_read_as_an_array(cal):
    numbered = pd.DataFrame(TASK.logits)
    np.testing.assert_array_equal(cal.predict_proba(numbered), cal.predict_proba(FRAME))
    assert not hasattr(TemperatureScaling().fit(numbered, TASK.labels), "class_names_")
    assert TemperatureScaling().fit(TASK.logits, TASK.labels).predict_proba(FRAME).shape == (200, 3)


def test_compare_and_metrics_take_the_names_of_a_frame(cal):
    result = compare(FRAME[:100], WORDS[:100], FRAME[100:], WORDS[100:], ["ts"], draws=5)
    plain = compare(
        TASK.logits[:100], TASK.labels[:100], TASK.logits[100:], TASK.labels[100:], ["ts"], draws=5
    )
    assert result.class_names == result.results["ts"].calibrator.class_names_ == tuple(NAMES)
    assert result.results["ts"].scores["nll"].value == plain.results["ts"].scores["nll"].value
    with pytest.raises(InputError, match="found another order"):
        compare(FRAME[:100], WORDS[:100], FRAME[NAMES[::-1]][100:], WORDS[100:], ["ts"], draws=5)
    probs = pd.DataFrame(cal.predict_proba(FRAME), columns=NAMES)
    assert metrics.nll(probs, WORDS) == metrics.nll(probs.to_numpy(), TASK.labels)
    assert metrics.nll(probs.astype("Float64"), WORDS) == metrics.nll(probs, WORDS)


def test_polars_frames_and_series(cal):
    pl = pytest.importorskip("polars", reason="polars is no dependency")
    frame = pl.DataFrame(TASK.logits, schema=NAMES)
    assert TemperatureScaling().fit(frame, pl.Series(WORDS)).temperature_ == PLAIN.temperature_
    assert TemperatureScaling().fit(frame, pl.Series(WORDS, dtype=pl.Categorical)).class_names_ == tuple(
        NAMES
    )
    np.testing.assert_array_equal(cal.predict_proba(frame), cal.predict_proba(FRAME))
    with pytest.raises(InputError, match="another order") as caught:
        cal.predict_proba(frame[["dog", "cat", "eel"]])
    remedy = str(caught.value).rpartition("Pass ")[2].rstrip(".")
    assert eval(remedy, {"logits": frame, "cal": cal}).columns == NAMES
    with pytest.raises(InputError, match="must have a label; found missing"):
        TemperatureScaling().fit(frame, pl.Series([*WORDS[:-1], None]))


def test_arrow_tables_are_frames():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is an extra")
    table = pa.table(dict(zip(NAMES, TASK.logits.T, strict=True)))
    fitted = TemperatureScaling().fit(table, pa.array(WORDS.tolist()))
    assert fitted.temperature_ == PLAIN.temperature_
    with pytest.raises(InputError, match="another order"):
        fitted.predict_proba(table.select(NAMES[::-1]))
