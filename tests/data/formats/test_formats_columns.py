"""Which columns of a table are scores, labels and ids: none is shifted, dropped or confused with another."""

import json
import shlex

import numpy as np
import openpyxl
import pytest

from temperance import InputError
from temperance.cli.output import as_option
from temperance.data import open_rows
from temperance.data.formats import open_members
from temperance.data.formats.columns import joined
from temperance.data.read_options import ReadOptions


@pytest.fixture
def csv(tmp_path):
    def write(content, name="val.csv"):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def table(csv, tmp_path):
    """Return a function that writes rows of cells in a format."""

    def write(suffix, names, *rows, stem="val"):
        path = tmp_path / f"{stem}.{suffix}"
        if suffix == "csv":
            return csv("".join(",".join(map(str, row)) + "\n" for row in (names, *rows)), path.name)
        if suffix == "jsonl":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
            return csv("\n".join(lines), path.name)
        book = openpyxl.Workbook()
        for row in (names, *rows):
            book.active.append(row)
        book.save(path)
        return path

    return write


ANY_TABLE = pytest.mark.parametrize("suffix", ["csv", "jsonl", "xlsx"])


def refusal(path, **options):
    with pytest.raises(InputError) as caught:
        open_rows(path, **options).array()
    return str(caught.value)


# ---- quotes


@pytest.mark.parametrize("blank", ["", " "])
def test_a_quoted_cell_after_a_space_does_not_shift_columns(csv, blank):
    path = csv(f'label, note, logit_0, logit_1\n0,{blank}"a, 7, 5, b", 1, 2\n1, plain,{blank}"3", 4\n')
    rows = open_rows(path)
    assert rows.array().tolist() == [[1, 2], [3, 4]]
    assert rows.labels.tolist() == [0, 1]


def test_quoted_ids_and_labels_are_whole(csv):
    path = csv('label, image, logit_cat, logit_a b\n"a b", "x, 1", 1, 2\n cat , "x, 2", 3, 4\n')
    rows = open_rows(path, id_column="image")
    assert rows.ids.tolist() == ["x, 1", "x, 2"]
    assert rows.labels.tolist() == [1, 0]


@pytest.mark.parametrize("cell", ["1_000", '"1_000"'])
def test_a_number_that_only_python_accepts_is_not_a_number_in_a_table(csv, cell):
    path = csv(f"logit_0,logit_1\n{cell},2\n")
    assert "line 2, column 'logit_0' must hold a number; found '1_000'" in refusal(path, need_labels=False)


@pytest.mark.parametrize("mark", [".", ","])
def test_full_width_digits_are_digits(csv, mark):
    path = csv(f"logit_0;logit_1;label\n1{mark}5;-2{mark}5;1\n\uff11{mark}\uff12\uff15;\uff13;0\n")
    assert open_rows(path).logits().tolist() == [[1.5, -2.5], [1.25, 3.0]]


def test_a_name_that_looks_like_a_number_is_not_a_number_among_labels(csv):
    rows = open_rows(csv("1_0,2_0,label\n1,2,2_0\n3,4,1_0\n"), kind="logits")
    assert (rows.class_names, rows.labels.tolist()) == (("1_0", "2_0"), [1, 0])


def test_quoted_decimal_commas(csv):
    path = csv('logit_0;logit_1;note\n"1,5"; "2";"a;b"\n3;4,25;\n')
    assert open_rows(path, need_labels=False).array().tolist() == [[1.5, 2], [3, 4.25]]


# ---- names of the scores


def test_a_single_number_among_names_is_no_choice_of_classes(table):
    path = table("csv", [f"logit_{name}" for name in ("cat", "7", "dog")], [1, 2, 3])
    assert refusal(path, need_labels=False).endswith("Pass classes='cat,7,dog'.")


@pytest.mark.parametrize(
    ("names", "numbers"),
    [(["0", "1", "A"], "0,1"), (["cat", "7", "8"], "7,8"), (["0", "x", "1"], "0,1")],
)
def test_numbers_among_names_are_not_chosen_silently(table, names, numbers):
    path = table("csv", [f"logit_{name}" for name in names], [1, 2, 3])
    message = refusal(path, need_labels=False)
    assert "columns of logits must all have numbers, or all names; found 'logit_" in message
    assert message.endswith(f"Pass classes='{numbers}' or classes='{','.join(names)}'.")
    for chosen in (numbers, ",".join(names)):
        rows = open_rows(path, need_labels=False, classes=chosen)
        wanted = chosen.split(",")
        assert rows.class_names == tuple(wanted)
        assert rows.array().tolist() == [[names.index(name) + 1 for name in wanted]]


