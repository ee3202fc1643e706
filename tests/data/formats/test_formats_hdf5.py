"""HDF5 files as h5py writes them."""

import h5py
import numpy as np
import pytest

from temperance import InputError
from temperance.data import open_rows
from temperance.data.rows_file import parts

LOGITS = np.array([[0.5, 1.5, -2.0], [3.0, 0.25, 1.0], [0.0, 0.0, 4.0], [1.0, 2.0, 0.5]])
LABELS = np.array([1, 0, 2, 1])
NAMES = ["cat", "dog", "owl"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "val.h5"


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<f2"])
@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "chunks": (3, 2)}])
def test_datasets(path, kind, options):
    with h5py.File(path, "w") as file:
        file.create_dataset("logits", data=LOGITS.astype(kind), **options)
        file["labels"] = LABELS
    rows = open_rows(path)
    assert rows.dtype == np.dtype(kind).newbyteorder("=")
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    assert rows.labels.tolist() == LABELS.tolist()
    assert [len(block) for block in rows.blocks(3)] == [3, 1]


@pytest.mark.parametrize("kind", [h5py.string_dtype(), h5py.string_dtype(length=5)])
def test_names(tmp_path, kind):
    path = tmp_path / "val.hdf5"
    with h5py.File(path, "w") as file:
        file["probs"] = LOGITS
        file["labels"] = np.array([NAMES[label] for label in LABELS], dtype=kind)
        file["classes"] = np.array(NAMES, dtype=kind)
    rows = open_rows(path)
    assert (rows.kind, rows.class_names) == ("probs", tuple(NAMES))
    assert rows.labels.tolist() == LABELS.tolist()


def test_groups_are_the_parts_of_a_task(path):
    with h5py.File(path, "w") as file:
        for part, factor in (("val", 1), ("test", 2)):
            file[f"{part}/logits"] = LOGITS * factor
            file[f"{part}/labels"] = LABELS
    assert parts(path) == ("val", "test")
    np.testing.assert_array_equal(open_rows(path, part="test").logits(), LOGITS * 2)


def test_nothing_is_followed_out_of_the_file(path):
    other = path.with_name("other.h5")
    with h5py.File(other, "w") as file:
        file["logits"] = LOGITS
    raw = path.with_name("raw.bin")
    LOGITS.tofile(raw)
    layout = h5py.VirtualLayout((4, 3), float)
    layout[:] = h5py.VirtualSource(str(other), "logits", (4, 3))

    def link(file):
        file["logits"] = h5py.ExternalLink(str(other), "logits")

    def virtual(file):
        file.create_virtual_dataset("logits", layout)

    def external(file):
        file.create_dataset("logits", (4, 3), float, external=[(str(raw), 0, LOGITS.nbytes)])

    for make, words in ((link, "is a link"), (virtual, "in other files"), (external, "in other files")):
        with h5py.File(path, "w") as file:
            make(file)
            file["labels"] = LABELS
        with pytest.raises(InputError, match=f"logits: .*{words}"):
            open_rows(path)


def test_a_shape_without_numbers_takes_no_memory(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("logits", (10**9, 1000), "f4", chunks=(1000, 100))
    with pytest.raises(InputError, match="not all of its numbers are there"):
        open_rows(path, need_labels=False)


def test_a_dataset_without_numbers_is_refused(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("logits", data=np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]))
    with pytest.raises(InputError, match="must hold numbers"):
        open_rows(path, need_labels=False)
    with h5py.File(path, "w") as file:
        file.create_dataset("logits", (2,), dtype=h5py.vlen_dtype(np.float64))
        file["logits"][0] = [1.0, 2.0]
    with pytest.raises(InputError, match="logits: "):
        open_rows(path, need_labels=False)
    with h5py.File(path, "w") as file:
        file.create_group("logits")
    with pytest.raises(InputError, match="is a group or an empty dataset"):
        open_rows(path, need_labels=False)
