"""Excel workbooks as pandas and openpyxl write them."""

from zipfile import ZipFile

import numpy as np
import openpyxl
import pytest
from openpyxl.packaging.relationship import Relationship
from openpyxl.workbook.external_link.external import ExternalBook, ExternalLink

from temperance import InputError
from temperance.data import open_rows

LOGITS = np.array([[0.5, 1.5, -2.0], [3.0, 0.25, 1.0], [0.0, 0.0, 4.0]])
LABELS = [1, 0, 2]
NAMES = ["cat", "dog", "owl"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "val.xlsx"


def save(path, *rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("notes").append(["not a table"])
    book.save(path)
    return path


def test_columns_and_labels_by_name_and_blank_rows(path):
    lines = [[*row, NAMES[label]] for row, label in zip(LOGITS.tolist(), LABELS, strict=True)]
    save(path, [*NAMES, "label"], lines[0], [None] * 4, *lines[1:], [])
    rows = open_rows(path, kind="logits")
    assert rows.class_names == tuple(NAMES)
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    assert rows.labels.tolist() == LABELS


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.5, None, 1], "row 4, column 'prob_1' must hold a number; found an empty cell"),
        ([0.5, "n/a", 1], "row 4, column 'prob_1' must hold a number; found 'n/a'"),
        ([0.5, True, 0], "row 4, column 'prob_1' must hold a number; found 'True'"),
        ([0.5, 0.5], "row 4, column 'label' must hold a whole number; found an empty cell"),
        ([0.5, 0.5, 0.5], "row 4, column 'label' must hold a whole number; found '0.5'"),
    ],
)
def test_a_bad_cell_is_named_by_its_row_in_the_sheet(path, row, words):
    save(path, ["prob_0", "prob_1", "label"], [None], [0.25, 0.75, 1], row)
    with pytest.raises(InputError) as caught:
        open_rows(path).array()
    assert words in str(caught.value)


def test_cells_of_text_are_read_as_in_a_csv(path):
    save(path, ["prob_0", "prob_1", "label"], ["0.25", "75 %", "1"], [0.5, 0.5, 0.0])
    rows = open_rows(path)
    assert rows.array().tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert rows.labels.tolist() == [1, 0]


def test_labels_may_stay_unread(path):
    save(path, ["prob_0", "prob_1", "label"], [0.25, 0.75, None])
    assert open_rows(path, need_labels=False).array().tolist() == [[0.25, 0.75]]


def test_a_file_that_is_not_a_table_is_refused(path):
    with pytest.raises(InputError, match="must name the columns, as logit_0, logit_1, label; found numbers"):
        open_rows(save(path, [0.5, 0.5], [0.25, 0.75]))
    with pytest.raises(InputError, match=r"must name the columns.* found no cells"):
        open_rows(save(path))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match="is not an Excel workbook, or is damaged"):
        open_rows(path)


def test_links_to_other_workbooks_are_not_followed(path):
    """Excel writes a part for each workbook that is linked to; programs that clean files up remove it."""
    book = openpyxl.Workbook()
    for row in (["logit_0", "logit_1", "label"], [0.5, 1.5, 1]):
        book.active.append(row)
    link = ExternalLink(ExternalBook(id="rId1"))
    link.file_link = Relationship(type="externalLinkPath", Target="other.xlsx", TargetMode="External")
    book._external_links.append(link)
    book.save(path)
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    linked = [name for name in parts if "externalLinks" in name]
    assert linked
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            if name not in linked:
                archive.writestr(name, content)
    rows = open_rows(path)
    assert (rows.logits().tolist(), rows.labels.tolist()) == ([[0.5, 1.5]], [1])
