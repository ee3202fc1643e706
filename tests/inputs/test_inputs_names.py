"""A class is meant by its name, whatever the function, the container and the order of the columns."""

import json

import numpy as np
import pytest

from temperance import (
    InputError,
    TemperatureScaling,
    automate,
    compare,
    load,
    logits_from_probs,
    metrics,
    monitoring,
    serving,
)
from temperance.data import open_rows, simulate
from temperance.inputs.names import check_class, resolve

pd = pytest.importorskip("pandas", reason="pandas is an extra")

TASK = simulate(n_rows=400, n_classes=3, random_state=1)
NAMES = ["ant", "bee", "cat"]
WORDS = np.array(NAMES)[TASK.labels]
FRAME = pd.DataFrame(TASK.logits, columns=NAMES)
NEW = simulate(n_rows=400, n_classes=3, random_state=2)
NEW_FRAME, NEW_WORDS = pd.DataFrame(NEW.logits, columns=NAMES), np.array(NAMES)[NEW.labels]
PROBS = pd.DataFrame(TASK.probabilities, columns=NAMES)
ORDERS = [["cat", "ant", "bee"], ["bee", "ant", "cat"], NAMES[::-1]]
LIBRARIES = ["pandas", "polars", "pyarrow"]


def framed(frame, library):
    """Return a frame of pandas as one of another library."""
    if library == "pandas":
        return frame
    other = pytest.importorskip(library, reason="an extra, or no dependency")
    if library == "polars":
        return other.DataFrame({name: frame[name].to_numpy() for name in frame})
    return other.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def cal():
    return TemperatureScaling().fit(FRAME, WORDS)


@pytest.mark.parametrize("names", [[1, 2, 3], [3, 5, 7], [2, 0, 1], [0, 1, 2], NAMES, ["1", "01", "x"]])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_class_to_decide_for_is_the_same_one_everywhere(names, place):
    y = np.array(names)[TASK.labels]
    fitted = TemperatureScaling().fit(TASK.logits, y, classes=names, positive=names[place])
    assert fitted.positive_ == place
    probs, y = fitted.predict_proba(NEW.logits), np.array(names)[NEW.labels]
    own = fitted.automate(NEW.logits, y, 0.4, positive=names[place]).automation_
    plain = automate(probs, y, 0.4, positive=names[place], classes=names)
    assert own.positive == plain.positive == place
    assert own.threshold == plain.threshold
    assert own.positive_name == str(names[place])
    test = metrics.spiegelhalter(probs, y, class_=names[place], classes=names)
    assert test == metrics.spiegelhalter(probs, NEW.labels, class_=place)
    assert check_class("positive", str(names[place]), names, 3) == place  # as on a command line


def test_a_whole_number_is_a_column_only_where_it_cannot_be_a_name():
    for names in (None, ("a", "b", "c"), ("0", "1", "2")):
        assert check_class("positive", 2, names, 3) == check_class("positive", "2", names, 3) == 2
    with pytest.raises(InputError, match="positive must be one of '3', '5', '7'; found 1"):
        check_class("positive", 1, ("3", "5", "7"), 3)
    for names in (("1", "01", "x"), ("1", "2", "x")):
        with pytest.raises(
            InputError, match=r"positive must be text where .* two of the classes .*; found 1"
        ):
            check_class("positive", 1, names, 3)
    with pytest.raises(InputError, match="a column from 0 to 2 where columns have no names; found 'cat'"):
        check_class("positive", "cat", None, 3)


def test_two_names_of_one_number_need_text():
    y = TASK.labels + 1
    with pytest.raises(InputError, match=r"labels must be text .* '1', '01', '2'; found 1 in \d+ rows") as e:
        TemperatureScaling().fit(TASK.logits, y, classes=["1", "01", "2"])
    assert str(e.value).endswith("Pass the names as text.")
    words = np.array(["1", "01", "2"])[TASK.labels]
    fitted = TemperatureScaling().fit(TASK.logits, words, classes=["1", "01", "2"])
    assert fitted.temperature_ == TemperatureScaling().fit(TASK.logits, TASK.labels).temperature_
    assert resolve("labels", np.array([2, 0]), ("1", "01", "2"), 3).tolist() == [2, -1]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("order", ORDERS)
