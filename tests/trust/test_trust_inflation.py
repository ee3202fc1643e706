"""Readers need time and memory in proportion to the file, whatever the file claims."""

import gzip
import os
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

import temperance
from temperance import InputError
from temperance.data import open_rows
from temperance.data.formats import compression, npy
from temperance.population import read_population


@pytest.fixture
def low_limit(monkeypatch):
    """Let files of 100 kB be large."""
    monkeypatch.setattr(compression, "ALWAYS_FINE", 100_000)
    monkeypatch.setattr(compression, "MAX_SMALL_TEXT", 100_000)


def test_a_large_file_may_unpack_to_200_times_its_size(low_limit):
    assert not compression.is_inflated(200_000, 1000)
    assert compression.is_inflated(200_001, 1000)
    bytes_each = SimpleNamespace(shape=(200_000,), dtype=np.dtype(np.int8))
    assert compression.unless_inflated(bytes_each, 1000) is bytes_each


def test_an_archive_is_opened_once_for_all_its_members(tmp_path, monkeypatch):
    path = tmp_path / "many.npz"
    np.savez(path, logits=np.zeros((3, 2)), labels=[0, 1, 0], **{f"x{i}": [i] for i in range(300)})
    opened = []
    monkeypatch.setattr(npy, "ZipFile", lambda path: opened.append(path) or zipfile.ZipFile(path))
    assert len(npy.archive_members(path, None)) == 302
    assert len(opened) == 1


def test_a_compressed_array_far_larger_than_its_file_is_refused(tmp_path, low_limit):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, logits=np.zeros((50_000, 2)), labels=np.zeros(50_000, int))
    with pytest.raises(
        InputError, match=r"logits: must not claim more than 200 times .*Save it uncompressed"
    ):
        open_rows(path)
    np.savez(path, logits=np.zeros((50_000, 2)), labels=np.zeros(50_000, int))  # the remedy
    assert open_rows(path).shape == (50_000, 2)


def test_small_arrays_may_be_constant(tmp_path):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, logits=np.zeros((50_000, 2)), labels=np.zeros(50_000, int))
    assert open_rows(path).shape == (50_000, 2)


def test_a_tensor_that_repeats_one_number_is_refused(tmp_path, low_limit):
    torch = pytest.importorskip("torch")
    path = tmp_path / "repeated.pt"
    torch.save({"logits": torch.zeros(1).expand(100_000, 3), "labels": torch.zeros(3, dtype=int)}, path)
    assert path.stat().st_size < 5000
    with pytest.raises(InputError, match="must not claim more than 200 times"):
        open_rows(path)


def test_inflated_text_is_refused_after_a_small_part_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "MAX_SMALL_TEXT", 1 << 20)
    path = tmp_path / "long.csv.gz"
    path.write_bytes(gzip.compress(b"logit_0,logit_1,label\n" + b"0,0,0\n" * 10_000_000))
    with pytest.raises(InputError, match=r"must not decompress to more than 200 times.* 0\.0024 GB"):
        open_rows(path)


def test_a_short_text_may_compress_as_well_as_it_can(tmp_path):
    path = tmp_path / "equal.csv.gz"
    path.write_bytes(gzip.compress(b"logit_0,logit_1,label\n" + b"0.5,0.5,0\n" * 20_000))
    assert 200 * path.stat().st_size < 200_000
    assert len(open_rows(path).labels) == 20_000


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl.gz"])
def test_compressed_text_without_an_end_is_refused(suffix, tmp_path, low_limit):
    path = tmp_path / f"long{suffix}"
    path.write_bytes(gzip.compress(b'{"logits": [' + b"1," * 1_000_000))
    with pytest.raises(InputError, match="must not decompress to more than 200 times its size"):
        open_rows(path)


def test_a_workbook_that_unpacks_to_far_more_is_refused(tmp_path, low_limit):
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 1_000_000)
    with pytest.raises(InputError, match="must not decompress to hundreds of times its size"):
        open_rows(path)


@pytest.mark.parametrize("device", ["pipe", "/dev/zero"])
def test_a_pipe_or_a_device_is_refused_at_once(device, tmp_path, fitted, command):
    path = tmp_path / "source.npz"
    if device == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(device)
    for read in (temperance.load, read_population, open_rows):
        with pytest.raises(InputError, match="must be a file; found a device or a pipe"):
            read(path)
    fitted("ts").save("cal.json")
    refused = "found a device or a pipe"
    command("apply", path, "rows.npz", "-o", "out.npz").refused(refused)
    command("apply", "cal.json", path, "-o", "out.npz").refused(refused)
    command("fit", "rows.npz", "--classes", f"@{path}", "-o", "out.json").refused(refused)
    command("export", "cal.json", "out.onnx", "--append", path).refused(refused)


def test_a_large_file_in_place_of_a_calibrator_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("temperance.files.MAX_WHOLE_FILE", 1 << 20)
    path = tmp_path / "rows.npy"
    with path.open("wb") as file:
        file.truncate(3 << 20)
    with pytest.raises(InputError, match="must have at most 1 MB; found 3 MB"):
        temperance.load(path)


def test_thousands_of_columns_are_read(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"logit_{i}" for i in range(20_000)]
    path.write_text(",".join([*names, "label"]) + "\n" + "0," * 20_000 + "7\n")
    rows = open_rows(path)
    assert rows.shape == (1, 20_000)
    assert rows.labels.tolist() == [7]


def test_an_hdf5_dataset_with_less_than_its_shape_is_refused(tmp_path):
    """HDF5 itself returns what is in memory for the rest."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "rows.h5"
    with h5py.File(path, "w") as file:
        file["logits"], file["labels"] = np.zeros((40, 3), np.float32), np.zeros(40, int)
    content = path.read_bytes()
    size = (480).to_bytes(8, "little")
    assert content.count(size) == 1
    path.write_bytes(content.replace(size, (431).to_bytes(8, "little")))
    with pytest.raises(InputError, match="not all of its numbers are there"):
        open_rows(path, kind="logits").array()
