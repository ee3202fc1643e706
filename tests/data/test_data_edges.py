"""Readers at their edges: padded labels, ids without a name."""

import numpy as np
import pytest

from temperance.data import open_rows
from temperance.data.formats.csv import _label_values


@pytest.mark.parametrize(
    ("cell", "is_name"), [("01", True), ("007", True), ("0", False), ("11", False), ("0a", True)]
)
def test_labels_are_names_if_all_are_among_them_or_one_is_no_number(cell, is_name):
    assert (_label_values(["10", cell], {"01", "007", "10"}).dtype.kind == "U") == is_name


def test_ids_without_a_name_are_in_the_first_column_whatever_else_has_none(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(",cat,dog,\nx,1,2,7\ny,3,4,8\n")
    rows = open_rows(path, kind="logits", classes="cat,dog", need_labels=False)
    assert rows.ids.tolist() == ["x", "y"]


@pytest.mark.parametrize(("ids", "kept"), [([7, 8], True), ([7, 8, 9], False), ([True, False], False)])
def test_ids_are_one_number_or_name_for_each_row(ids, kept, tmp_path):
    np.savez(tmp_path / "rows.npz", logits=np.zeros((2, 3)), ids=np.array(ids))
    assert (open_rows(tmp_path / "rows.npz", need_labels=False).ids is not None) == kept