def test_check_refuses_columns_in_another_order_and_keeps_its_history(library, order, cal, tmp_path):
    shuffled, history = framed(NEW_FRAME[order], library), tmp_path / "history.jsonl"
    with pytest.raises(InputError, match="found another order") as caught:
        monitoring.check(cal, shuffled, NEW_WORDS, history=history)
    assert not history.exists() or not history.read_text()
    remedy = str(caught.value).rpartition("Pass ")[2].rstrip(".")
    found = monitoring.check(cal, eval(remedy, {"logits": shuffled, "cal": cal}), NEW_WORDS)
    assert found.action == monitoring.check(cal, NEW_FRAME, NEW_WORDS).action != "refit"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("order", ORDERS)
def test_classes_select_the_columns_of_a_frame_as_of_a_file(library, order, cal, tmp_path):
    wider = framed(FRAME.assign(age=np.arange(400.0)), library)
    chosen = TemperatureScaling().fit(wider, WORDS, classes=order)
    assert chosen.temperature_ == pytest.approx(cal.temperature_, rel=1e-9)
    assert list(chosen.class_names_) == list(chosen.feature_names_in_) == order
    probs = framed(PROBS, library)
    assert metrics.nll(probs, WORDS, classes=order) == pytest.approx(metrics.nll(PROBS, WORDS), rel=1e-12)
    rule = automate(probs, WORDS, 0.4, positive="bee", classes=order)
    assert rule.positive == order.index("bee")
    assert rule.threshold == automate(PROBS, WORDS, 0.4, positive="bee").threshold
    result = compare(wider, WORDS, framed(NEW_FRAME, library), NEW_WORDS, ["ts"], draws=5, classes=order)
    assert result.class_names == tuple(order)
    FRAME.assign(label=WORDS).to_csv(tmp_path / "rows.csv", index=False)
    rows = open_rows(tmp_path / "rows.csv", kind="logits", classes=order)
    of_file = TemperatureScaling().fit(rows.logits(), rows.named(rows.labels), classes=rows.class_names)
    assert of_file.temperature_ == pytest.approx(chosen.temperature_, rel=1e-9)


def test_classes_that_no_column_has_are_new_names_and_some_are_an_error(cal):
    fitted = TemperatureScaling().fit(FRAME.set_axis(["c0", "c1", "c2"], axis=1), WORDS, classes=NAMES)
    assert (fitted.class_names_, fitted.temperature_) == (tuple(NAMES), cal.temperature_)
    with pytest.raises(InputError, match=r"none is named 'dog'\. Correct classes"):
        TemperatureScaling().fit(FRAME, WORDS, classes=["ant", "bee", "dog"])


def test_the_numbers_of_a_frame_cannot_choose_and_name_its_columns():
    numbered = pd.DataFrame(TASK.logits)
    codes = np.array([2, 0, 1])
    with pytest.raises(InputError, match="could choose columns by their numbers, or be names of them"):
        TemperatureScaling().fit(numbered, codes[TASK.labels], classes=codes)
    fitted = TemperatureScaling().fit(numbered, TASK.labels + 1, classes=[1, 2, 3])
    assert fitted.class_names_ == ("1", "2", "3")


def test_a_column_is_named_once(cal):
    twice = FRAME.set_axis(["ant", "ant", "cat"], axis=1)
    for use in (
        lambda: TemperatureScaling().fit(twice, TASK.labels),
        lambda: metrics.ece(PROBS.set_axis(["ant", "ant", "cat"], axis=1), TASK.labels),
        lambda: cal.predict_proba(twice),
    ):
        with pytest.raises(InputError, match="must name each class once; found 'ant' more than once"):
            use()


@pytest.mark.parametrize("names", [[2, 0, 1], ["2", "0", "1"]])
def test_numbered_columns_in_another_order_are_refused_after_a_fit_to_numbered_columns(names, tmp_path):
    plain = TemperatureScaling().fit(pd.DataFrame(TASK.logits), TASK.labels)
    plain.save(tmp_path / "cal.json")
    shuffled = pd.DataFrame(TASK.logits).set_axis(list(map(type(names[0]), range(3))), axis=1)[names]
    for one in (plain, load(tmp_path / "cal.json"), serving.load(tmp_path / "cal.json")):
        with pytest.raises(InputError, match=r"found another order: '2', '0', '1'\. Pass logits\.iloc") as e:
            one.predict_proba(shuffled)
        remedy = str(e.value).rpartition("Pass ")[2].rstrip(".")
        ordered = eval(remedy, {"logits": shuffled})
        np.testing.assert_array_equal(one.predict_proba(ordered), plain.predict_proba(TASK.logits))
        assert one.predict_proba(FRAME).shape == (400, 3)  # names for columns without any
    named = TemperatureScaling().fit(shuffled, TASK.labels)
    assert named.class_names_ == ("2", "0", "1")
    assert named.temperature_ == pytest.approx(plain.temperature_, rel=1e-9)
    with pytest.raises(InputError, match="found another order: '0', '1', '2'"):
        named.predict_proba(pd.DataFrame(TASK.logits))


