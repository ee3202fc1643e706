"""Input that no correct program writes is refused with a sentence and exit code 2, never as a bug of ours."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from temperance import BinwiseTemperatureScaling, InputError
from temperance.errors import MAX_EXCERPT, excerpt, on_one_line
from temperance.study.protocol import FitKey, Score
from temperance.study.results import Results
from temperance.study.store import FILE_NAME, ResultStore
from temperance.study.tasks import TaskFile

DIGITS, NESTED = "1" * 5000, "[" * 600 + "]" * 600


def test_a_class_number_with_thousands_of_digits_in_a_column_name_is_refused(command):
    Path("rows.csv").write_text(f"logit_0,logit_{DIGITS},label\n1,2,0\n3,4,1\n")
    command("fit", "rows.csv", "-m", "ts", "-o", "cal.json").refused("all have numbers, or all names")


@pytest.mark.parametrize("value", [DIGITS, "9" * 30, "1e999", NESTED, "10001", "10000000"])
def test_an_impossible_number_of_bins(value, command):
    ended = command("fit", "rows.npz", "-m", "bts", "--set", f"bins={value}", "-o", "cal.json")
    ended.refused("bins must be a whole number from 2 to 10000; found")
    command("evaluate", "rows.npz", "--input", "logits", "--bins", 10_000_000).refused("--bins")


def test_a_number_of_bins_with_too_many_digits_is_refused(task):
    with pytest.raises(InputError, match="found a very long int"):
        BinwiseTemperatureScaling(bins=10**5000).fit(task.logits, task.labels)


def test_an_excerpt_is_short_and_on_one_line():
    assert excerpt("a\nb\x1b") == repr("a\nb\x1b")
    assert excerpt("x" * 999) == f"'{'x' * (MAX_EXCERPT - 1)}..."
    assert excerpt(np.zeros((3, 3))).count("\n") == 0
    assert on_one_line("a\nb\x1b[31mü") == r"a\nb\x1b[31mü"


SCORE = Score(FitKey("a__b", 20, 0, "ts"), 0.1, 0.2, 0.3, 0.4, True, 7, "", 0.5, 0.6)
SPOILED = {
    "no seed": "DELETE FROM setting WHERE name = 'seed'",
    "a seed of words": "UPDATE setting SET value = 'abc' WHERE name = 'seed'",
    "a seed of a superscript": "UPDATE setting SET value = '²' WHERE name = 'seed'",
    "a seed of thousands of digits": f"UPDATE setting SET value = '{DIGITS}' WHERE name = 'seed'",
    "text that is no UTF-8": "UPDATE score SET message = CAST(x'ff' AS TEXT)",
    "bytes for a number": "UPDATE score SET nll = x'00'",
    "words for a number": "UPDATE score SET nll = 'low'",
    "words for a count": "UPDATE task SET rows = 'many'",
    "a null path": (
        "DROP TABLE task; CREATE TABLE task (name, path, sha256, rows, test_rows, classes, options);"
        "INSERT INTO task VALUES ('a__b', NULL, '0', 50, 50, 3, '{}')"
    ),
    "a column less": "DROP TABLE task; CREATE TABLE task (name, path); INSERT INTO task VALUES ('a__b', 'p')",
    "a size of words": "DROP TABLE size; CREATE TABLE size (n); INSERT INTO size VALUES ('ten')",
    "another table of scores": "DROP TABLE score; CREATE TABLE score (other)",
    "options that are not JSON": "UPDATE task SET options = '{'",
    "options of other names": """UPDATE task SET options = '{"colour": 1}'""",
}


@pytest.mark.parametrize("statements", SPOILED.values(), ids=SPOILED)
def test_a_damaged_store_gives_one_sentence(statements, command):
    store = ResultStore.create("study", 0)
    store.add_tasks([TaskFile("a__b", Path("a.npz"), "0", 50, 50, 3)], [20])
    store.add([SCORE])
    assert list(Results("study").scores["nll"]) == [SCORE.nll]
    connection = sqlite3.connect(Path("study") / FILE_NAME)
    connection.executescript(statements)
    connection.close()
    with pytest.raises(InputError, match=r"results\.sqlite must"):
        Results("study")
    command("study", "table", "study", "--metric", "nll", "--n", 20).refused("results.sqlite must")


def test_onnx_with_invalid_text_or_an_invalid_type_is_refused(tmp_path, fitted):
    onnx = pytest.importorskip("onnx")
    from temperance.onnx import append_to_onnx

    helper, path = onnx.helper, tmp_path / "classifier.onnx"

    def write(element=onnx.TensorProto.FLOAT):
        table = [
            helper.make_tensor_value_info(name, kind, ["b", 4]) for name, kind in (("x", 1), ("y", element))
        ]
        node = helper.make_node("Identity", ["x"], ["y"], name="PASSES_ON")
        graph = helper.make_graph([node], "g", table[:1], table[1:])
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()

    def refused(content, words):
        path.write_bytes(content)
        with pytest.raises(InputError, match=words):
            append_to_onnx(fitted("ts"), path, tmp_path / "out.onnx", kind="logits")
        assert [file.name for file in tmp_path.iterdir()] == [path.name]

    refused(write().replace(b"PASSES_ON", b"\xff\xfeSSES_ON"), "valid ONNX model; ONNX says: .*UTF-8")
    refused(write().replace(b"Identity", b"Identit\xff"), "valid ONNX model")
    refused(write(element=99), "must be floats .*found a tensor of the unknown type 99")
    path.write_bytes(write())
    assert append_to_onnx(fitted("ts"), path, tmp_path / "out.onnx", kind="logits") == "probabilities"
