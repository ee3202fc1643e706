"""Readers and writers at their edges: padded labels, row groups, damage far inside a member."""

import numpy as np
import pytest

from temperance import InputError
from temperance.data import open_rows, open_writer
from temperance.data.formats import npy
from temperance.data.formats.csv import _label_values


@pytest.mark.parametrize(
    ("cell", "is_name"), [("01", True), ("007", True), ("0", False), ("10", False), ("0a", True)]
)
def test_among_names_a_label_is_a_name_if_a_zero_stands_before_other_digits(cell, is_name):
    assert (_label_values(["10", cell], named=True).dtype.kind == "U") == is_name


def test_ids_without_a_name_are_in_the_first_column_whatever_else_has_none(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(",cat,dog,\nx,1,2,7\ny,3,4,8\n")
    rows = open_rows(path, kind="logits", classes="cat,dog", need_labels=False)
    assert rows.ids.tolist() == ["x", "y"]


def test_few_rows_are_one_group_of_a_parquet_file(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path, array = tmp_path / "a.parquet", np.random.default_rng(0).normal(size=(40, 3))
    with open_writer(path, shape=array.shape, dtype=array.dtype) as out:
        for start in range(0, 40, 8):
            out.write(array[start : start + 8])
    assert parquet.ParquetFile(path).num_row_groups == 1


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_wrong_byte_anywhere_in_a_member_fails_its_checksum(share, tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "FILL_BYTES", 256)
    path = tmp_path / "rows.npz"
    np.savez(path, logits=np.random.default_rng(0).normal(size=(300, 3)))
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        open_rows(path, need_labels=False).array()
