"""Rows written block by block are read back with the same bits; a file appears complete or not at all."""

import numpy as np
import pandas
import pytest

from temperance import InputError
from temperance.data import open_rows
from temperance.data.writer import check_output, open_writer

N, K = 23, 3
RNG = np.random.default_rng(1)
PROBS = RNG.dirichlet(np.full(K, 0.3), N)
LABELS = RNG.integers(0, K, N)
SUFFIXES = [".npz", ".npy", ".csv", ".parquet", ".pq"]


def write(path, array, size=5, **options):
    with open_writer(path, shape=array.shape, dtype=array.dtype, **options) as out:
        for start in range(0, len(array), size):
            out.write(array[start : start + size])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_rows_written_in_blocks_are_read_back_with_the_same_bits(tmp_path, suffix, dtype, labelled, flat):
    if labelled and suffix == ".npy":
        return
    array = (PROBS[:, 0] if flat else PROBS).astype(dtype)
    labels = LABELS % 2 if flat else LABELS
    path = tmp_path / f"probs{suffix}"
    write(path, array, labels=labels if labelled else None)
    rows = open_rows(path, kind="probs", need_labels=labelled)
    np.testing.assert_array_equal(rows.array(), array)
    if suffix != ".csv":  # text is read in double precision, with the same values
        assert rows.array().dtype == array.dtype
    if labelled:
        np.testing.assert_array_equal(rows.labels, labels)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_other_libraries_read_the_file_too(tmp_path):
    for suffix in (".npz", ".csv", ".parquet"):
        write(tmp_path / f"a{suffix}", PROBS, key="logits", labels=LABELS)
    with np.load(tmp_path / "a.npz") as held:
        np.testing.assert_array_equal(held["logits"], PROBS)
        np.testing.assert_array_equal(held["labels"], LABELS)
    for frame in (pandas.read_csv(tmp_path / "a.csv"), pandas.read_parquet(tmp_path / "a.parquet")):
        assert list(frame.columns) == ["logit_0", "logit_1", "logit_2", "label"]
        np.testing.assert_allclose(frame[["logit_0", "logit_1", "logit_2"]], PROBS, rtol=1e-15)
        np.testing.assert_array_equal(frame["label"], LABELS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_extreme_numbers_and_empty_blocks(tmp_path, suffix):
    array = np.array([[0.0, -0.0], [5e-324, 1.7976931348623157e308], [-np.inf, 0.1 + 0.2], [np.nan, np.pi]])
    path = tmp_path / f"a{suffix}"
    with open_writer(path, key="logits", shape=(4, 2), dtype=float) as out:
        out.write(array[:0])
        out.write(np.asfortranarray(array))
    found = open_rows(path, kind="logits", need_labels=False).array()
    np.testing.assert_array_equal(found, array)
    assert np.signbit(found[0, 1])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("fault", ["too few", "too many", "too wide", "interrupted"])
def test_an_incomplete_write_leaves_nothing(tmp_path, suffix, fault):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"old")

    def run():
        with open_writer(path, shape=(N, K), dtype=float, overwrite=True) as out:
            out.write(PROBS[:20])
            if fault == "too many":
                out.write(PROBS[:4])
            if fault == "too wide":
                out.write(np.zeros((3, K + 1)))
            if fault == "interrupted":
                raise KeyboardInterrupt("stopped")

    words = {
        "too few": "23 rows must be written; found 20",
        "too many": r"shape \(23, 3\); found one of shape \(4, 3\) after 20 rows",
        "too wide": r"found one of shape \(3, 4\)",
        "interrupted": "stopped",
    }
    with pytest.raises(KeyboardInterrupt if fault == "interrupted" else ValueError, match=words[fault]):
        run()
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_an_output_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    with pytest.raises(
        InputError, match=r"a\.pt: must be one of \.npz, \.npy, .* to be written; found '\.pt'"
    ):
        check_output(tmp_path / "a.pt")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write(tmp_path / "nowhere" / "a.npz", PROBS)
    check_output(tmp_path / "a.parquet", labels=True)
    with pytest.raises(InputError, match=r"a\.npy: a \.npy holds one array, .* Write a \.npz"):
        write(tmp_path / "a.npy", PROBS, labels=LABELS)
    with pytest.raises(InputError, match=r"key must be one of 'logits', 'probs'; found 'odds'"):
        write(tmp_path / "a.npz", PROBS, key="odds")
    with pytest.raises(ValueError, match=r"labels must have one value per row, 23; found shape \(22,\)"):
        write(tmp_path / "a.npz", PROBS, labels=LABELS[:-1])
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.npz").write_bytes(b"old")
    with pytest.raises(FileExistsError, match="already exists"):
        write(tmp_path / "a.npz", PROBS)


FORMULAS = ["=cmd()", "@sum(A1)", "'=quoted"]


def test_names_that_are_formulas_are_text_in_a_csv_and_read_back(tmp_path):
    """A spreadsheet would run a cell that begins with = + - or @, and strips quotes in front of text."""
    ids = np.array(["=1+1", "-1", "-a", "+b", "@c", "'d", *map(str, range(N - 6))])
    path = tmp_path / "probs.csv"
    write(path, PROBS, labels=LABELS, class_names=FORMULAS, ids=ids, id_column="=id")
    table = pandas.read_csv(path, dtype=str)
    cells = {*table.columns, *table.iloc[:, 0], *table["label"]}
    assert {cell for cell in cells if cell.startswith(("=", "+", "-", "@"))} == {"-1"}
    assert {"'=1+1", "'d", "'=cmd()", "''=quoted"} < cells
    rows = open_rows(path, kind="probs", id_column="'=id")
    assert rows.class_names == tuple(FORMULAS)
    np.testing.assert_array_equal(rows.labels, LABELS)
    np.testing.assert_array_equal(rows.ids, ids)


def test_labels_of_other_programs_keep_their_quotes(tmp_path):
    (tmp_path / "rows.csv").write_text("logit_'=a,logit_b,label\n0,1,'=a\n1,0,b\n")
    np.testing.assert_array_equal(open_rows(tmp_path / "rows.csv").labels, [0, 1])
