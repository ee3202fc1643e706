"""Parquet, Feather and Arrow files as pandas and pyarrow write them: categories, texts, nullable columns."""

import struct

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from temperance import InputError
from temperance.data import open_rows

LOGITS = np.array([[0.5, 1.5, -2.0], [3.0, 0.25, 1.0], [0.0, 0.0, 4.0], [1.0, 2.0, 0.5]])
LABELS = [1, 0, 2, 1]
NAMES = ["cat", "dog", "owl"]
TEXTS = [NAMES[label] for label in LABELS]


def save_parquet(table, path):
    parquet.write_table(table, path, row_group_size=3)


def save_feather(table, path):
    feather.write_feather(table, str(path), chunksize=3)


def save_arrow(table, path):
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def save_stream(table, path):
    with ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


SAVERS = {
    "parquet": (save_parquet, "val.parquet"),
    "feather": (save_feather, "val.feather"),
    "arrow": (save_arrow, "val.arrow"),
    "stream": (save_stream, "stream.arrow"),
}


@pytest.fixture(params=SAVERS)
def saved(request, tmp_path):
    save, name = SAVERS[request.param]

    def write(table):
        save(table, tmp_path / name)
        return tmp_path / name

    return write


def table(**columns):
    """Return named columns of scores, and labels."""
    return pa.table({name: LOGITS[:, k] for k, name in enumerate(NAMES)} | columns)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float16(), 3)]
)
def test_lists(saved, kind):
    lists = pa.array(LOGITS.astype(kind.value_type.to_pandas_dtype()).tolist(), kind)
    rows = open_rows(saved(pa.table({"logits": lists, "label": pa.array(LABELS, pa.int8())})))
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    assert rows.array().dtype == kind.value_type.to_pandas_dtype()
    assert rows.labels.tolist() == LABELS


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_labels_that_are_names(saved, kind):
    try:
        path = saved(table(label=pa.array(TEXTS, pa.string()).cast(kind)))
    except pa.ArrowNotImplementedError:
        pytest.skip("pyarrow does not write this type here")
    rows = open_rows(path, kind="logits")
    assert rows.class_names == tuple(NAMES)
    assert rows.labels.tolist() == LABELS


def test_labels_that_are_categories_of_numbers(saved):
    categories = pa.array(LABELS).dictionary_encode()
    assert open_rows(saved(table(label=categories)), kind="logits").labels.tolist() == LABELS


def test_nullable_columns_of_pandas(saved):
    frame = pandas.DataFrame(LOGITS, columns=["prob_0", "prob_1", "prob_2"]).convert_dtypes()
    frame["label"] = pandas.array(LABELS, "Int64")
    rows = open_rows(saved(pa.Table.from_pandas(frame)))
    np.testing.assert_array_equal(rows.array(), LOGITS)
    assert rows.labels.tolist() == LABELS


def test_missing_values_are_refused(saved):
    path = saved(table(label=pa.array(["cat", None, "owl", "cat"])))
    with pytest.raises(InputError, match="'label' must have the name of a class in every row; 1 of the"):
        open_rows(path, kind="logits")
    for lists in ([[1.0, 2.0], None], [[1.0, 2.0], [3.0, None]]):
        path = saved(pa.table({"logits": pa.array(lists), "label": [0, 1]}))
        with pytest.raises(InputError, match="column 'logits' must have a number in every row; 1 of the"):
            open_rows(path).logits()
    path = saved(table(label=pa.array(["cat", None, "owl", "cat"]).dictionary_encode()))
    with pytest.raises(InputError, match="'label' must have the name of a class in every row"):
        open_rows(path, kind="logits")


def test_lists_of_text_are_refused(saved):
    path = saved(pa.table({"logits": [["a", "b"]]}))
    with pytest.raises(InputError, match="column 'logits' must hold numbers; found string"):
        open_rows(path, need_labels=False)


def test_the_first_version_of_feather_is_refused(tmp_path):
    path = tmp_path / "val.feather"
    path.write_bytes(b"FEA1" + bytes(200))
    with pytest.raises(InputError, match="must be Feather of version 2; found version 1"):
        open_rows(path)


def test_lists_of_different_lengths_are_refused_though_their_numbers_would_fill_the_table(saved):
    lists = [[0.5, 1.5, -2.0], [3.0, 0.25], [1.0, 0.0, 0.0, 4.0], [1.0, 2.0, 0.5]]
    path = saved(pa.table({"logits": lists, "label": LABELS}))
    with pytest.raises(InputError, match=r"must have the same length, one number per class; found 3 and 2"):
        open_rows(path).logits()


@pytest.mark.parametrize("form", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize("ends", [(3, 6, 9, 13), (3, 6, 2, 12), (3, 6, 9, 4000)])
def test_texts_whose_ends_are_damaged_are_refused(form, ends, tmp_path):
    """The ends of the texts are stored apart from them: a wrong one would read beyond the labels."""
    path = tmp_path / "val.arrow"
    labelled = table(label=TEXTS)
    with form(str(path), labelled.schema) as writer:
        writer.write_table(labelled)
    content, right = path.read_bytes(), struct.pack("<5i", 0, 3, 6, 9, 12)
    assert content.count(right) == 1
    path.write_bytes(content.replace(right, struct.pack("<5i", 0, *ends)))
    with pytest.raises(
        InputError, match=r"val\.arrow: is not an Arrow or Feather file, or is damaged \(In col"
    ):
        open_rows(path, kind="logits")
