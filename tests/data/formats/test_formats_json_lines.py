"""JSON Lines in general: lists, objects by class, and tables."""

import gzip
import json

import numpy as np
import pandas
import pytest

from temperance import InputError
from temperance.data import open_rows

LOGITS = np.array([[0.5, 1.5, -2.0], [3.0, 0.25, 1.0], [0.0, 0.0, 4.0]])
LABELS = [1, 0, 2]
NAMES = ["cat", "dog", "owl"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "val.jsonl"


def save(path, lines):
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def lists(labels=LABELS):
    rows = zip(LOGITS.tolist(), labels, strict=True)
    return [{"id": n, "logits": row, "label": label} for n, (row, label) in enumerate(rows)]


def test_lists_and_blank_lines(path):
    rows = open_rows(save(path, [*lists(), "", "  "]))
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    assert rows.labels.tolist() == LABELS


def test_objects_by_class_name_their_columns_in_any_order(path):
    probs = [
        {"probs": {"cat": 0.25, "dog": 0.75}, "label": "dog"},
        {"probs": {"dog": 0.5, "cat": 0.5}, "label": "cat"},
    ]
    rows = open_rows(save(path, probs))
    assert (rows.kind, rows.class_names) == ("probs", ("cat", "dog"))
    assert rows.array().tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert rows.labels.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["val.jsonl", "val.ndjson", "val.jsonl.gz", "val.NDJSON.GZ"])
def test_a_table_that_pandas_wrote(tmp_path, name):
    frame = pandas.DataFrame(LOGITS, columns=["logit_0", "logit_1", "logit_2"]).assign(label=LABELS, text="x")
    text = frame.to_json(orient="records", lines=True).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.lower().endswith(".gz") else text)
    rows = open_rows(tmp_path / name)
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    assert rows.labels.tolist() == LABELS


def test_a_score_of_a_binary_classifier_and_whole_labels(path):
    rows = open_rows(save(path, [{"prob": 0.25, "label": 1.0}, {"prob": 1, "label": 0}]))
    assert rows.array().tolist() == [0.25, 1.0]
    assert rows.labels.tolist() == [1, 0]


def test_an_impossible_class_has_minus_infinity(path):
    save(path, ['{"logits": [0.5, -Infinity], "label": 0}'])
    assert open_rows(path).logits().tolist() == [[0.5, -np.inf]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            '{"logits": [1, 2], "label": 0}',
            "'logits' must be a list of 3 numbers, as in the first record; found 2",
        ),
        ('{"logits": [1, NaN, 3], "label": 0}', "logits must hold numbers in the range of floats; found NaN"),
        ('{"logits": [1, "2", 3], "label": 0}', 'logits must hold numbers in the range of floats; found "2"'),
        (
            '{"logits": [1, true, 3], "label": 0}',
            "logits must hold numbers in the range of floats; found true",
        ),
        (
            '{"logits": [1, 1e999, null], "label": 0}',
            "logits must hold numbers in the range of floats; found null",
        ),
        (
            '{"logits": [1, 2, 1' + "0" * 400 + '], "label": 0}',
            "must hold numbers in the range of floats; found 1000",
        ),
        ('{"logits": null, "label": 0}', "'logits' must be on every line; found null"),
        ('{"label": 0}', "'logits' must be on every line; found only label"),
        ('{"logits": [1, 2, 3]}', "'label' must be on every line; found only logits"),
        ('{"logits": [1, 2, 3], "label": "cat"}', "the index of a class, a whole number, as in the first"),
        ('{"logits": [1, 2, 3], "label": 0.5}', "a whole number, as in the first record; found 0.5"),
        (
            '{"logits": [1, 2, 3], "label": Infinity}',
            "a whole number, as in the first record; found Infinity",
        ),
        ('{"logits": [1, 2, 3], "label": 0', "must be a JSON object, as every line of JSON Lines; found"),
        ("[1, 2, 3]", "must be a JSON object"),
        ("[" * 100_000, "must be a JSON object"),
        ("\ufffd\ufffe", "must be a JSON object"),
    ],
)
def test_a_bad_line_is_named(path, line, words):
    save(path, [*lists()[:2], line])
    with pytest.raises(InputError) as caught:
        open_rows(path).logits()
    assert "line 3" in str(caught.value)
    assert words in str(caught.value)


def test_a_list_of_objects_is_not_json_lines(path):
    path.write_text(json.dumps(lists(), indent=1))
    with pytest.raises(InputError, match=r"line 1 must be a JSON object.*orient='records', lines=True"):
        open_rows(path)


def test_another_class_than_those_of_the_first_record(path):
    save(path, [{"probs": {"cat": 0.5, "dog": 0.5}, "label": "cat"}, {"probs": {"cat": 1.0}, "label": "cat"}])
    with pytest.raises(InputError, match=r"line 2: 'probs' must have one number per class .* 'cat', 'dog'"):
        open_rows(path).array()


def test_fields_of_text_without_named_scores(path):
    save(path, [{"text": "hello", "score": 0.5, "label": 1}])
    with pytest.raises(InputError, match="column 'text' must hold numbers; found \"hello\" in line 1"):
        open_rows(path, kind="probs")
    save(path, [{"meta": {"a": 1}, "score": 0.5, "label": 1}])
    with pytest.raises(
        InputError, match=r"line 1: 'meta' must hold a number; found .* Name the scores logits"
    ):
        open_rows(path, kind="probs")


def test_blank_lines_only_and_a_damaged_gzip(tmp_path):
    packed = gzip.compress("".join(json.dumps(line) + "\n" for line in lists()).encode())
    for name, content, words in (
        ("val.jsonl", b"\n\n", "has only blank lines"),
        ("val.jsonl.gz", packed[:-12], "is not a gzip file, or is damaged"),
        ("val.jsonl.gz", b"no gzip at all", "is not a gzip file, or is damaged"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=words):
            open_rows(tmp_path / name)


@pytest.mark.parametrize(
    "line",
    [
        '{"logits": [0.5, 1.5], "label": 0, "logits": [3.0, 0.25]}',
        '{"logits": {"cat": 0.5, "dog": 1.5, "cat": 3.0}, "label": "cat"}',
    ],
)
def test_a_key_that_occurs_twice_in_a_record_is_refused(path, line):
    other = line.replace(', "logits": [3.0, 0.25]', "").replace(', "cat": 3.0', "")
    key = "cat" if "cat" in line else "logits"
    with pytest.raises(InputError, match=rf"line 2: a field must occur once; found '{key}' more than once\."):
        open_rows(save(path, [other, line])).logits()


def test_records_by_class_are_read_in_the_order_that_the_user_names(path):
    records = [
        {"logits": dict(zip(NAMES, row, strict=True)), "label": NAMES[label]}
        for row, label in zip(LOGITS.tolist(), LABELS, strict=True)
    ]
    rows = open_rows(save(path, records), classes=["owl", "cat", "dog"])
    np.testing.assert_array_equal(rows.logits(), LOGITS[:, [2, 0, 1]])
    assert rows.labels.tolist() == [(label + 1) % 3 for label in LABELS]
    with pytest.raises(InputError, match=r"none is named 'eel'\. Correct classes"):
        open_rows(path, classes=["owl", "cat", "eel"])