def test_a_number_keeps_its_spelling(csv):
    rows = open_rows(csv("logit_01,logit_02,label\n1,2,02\n3,4,01\n"))
    assert (rows.class_names, rows.labels.tolist()) == (("01", "02"), [1, 0])
    rows = open_rows(csv("logit_01,logit_00,label\n1,2,00\n3,4,01\n"))
    assert (rows.class_names, rows.labels.tolist()) == (None, [0, 1])
    assert rows.array().tolist() == [[2, 1], [4, 3]]


@pytest.mark.parametrize("names", ["logit_0,logit_1,logit_01", "logit_cat,logit_dog,logits_dog"])
def test_two_columns_of_a_class(csv, names):
    assert "are the same. Drop one." in refusal(csv(f"{names}\n1,2,3\n"), need_labels=False)


def test_classes_may_be_given_for_a_column_of_lists(csv):
    path = csv('{"logits": [0.8, 0.2, 1], "label": "cat"}\n', "val.jsonl")
    rows = open_rows(path, classes="dog,cat,owl")
    assert (rows.class_names, rows.labels.tolist()) == (("dog", "cat", "owl"), [1])
    assert "classes must be 3 different names, one per class; found 2" in refusal(path, classes="dog,cat")
    single = csv("logit,label\n1,cat\n")
    assert open_rows(single, classes="dog,cat").labels.tolist() == [1]
    assert "classes must be 2 different names, one per class; found 3" in refusal(single, classes="a,b,cat")


# ---- labels


@pytest.mark.parametrize(
    ("names", "row"),
    [
        (["file", "source", "label"], ["a", "b", 1]),
        (["label", "", "x"], [1, 5, 6]),
        (["logit_1", "logit_x", "label"], [5, 6, 1]),
    ],
)
@ANY_TABLE
def test_a_file_of_labels_may_hold_anything_else(table, csv, suffix, names, row):
    labels = table(suffix, names, row, stem="truth")
    assert open_rows(csv("logit_0,logit_1\n1,2\n"), labels=labels).labels.tolist() == [1]


def test_a_file_of_labels_with_two_possible_label_columns_is_refused(csv):
    scores, labels = csv("logit_0,logit_1\n1,2\n"), csv("y,label\n0,1\n", "truth.csv")
    assert "Pass label_column='y' or label_column='label'." in refusal(scores, labels=labels)
    assert open_rows(scores, labels=labels, label_column="label").labels.tolist() == [1]


@ANY_TABLE
def test_a_table_without_labels_lists_all_its_columns(table, csv, suffix):
    names, row = ["logit_0", "logit_1", "who", "answer"], [1, 2, "me", 0]
    wanted = "must have a column of labels; found 'logit_0', 'logit_1', 'who', 'answer'. Pass label_column="
    assert wanted in refusal(table(suffix, names, row))
    labels = table(suffix, names, row, stem="truth")
    assert wanted in refusal(csv("logit_0,logit_1\n1,2\n"), labels=labels)


def test_records_of_lists_without_labels_list_their_fields(csv):
    path = csv('{"logits": [1, 2], "answer": 1}\n', "val.jsonl")
    assert "found 'logits', 'answer'. Pass label_column='NAME'." in refusal(path)


def test_samples_that_cannot_be_read_say_why_as_labels_too(csv):
    path = csv('{"resps": [], "target": 1}\n', "samples.jsonl")
    message = refusal(csv("logit_0,logit_1\n1,2\n"), labels=path)
    assert "samples.jsonl" in message
    assert "'resps' must be a list with one entry per answer" in message


@ANY_TABLE
def test_labels_may_be_true_and_false_alone(table, suffix):
    names = ["prob", "label"]
    path = table(suffix, names, [0.25, True], [0.5, False])
    assert open_members(path)["labels"].labels().dtype == np.bool_
    assert open_rows(path).labels.tolist() == [1, 0]
    for first, second in ((True, 1), (0, False), (1, True), (True, "x"), ("x", True)):
        assert "label" in refusal(table(suffix, names, [0.25, first], [0.5, second]))


@ANY_TABLE
def test_a_label_that_no_float_holds_exactly(table, suffix):
    names = ["logit_0", "logit_1", "label"]
    assert open_rows(table(suffix, names, [1, 2, 1.0])).labels.tolist() == [1]
    assert "'label' must " in refusal(table(suffix, names, [1, 2, 2**53 + 2]))


# ---- remedies


@ANY_TABLE
def test_a_column_of_text_may_name_the_rows(table, suffix):
    path = table(suffix, ["image", "cat", "dog"], ["a", 1, 2])
    message = refusal(path, need_labels=False)
    assert "column 'image' must hold numbers; found " in message
    advice = (
        "If it holds the labels or names the rows, say so. Pass label_column='image' or id_column='image'."
    )
    assert message.endswith(advice)
    rows = open_rows(path, need_labels=False, id_column="image", kind="logits")
    assert (rows.array().tolist(), rows.ids.tolist()) == ([[1, 2]], ["a"])


