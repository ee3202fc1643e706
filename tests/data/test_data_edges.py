"""Readers and writers at their edges: padded labels, row groups, damage far inside a member."""

import numpy as np
import pytest

from temperance import InputError
from temperance.data import open_rows, open_writer
from temperance.data.formats import npz
from temperance.data.formats.label_cells import _is_padded


@pytest.mark.parametrize(
    ("cell", "padded"), [("01", True), ("007", True), ("0", False), ("10", False), ("0a", False)]
)
def test_a_label_is_padded_if_a_zero_stands_before_other_digits(cell, padded):
    assert _is_padded(cell) == padded


def test_few_rows_are_one_group_of_a_parquet_file(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path, array = tmp_path / "a.parquet", np.random.default_rng(0).normal(size=(40, 3))
    with open_writer(path, shape=array.shape, dtype=array.dtype) as out:
        for start in range(0, 40, 8):
            out.write(array[start : start + 8])
    assert parquet.ParquetFile(path).num_row_groups == 1


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_wrong_byte_anywhere_in_a_member_fails_its_checksum(share, tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "FILL_BYTES", 256)
    path = tmp_path / "rows.npz"
    np.savez(path, logits=np.random.default_rng(0).normal(size=(300, 3)))
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        open_rows(path, need_labels=False).array()
