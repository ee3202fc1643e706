"""Every format returns what was saved, whole and in blocks."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
import safetensors.torch
import torch
from saved import SAVERS

from temperance import InputError, TemperatureScaling, files, logits_from_probs
from temperance.data import RowFile, lazy_array, open_rows
from temperance.data.formats import open_members
from temperance.data.read_options import ReadOptions
from temperance.data.rows_file import parts

N, K = 23, 4
RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((N, K)).astype(np.float32)
LABELS = RNG.integers(0, K, N)


@pytest.fixture(params=SAVERS)
def saved(request, tmp_path):
    """Return a function that saves arrays in one of the formats."""
    save, suffix = SAVERS[request.param]

    def make(name="val", **arrays):
        path = tmp_path / f"{name}{suffix}"
        save(path, arrays)
        return path

    return make


def test_every_format_gives_back_the_same_bits_whole_and_in_blocks(saved):
    rows = open_rows(saved(logits=LOGITS, labels=LABELS))
    assert (rows.key, rows.kind, rows.shape) == ("logits", "logits", (N, K))
    np.testing.assert_array_equal(rows.array().astype(np.float32), LOGITS)
    np.testing.assert_array_equal(rows.logits(), rows.array())
    np.testing.assert_array_equal(rows.labels, LABELS)
    assert rows.labels.dtype == np.intp
    for size in (1, 5, 23, 100):
        for blocks in (list(rows.blocks(size)), list(rows.logit_blocks(size))):
            assert [len(block) for block in blocks] == [len(LOGITS[i : i + size]) for i in range(0, N, size)]
            np.testing.assert_array_equal(np.concatenate(blocks).astype(np.float32), LOGITS)


def test_every_format_can_hold_one_score_of_a_binary_classifier(saved):
    rows = open_rows(saved(logits=LOGITS[:, 0], labels=LABELS % 2))
    assert rows.shape == (N,)
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks(7))).astype(np.float32), LOGITS[:, 0])
    np.testing.assert_array_equal(rows.array().astype(np.float32), LOGITS[:, 0])


def test_probabilities_become_logits_as_by_logits_from_probs(saved, monkeypatch):
    monkeypatch.setattr("temperance.data.rows_file.FILL_BYTES", 100)
    probs = np.exp(LOGITS.astype(np.float64))
    probs /= probs.sum(axis=1, keepdims=True)
    probs[3] = [1, 0, 0, 0]
    rows = open_rows(saved(probs=probs, labels=LABELS))
    assert rows.kind == "probs"
    np.testing.assert_array_equal(rows.logits(), logits_from_probs(rows.array()))
    np.testing.assert_array_equal(np.concatenate(list(rows.logit_blocks(5))), rows.logits())
    assert rows.logits()[3, 1] == np.log(rows.low_end().floor)
    assert np.isneginf(rows.with_floor(0.0).logits()[3, 1])


def test_every_format_can_be_a_file_of_labels(saved, tmp_path):
    np.save(tmp_path / "scores.npy", LOGITS)
    rows = open_rows(tmp_path / "scores.npy", kind="logits", labels=saved(labels=LABELS))
    np.testing.assert_array_equal(rows.labels, LABELS)
    assert rows.key == ""
    assert parts(tmp_path / "scores.npy") == ()


def test_arrays_on_disk_are_the_same_as_in_memory(saved, monkeypatch):
    path = saved(logits=LOGITS, labels=LABELS)
    monkeypatch.setattr(files, "MEMORY_LIMIT", 16)
    monkeypatch.setattr(lazy_array, "FILL_BYTES", 100)
    array = open_rows(path).array()
    np.testing.assert_array_equal(array.astype(np.float32), LOGITS)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", ">f8", "i4", "u1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", ["npy", "npz", "npz-compressed"])
def test_numpy_files_of_any_type_and_order(tmp_path, dtype, order, save):
    array = np.asarray(3 * LOGITS, order=order).astype("i4" if dtype == "u1" else dtype).astype(dtype)
    path = tmp_path / f"val.{save[:3]}"
    if save == "npy":
        np.save(path, array)
    else:
        SAVERS[save][0](path, {"logits": array})
    rows = open_rows(path, kind="logits", need_labels=False)
    for found in (rows.array(), np.concatenate(list(rows.blocks(5)))):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == np.dtype(dtype).newbyteorder("=")
    wanted = array if np.dtype(dtype).kind == "f" else array.astype(np.float64)
    assert rows.logits().dtype == next(rows.logit_blocks(3)).dtype == wanted.dtype.newbyteorder("=")
    np.testing.assert_array_equal(rows.logits(), wanted)


@pytest.mark.parametrize("save", ["safetensors", "npy", "npy-fortran"])
def test_arrays_stored_as_in_memory_are_mapped(tmp_path, save):
    path = tmp_path / f"val.{save.partition('-')[0]}"
    if save.startswith("npy"):
        np.save(path, np.asfortranarray(LOGITS) if "fortran" in save else LOGITS)
    else:
        SAVERS[save][0](path, {"logits": LOGITS, "labels": LABELS})
    array = open_rows(path, kind="logits", need_labels=False).array()
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable
    assert array.flags.f_contiguous == ("fortran" in save)


def test_columns_of_an_array_with_three_dimensions_in_fortran_order(tmp_path):
    array = np.asfortranarray(RNG.standard_normal((7, 3, 2)))
    np.save(tmp_path / "a.npy", array)
    found = open_members(tmp_path / "a.npy")[""]
    np.testing.assert_array_equal(np.concatenate(list(found.blocks(2))), array)


def test_an_empty_array_is_returned_empty(tmp_path):
    np.save(tmp_path / "a.npy", np.empty((0, 3)))
    found = open_members(tmp_path / "a.npy")[""]
    assert found.array().shape == (0, 3)
    assert list(found.blocks(2)) == []


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_bfloat16_is_widened_exactly(tmp_path, suffix):
    held = torch.from_numpy(LOGITS).bfloat16()
    path = tmp_path / f"val{suffix}"
    if suffix == ".pt":
        torch.save({"logits": held}, path)
    else:
        safetensors.torch.save_file({"logits": held}, path)
    rows = open_rows(path, need_labels=False)
    for found in (rows.array(), np.concatenate(list(rows.blocks(5)))):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, held.float().numpy())


def test_tensors_alone_in_pairs_on_strides_and_with_gradients(tmp_path):
    logits, labels = torch.from_numpy(LOGITS), torch.from_numpy(LABELS)
    path = tmp_path / "val.pt"
    torch.save(logits.requires_grad_(), path)
    np.testing.assert_array_equal(open_rows(path, kind="logits", need_labels=False).array(), LOGITS)
    torch.save((logits.detach().T.contiguous().T, labels), path)
    rows = open_rows(path, kind="logits")
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks(5))), LOGITS)
    torch.save({"logits": torch.nn.Parameter(logits.detach()), "epoch": 3, "labels": labels}, path)
    np.testing.assert_array_equal(open_rows(path).array(), LOGITS)


def test_columns_are_sorted_by_number_and_others_are_ignored(tmp_path):
    frame = pandas.DataFrame({f"logits_{k}": LOGITS[:, k].astype(float) for k in (2, 0, 3, 1)})
    frame.insert(1, "name", [f"image, {i}" for i in range(N)])
    frame["labels"] = LABELS.astype(float)  # text has no types, so 3.0 in a .csv is the label 3
    frame.to_csv(tmp_path / "val.csv", index=False)
    frame.assign(labels=LABELS).to_parquet(tmp_path / "val.parquet")
    for path in (tmp_path / "val.csv", tmp_path / "val.parquet"):
        rows = open_rows(path)
        np.testing.assert_array_equal(rows.array(), LOGITS.astype(float))
        np.testing.assert_array_equal(rows.labels, LABELS)


def test_a_csv_as_spreadsheets_write_it_is_read(tmp_path):
    text = '\ufeff"logit_0", logit_1 ,label\r\n"1.5",-2e-3,0\r\n\r\n 3,nan,1.0\r\n'
    (tmp_path / "val.CSV").write_bytes(text.encode())
    rows = open_rows(tmp_path / "val.CSV")
    np.testing.assert_array_equal(rows.array(), [[1.5, -2e-3], [3, np.nan]])
    np.testing.assert_array_equal(rows.labels, [0, 1])


TASK = {"logits_val": LOGITS, "labels_val": LABELS, "logits_test": LOGITS[:9] + 1, "labels_test": LABELS[:9]}


@pytest.mark.parametrize("save", ["npz", "safetensors", "pt"])
def test_the_parts_of_a_task_file_are_listed(tmp_path, save):
    path = tmp_path / f"task.{save}"
    SAVERS[save][0](path, TASK)
    assert parts(path) == ("val", "test")
    rows = open_rows(path, part="test")
    assert rows.key == "logits_test"
    np.testing.assert_array_equal(rows.array(), LOGITS[:9] + 1)
    np.testing.assert_array_equal(rows.labels, LABELS[:9])


def test_one_part_alone_needs_no_choice_and_a_labels_file_may_be_a_task_file(tmp_path):
    np.savez(tmp_path / "half.npz", probs_val=np.full((N, K), 0.25))
    np.savez(tmp_path / "task.npz", **TASK)
    assert parts(tmp_path / "half.npz") == ("val",)
    rows = open_rows(tmp_path / "half.npz", labels=tmp_path / "task.npz")
    assert (rows.key, rows.kind) == ("probs_val", "probs")
    np.testing.assert_array_equal(rows.labels, LABELS)


def test_a_file_with_both_is_read_as_logits_by_default(tmp_path):
    np.savez(tmp_path / "val.npz", probs=np.full((N, K), 0.25), logits=LOGITS, labels=LABELS)
    assert open_rows(tmp_path / "val.npz").key == "logits"
    assert open_rows(tmp_path / "val.npz", kind="probs").key == "probs"


def test_a_single_array_of_another_name_is_used_if_its_kind_is_given(tmp_path):
    np.savez(tmp_path / "val.npz", outputs=LOGITS, labels=LABELS)
    rows = open_rows(tmp_path / "val.npz", kind="logits")
    assert (rows.key, rows.kind) == ("outputs", "logits")


def test_labels_that_are_not_needed_are_not_read(tmp_path):
    np.savez(tmp_path / "val.npz", logits=LOGITS, labels=np.full(N, -1), names=np.array(["a", None]))
    assert open_rows(tmp_path / "val.npz", need_labels=False).labels is None


@pytest.mark.parametrize("save", ["npz", "safetensors"])
def test_arrays_at_odd_places_of_the_file_are_fitted_the_same(tmp_path, save):
    path = tmp_path / f"val.{save}"
    arrays = {"logits": LOGITS.astype(np.float64), "labels": LABELS}
    if save == "npz":
        np.savez(path, x=np.zeros(3, np.uint8), **arrays)
    else:
        SAVERS[save][0](path, {**arrays, "a": np.zeros(3, np.uint8)})
    rows = open_rows(path)
    assert rows.labels.flags.aligned
    found = TemperatureScaling().fit(rows.logits(), rows.labels).temperature_
    assert found == TemperatureScaling().fit(arrays["logits"], LABELS).temperature_


def test_a_file_knows_whether_it_has_labels_before_they_are_read(saved):
    rows = RowFile.open(saved(logits=LOGITS, labels=LABELS + 99), ReadOptions(), need_labels=False)
    assert (rows.has_labels, rows.labels) == (True, None)
    with pytest.raises(InputError, match="labels must be"):
        rows.with_labels()
    rows = RowFile.open(saved(logits=LOGITS), ReadOptions(), need_labels=False)
    assert not rows.has_labels


def test_importing_the_package_of_data_imports_no_reader():
    code = "import sys, temperance.data\nprint([m for m in sys.modules if m.startswith('temperance.data.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_arrays_beside_the_logits_have_groups_and_values_to_score_by(tmp_path):
    path, logits = tmp_path / "rows.npz", np.eye(3)
    sites = np.array(["north", "south", "north"])
    np.savez(path, logits=logits, labels=[0, 1, 2], groups=[4, 4, 5], site=sites)
    rows = open_rows(path, by="site")
    assert rows.groups.tolist() == [4, 4, 5]
    assert rows.by.tolist() == sites.tolist()
    with pytest.raises(InputError, match="must have an array named ward; found logits, labels, groups, site"):
        open_rows(path, by="ward")
    np.savez(tmp_path / "task.npz", logits_val=logits, labels_val=[0, 1, 2], groups_val=[1, 2])
    with pytest.raises(InputError, match=r"groups_val: must have one value per row; found shape \(2,\)"):
        open_rows(tmp_path / "task.npz", part="val")


@pytest.mark.parametrize(("ids", "kept"), [([7, 8], True), ([7, 8, 9], False), ([True, False], False)])
def test_ids_are_one_number_or_name_for_each_row(ids, kept, tmp_path):
    np.savez(tmp_path / "rows.npz", logits=np.zeros((2, 3)), ids=np.array(ids))
    assert (open_rows(tmp_path / "rows.npz", need_labels=False).ids is not None) == kept
