"""Each file of the table in docs/data-files.md is read as it says, or refused with advice that works."""

import numpy as np
import pytest
from door_files import BEGIN, END, FILES, LABELS, LOGITS, PAGE, table

from temperance import InputError
from temperance.data import open_rows

READ = [made for made in FILES if not made.refused or made.classes is not None]
REFUSED = [made for made in FILES if made.refused]


@pytest.mark.parametrize("made", READ, ids=lambda made: made.by)
def test_it_is_read_as_the_docs_say(made, tmp_path):
    path = tmp_path / made.name
    made.write(path)
    rows = open_rows(path, **made.options)
    if rows.kind == "logits":
        np.testing.assert_array_equal(rows.logits(), LOGITS)
    blocks = np.concatenate(list(rows.blocks(3)))
    np.testing.assert_array_equal(blocks, rows.array())
    assert rows.class_names == made.classes
    assert rows.labels.tolist() == made.labels
    assert (None if rows.ids is None else rows.ids.astype(str).tolist()) == made.ids


@pytest.mark.parametrize("made", REFUSED, ids=lambda made: made.by)
def test_it_is_refused_with_advice(made, tmp_path):
    path = tmp_path / made.name
    made.write(path)
    with pytest.raises(InputError) as caught:
        open_rows(path, kind=made.options.get("kind")).array()
    message = str(caught.value)
    assert str(path) in message
    for words in made.refused:
        assert words in message, message


def test_the_docs_have_the_table():
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == table()


# ---- what the table does not say


def text(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def refused(path, *words, **options):
    with pytest.raises(InputError) as caught:
        open_rows(path, **options).array()
    for word in words:
        assert word in str(caught.value), caught.value


@pytest.fixture
def csv(tmp_path):
    return lambda content: text(tmp_path / "val.csv", content)


def test_a_column_that_may_be_labels_is_a_class_only_if_named(csv):
    path = csv("cat,dog,y,label\n1,2,3,cat\n4,5,6,dog\n")
    refused(path, "found 'y' and 'label'. Pass label_column='y' or label_column='label'.", kind="logits")
    named = {"kind": "logits", "label_column": "label"}
    refused(path, "column 'y' might be a class", "Pass classes='cat,dog' or classes='cat,dog,y'.", **named)
    assert open_rows(path, classes="cat,dog", **named).array().tolist() == [[1, 2], [4, 5]]
    assert open_rows(path, classes="cat,dog,y", **named).class_names == ("cat", "dog", "y")


def test_the_classes_that_are_named_are_the_columns_in_that_order(csv):
    path = csv("cat,dog,age,label\n1,2,70,cat\n4,5,80,dog\n")
    rows = open_rows(path, kind="logits", classes=["dog", "cat"])
    assert rows.array().tolist() == [[2, 1], [5, 4]]
    assert rows.labels.tolist() == [1, 0]
    refused(path, "none is named 'owl'", kind="logits", classes="dog,owl")
    refused(path, "classes must be 3 different names, one per class; found 2", kind="logits", classes="a,b")
    assert open_rows(path, kind="logits", classes="a,b,c", need_labels=False).class_names == ("a", "b", "c")


@pytest.mark.parametrize(("classes", "found"), [("a,a", "'a' more than once"), ("a,,b", "an empty one")])
def test_class_names_must_differ(csv, classes, found):
    path = csv("cat,dog\n1,2\n")
    refused(path, f"classes must be different names, one per class; found {found}", classes=classes)


def test_several_columns_of_text_name_the_classes_that_are_left(csv):
    path = csv("cat,who,dog,where,label\n1,x,2,y,cat\n")
    refused(path, "column 'who' must hold numbers; found 'x'", "Pass classes='cat,dog'.", kind="logits")
    assert open_rows(path, kind="logits", classes="cat,dog").array().tolist() == [[1, 2]]


def test_lines_that_end_in_a_separator_are_not_shifted(csv):
    refused(csv("cat,dog\n1,2,\n3,4,\n"), "line 2 must have 2 cells", kind="logits", need_labels=False)


def test_names_that_look_like_numbers_in_another_spelling(csv):
    rows = open_rows(csv("01,00,label\n1,2,00\n3,4,01\n"), kind="logits")
    assert (rows.class_names, rows.labels.tolist()) == (("01", "00"), [1, 0])


def test_a_label_that_is_not_a_class_is_refused(csv):
    refused(csv("cat,dog,label\n1,2,cow\n"), "found 'cow' in 1 row (first: row 0)", kind="logits")
    refused(
        csv("cat,dog,label\n1,2,cat\n\n3,4,\n"), "line 4, column 'label' must hold a label", kind="logits"
    )
    refused(csv("logit_0,logit_1,label\n1,2,1\n3,4,x\n"), "line 3, column 'label' must hold a whole number")


def test_a_row_of_empty_cells_is_not_a_blank_line(tmp_path):
    path = text(tmp_path / "val.tsv", "logit_0\tlogit_1\n1\t2\n\t\n3\t4\n")
    refused(path, "line 3, column 'logit_0' must hold a number; found an empty cell", need_labels=False)


def test_a_cell_with_a_line_break(csv):
    path = csv('logit_0,logit_1,note\n1,2,"a\nb"\n')
    refused(path, "line 2 must close the quotes that it opens", need_labels=False)


def test_quoted_decimal_commas_need_another_separator(csv):
    refused(csv('logit_0,logit_1\n"1,5",2\n'), "found '1,5'", "by semicolons", need_labels=False)


def test_a_column_that_is_not_there_and_a_file_without_columns(csv, tmp_path):
    path = csv("cat,dog\n1,2\n")
    refused(path, "must have the column 'id'; found 'cat', 'dog'", kind="logits", id_column="id")
    np.savez(tmp_path / "val.npz", logits=LOGITS, labels=LABELS)
    refused(tmp_path / "val.npz", "is not a table and has no columns. Leave id_column out", id_column="id")


def test_a_column_of_labels_may_be_in_a_separate_file(csv, tmp_path):
    path = text(tmp_path / "truth.csv", "image,truth\nx,dog\ny,cat\n")
    rows = open_rows(csv("cat,dog\n1,2\n3,4\n"), kind="logits", labels=path, label_column="truth")
    assert (rows.labels.tolist(), rows.label_column) == ([1, 0], None)


@pytest.mark.parametrize("first", ["1.5", "1,5"])
def test_decimal_points_and_commas_in_different_blocks_are_refused(tmp_path, first):
    other = "1,5" if first == "1.5" else "1.5"
    path = text(tmp_path / "val.tsv", f"note\tlogit_0\tlogit_1\na,b.c\t{first}\t2\n\t3\t4\nx\t{other}\t2\n")
    rows = open_rows(path, need_labels=False)
    with pytest.raises(InputError, match="line 4: all decimal marks must be points, or all commas"):
        list(rows.blocks(1))


def test_commas_and_points_in_text_are_not_decimal_marks(tmp_path):
    path = text(tmp_path / "val.tsv", "note\tlogit_0\tlogit_1\na.b\t1,5\t2\nc,d\t3\t4,25\n")
    assert open_rows(path, need_labels=False).array().tolist() == [[1.5, 2], [3, 4.25]]