def test_a_frame_is_read_as_the_same_rows_in_a_file(tmp_path):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = np.array([3, 5, 7])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    model = LogisticRegression().fit(X, y)
    probs = pd.DataFrame(model.predict_proba(X), columns=model.classes_)
    assert metrics.accuracy(probs, y) == model.score(X, y)
    probs.assign(label=y).to_csv(tmp_path / "rows.csv", index=False)
    rows = open_rows(tmp_path / "rows.csv", kind="probs")
    assert metrics.accuracy(rows.array(), rows.named(rows.labels), classes=rows.class_names) == model.score(
        X, y
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_headers_with_a_stem_are_classes_and_logarithms_keep_them(library):
    task = simulate(n_rows=300, n_classes=2, random_state=0)
    words = np.array(["default", "paid"])[task.labels]
    headers = ["prob_default", "prob_paid"]
    frame = framed(pd.DataFrame(task.probabilities, columns=headers), library)
    fitted = TemperatureScaling().fit(frame, words, from_probs=True)
    assert fitted.class_names_ == ("default", "paid")
    logits = logits_from_probs(frame)
    assert type(logits) is type(frame)
    assert list(getattr(logits, "column_names", logits.columns)) == headers
    again = TemperatureScaling().fit(logits, words)
    assert (again.temperature_, again.class_names_) == (fitted.temperature_, fitted.class_names_)
    reverse = framed(pd.DataFrame(task.probabilities[:, ::-1], columns=headers[::-1]), library)
    with pytest.raises(InputError, match="found another order: 'paid', 'default'") as caught:
        fitted.predict_proba(reverse, from_probs=True)
    remedy = str(caught.value).rpartition("Pass ")[2].rstrip(".")
    ordered = eval(remedy, {"logits": reverse})
    np.testing.assert_array_equal(
        fitted.predict_proba(ordered, from_probs=True), fitted.predict_proba(frame, from_probs=True)
    )
    assert metrics.nll(reverse, words) == metrics.nll(frame, words)
    with pytest.raises(InputError, match="found 'prob_default', 'prob_paid' among other columns: 'age'"):
        metrics.nll(pd.DataFrame(task.probabilities, columns=headers).assign(age=0.0), words)
    numbered = pd.DataFrame(task.probabilities, columns=["prob_0", "prob_1"])
    assert not hasattr(TemperatureScaling().fit(numbered, task.labels, from_probs=True), "class_names_")


def test_records_with_their_classes_in_another_order_are_put_in_order(run_command, cal, tmp_path):
    cal.save(tmp_path / "cal.json")
    scores = FRAME[["cat", "ant", "bee"]].to_dict("records")
    lines = [json.dumps({"logits": row, "label": word}) for row, word in zip(scores, WORDS, strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    rows = open_rows(tmp_path / "rows.jsonl", classes=NAMES)
    np.testing.assert_array_equal(rows.array(), TASK.logits)
    assert rows.labels.tolist() == TASK.labels.tolist()
    names = (tmp_path / name for name in ("cal.json", "rows.jsonl", "probs.npy"))
    calibrator, given, out = map(str, names)
    assert run_command("apply", calibrator, given, "-o", out)[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "probs.npy"), cal.predict_proba(FRAME), rtol=1e-6)


def test_labels_that_are_minus_one_and_one_are_named_and_the_remedy_works():
    task = simulate(n_rows=300, n_classes=2, random_state=0)
    signs = 2 * task.labels - 1
    with pytest.raises(InputError, match=r"found -1 and 1\. .* Pass classes=\[-1, 1\]"):
        TemperatureScaling().fit(task.logits, signs)
    fitted = TemperatureScaling().fit(task.logits, signs, classes=[-1, 1])
    assert fitted.temperature_ == TemperatureScaling().fit(task.logits, task.labels).temperature_
    assert fitted.class_names_ == ("-1", "1")