@pytest.mark.parametrize("identifier", ["image", ""])
@ANY_TABLE
def test_rows_have_one_name(table, suffix, identifier):
    path = table(suffix, [identifier, "who", "cat", "dog"], [5, "a", 1, 2])
    options = {"need_labels": False, "kind": "logits", "id_column": identifier or None}
    message = refusal(path, **options)
    assert message.endswith("If it holds the labels, say so. Pass label_column='who' or classes='cat,dog'.")
    assert open_rows(path, classes="cat,dog", **options).array().tolist() == [[1, 2]]


@ANY_TABLE
def test_too_few_columns_of_numbers_to_be_classes(table, suffix):
    path = table(suffix, ["who", "where", "score"], ["a", "b", 1])
    message = refusal(path, need_labels=False, kind="logits")
    assert "column 'who' must hold numbers" in message
    assert message.endswith(
        "Name a column of scores logit or prob, several logit_0, logit_1; others are ignored."
    )
    renamed = table(suffix, ["who", "where", "logit"], ["a", "b", 1])
    assert open_rows(renamed, need_labels=False).array().tolist() == [1]


def test_text_further_down_is_a_cell_to_correct(table):
    path = table("xlsx", ["cat", "dog"], [1, 2], [3, "n/a"])
    assert "row 3, column 'dog' must hold a number; found 'n/a'. Correct it" in refusal(
        path, need_labels=False, kind="logits"
    )


def test_ids_without_a_name_are_in_the_first_column_whatever_else_has_none(csv):
    rows = open_rows(
        csv(",cat,dog,\nx,1,2,7\ny,3,4,8\n"), kind="logits", classes="cat,dog", need_labels=False
    )
    assert rows.ids.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("cell", "is_name"), [("01", True), ("007", True), ("0", False), ("11", False), ("0a", True)]
)
def test_labels_are_names_if_all_are_among_them_or_one_is_no_number(csv, cell, is_name):
    path = csv(f"logit_01,logit_007,logit_10,label\n1,2,3,10\n1,2,3,{cell}\n")
    assert (open_members(path)["labels"].labels().dtype.kind == "U") == is_name


@pytest.mark.parametrize(("names", "place"), [("label,cat,dog,", 4), (",cat,,dog", 3), ("label,,cat,dog", 2)])
def test_a_column_without_a_name_is_reported_by_its_position(csv, names, place):
    path = csv(f"{names}\n1,1,1,1\n")
    message = refusal(path, need_labels=False, kind="logits")
    assert f"column {place} has none. Name it, or drop it. Pass classes='cat,dog'." in message
    assert open_rows(path, need_labels=False, kind="logits", classes="cat,dog").shape == (1, 2)


def test_names_with_commas_are_not_joined():
    assert joined(["cat", "dog"]) == "cat,dog"
    assert joined(["cat, black", "dog"]) == "NAMES"
    assert as_option("classes", "NAMES") == "--classes @FILE, a file with one name on each line"


@pytest.mark.parametrize("value", ["image id", "it's", "$HOME", "plain"])
def test_a_shell_takes_the_value_of_an_option_as_it_is(value):
    assert shlex.split(as_option("id_column", value)) == ["--id-column", value]
    assert shlex.split(as_option("classes", [value, "b"])) == ["--classes", f"{value},b"]


@ANY_TABLE
def test_groups_and_the_values_to_score_by_are_columns_of_any_kind(table, suffix):
    rows = (["cat", 1.5, 0.5, "anna", 3], ["dog", 0.5, 1.5, "ben", 4])
    path = table(suffix, ["label", "cat", "dog", "patient", "site"], *rows)
    opened = open_rows(path, kind="logits", group_column="patient", by="site")
    assert opened.class_names == ("cat", "dog")
    assert opened.groups.tolist() == ["anna", "ben"]
    assert opened.by.astype(str).tolist() == ["3", "4"]
    message = refusal(path, kind="logits", group_column="ward")
    assert "must have the column 'ward'" in message


@ANY_TABLE
def test_a_column_called_groups_has_the_groups(table, suffix):
    path = table(suffix, ["label", "logit_0", "logit_1", "groups"], [0, 1.5, 0.5, 8], [1, 0.5, 1.5, 9])
    assert open_rows(path).groups.astype(int).tolist() == [8, 9]


@ANY_TABLE
def test_labels_that_are_read_alone_are_one_number_per_row(table, suffix):
    path = table(suffix, ["note", "label"], ["a", 1], ["b", 0])
    assert open_members(path, ReadOptions(labels_only=True))["labels"].shape == (2,)
