"""What can be wrong with each format, and that no file runs code."""

import json
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from refusal import refused, write

from temperance import InputError
from temperance.data import open_rows
from temperance.data.formats import npy

N, K = 6, 3
LOGITS = np.arange(N * K, dtype=np.float32).reshape(N, K)
LABELS = np.arange(N) % K

pytestmark = pytest.mark.usefixtures("own_folder")


# ---- .npy and .npz


def test_a_npy_cut_short_or_too_long():
    np.save("val.npy", LOGITS)
    content = Path("val.npy").read_bytes()
    write("val.npy", content[:-4])
    refused(
        "val.npy: is damaged: an array of shape (6, 3) and type float32 must have 72 bytes; found 68",
        path="val.npy",
        kind="logits",
    )
    write("val.npy", content + b"x")
    refused("must have 72 bytes; found 73", path="val.npy", kind="logits")
    write("val.npy", content[:40])
    refused("val.npy: is not a .npy array, or is damaged", path="val.npy", kind="logits")


def test_a_npy_with_an_impossible_header_is_refused():
    for shape in ("(9999999999999999, 3)", "(-6, 3)"):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
        write("val.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + LOGITS.tobytes())
        refused("val.npy: is ", "damaged", path="val.npy", kind="logits")
    write("val.npy", b"\x93NUMPY\x03\x00" + b" " * 100)
    refused("version 3.0", path="val.npy", kind="logits")


def test_a_pickle_under_the_name_of_an_array_is_not_run():
    write("val.npy", pickle.dumps(Marker()))
    refused("val.npy: is not a .npy array", path="val.npy", kind="logits")
    np.save("val.npy", np.array([Marker()], object), allow_pickle=True)
    refused("val.npy: holds Python objects", path="val.npy", kind="logits")
    assert not Path("marker").exists()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_npz_with_a_wrong_number_fails_its_checksum(save, order, share, monkeypatch):
    monkeypatch.setattr(npy, "FILL_BYTES", 4096)
    save("val.npz", logits=np.asarray(np.random.default_rng(0).random((5000, 3)), order=order))
    content = bytearray(Path("val.npz").read_bytes())
    content[int(share * len(content))] ^= 1
    write("val.npz", content)
    rows = open_rows("val.npz", need_labels=False)
    for read in (rows.array, lambda: list(rows.blocks(7))):
        with pytest.raises(InputError, match=r"val.npz, logits: (is damaged \(|the archive ends before).*"):
            read()


def test_a_npz_with_a_damaged_member_says_which():
    with zipfile.ZipFile("val.npz", "w") as archive:
        archive.writestr("logits.npy", b"no array")
    refused("val.npz, logits: is not a .npy array, or is damaged", path="val.npz")


def test_a_npz_that_is_not_an_archive_is_refused():
    np.save("val.npy", LOGITS)
    Path("val.npy").rename("val.npz")
    refused("val.npz: is not a zip archive, as a .npz is, or is damaged", path="val.npz")


def test_a_file_that_shrinks_while_it_is_read():
    np.save("val.npy", LOGITS)
    rows = open_rows("val.npy", kind="logits", need_labels=False)
    os.truncate("val.npy", 150)
    with pytest.raises(InputError, match=r"val\.npy: the file must hold the whole array; it ends too early"):
        list(rows.blocks(2))


# ---- .csv


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "0.1,0.2,1\n0.3,0.4,0\n",
            "the first line must name the columns, as logit_0,logit_1,label; found only num",
        ),
        ("\n1,2\n", "the first line must name the columns, as logit_0,logit_1,label; found an empty"),
        (
            "logit_0 logit_1\n1 2\n",
            "must be separated by a comma, a semicolon, a tab or |; found 'logit_0 logit_1",
        ),
        ("logit_0,logit_1\n1,2\n\n3,x\n", "logits: line 4, column 'logit_1' must hold a number; found 'x'"),
        (
            "logit_0,logit_1\n1,2\n1,2,3\n",
            "val.csv: line 3 must have 2 cells, as the first line has; found 3",
        ),
        ("logit_0,logit_1\n1,2\n1\n", "val.csv: line 3 must have 2 cells, as the first line has; found 1"),
        (
            "logit_0,logit_2\n1,2\n",
            "must have columns logit_0 to logit_{K-1} for K classes; found 2, without logit_1",
        ),
        ("logit_0,logit_0\n1,2\n", "must name each column once; found 'logit_0' more than once"),
        ("logit_0,logit_1\n", "found shape (0, 2). Save at least one row"),
    ],
)
def test_a_wrong_csv(text, words):
    write("val.csv", text.encode())
    refused("val.csv", words, path="val.csv", read=True, kind="logits", need_labels=False)


@pytest.mark.parametrize(
    ("cell", "got"), [("1.5", "'1.5'"), ("nan", "'nan'"), ("cat", "'cat'"), ("1e300", "'1e300'")]
)
def test_a_wrong_label_in_a_csv(cell, got):
    write("val.csv", f"logit_0,logit_1,label\n1,2,0\n\n3,4,{cell}\n".encode())
    refused("val.csv, labels: line 4, column 'label' must hold a", f"number; found {got}", path="val.csv")


def test_a_csv_in_another_encoding():
    write("val.csv", "logit_0,logit_1,größe\n1,2,3\n".encode("latin-1"))
    refused("val.csv: is not text in UTF-8", path="val.csv")


# ---- .parquet


def test_a_wrong_parquet():
    frame = pandas.DataFrame(LOGITS.astype(float), columns=[f"logit_{k}" for k in range(K)])
    frame.assign(logit_1=[1.0, None, 3, 4, 5, 6]).convert_dtypes().to_parquet("val.parquet")
    refused(
        "val.parquet, logits: column 'logit_1' must have a number in every row; 1 of the 6",
        path="val.parquet",
        read=True,
        need_labels=False,
    )
    frame.assign(logit_1=list("abcdef")).to_parquet("val.parquet")
    refused("val.parquet, logits: column 'logit_1' must hold numbers; found", path="val.parquet")
    write("val.parquet", b"PAR1" + b"\0" * 100 + b"PAR1")
    refused("val.parquet: is not a Parquet file, or is damaged", path="val.parquet")


def test_a_parquet_that_says_it_has_a_negative_number_of_rows():
    frame = pandas.DataFrame({"logit_0": range(6), "logit_1": range(6), "label": [0, 1] * 3})
    frame.to_parquet("val.parquet")
    whole = Path("val.parquet").read_bytes()
    six_rows, minus_six_rows = b"\x16\x0c\x19", b"\x16\x0b\x19"  # zigzag: 12 is 6, and 11 is -6
    assert whole.count(six_rows) == 1
    write("val.parquet", whole.replace(six_rows, minus_six_rows))
    refused("is not a Parquet file, or is damaged (its footer claims -6 rows)", path="val.parquet")


# ---- .safetensors


def safetensors_file(header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    write("val.safetensors", struct.pack("<Q", len(text)) + text + LOGITS.tobytes())


GOOD = {"dtype": "F32", "shape": [N, K], "data_offsets": [0, 4 * N * K]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data_offsets": [4, 4 + 4 * N * K]}, "the header places it at bytes 4 to 76 of 72"),
        (
            {"data_offsets": [0, 4]},
            "shape (6, 3) of F32 takes 72 bytes; the header places it at bytes 0 to 4",
        ),
        ({"shape": [10**30, 10**30]}, "is damaged"),
        ({"shape": [-6, -3]}, "must have a dtype, a shape and two data_offsets"),
        ({"shape": 3}, "must have a dtype, a shape and two data_offsets"),
        ({"shape": [6.0, 3.0]}, "must have a dtype, a shape and two data_offsets"),
        ({"data_offsets": [0]}, "must have a dtype, a shape and two data_offsets"),
        ({"dtype": ["F32"]}, "must have a dtype, a shape and two data_offsets"),
        ({"dtype": "F8_E4M3"}, "is of type F8_E4M3, which is not read. Save it as F32"),
    ],
)
def test_a_wrong_entry_of_a_safetensors_file(change, words):
    safetensors_file({"__metadata__": {"a": "b"}, "logits": GOOD | change})
    refused("val.safetensors, logits: ", words, path="val.safetensors", need_labels=False)


def test_a_wrong_header_of_a_safetensors_file():
    write("val.safetensors", struct.pack("<Q", 10**15) + b"{}")
    refused("its header should have 1000000000000000 bytes, and the file has 10", path="val.safetensors")
    write("val.safetensors", b"{}")
    refused("val.safetensors: is not a .safetensors file, or is incomplete", path="val.safetensors")
    for header in (b"{", b"\xff\xfe", b"[" * 100000):
        safetensors_file(header)
        refused("val.safetensors: has a damaged header", path="val.safetensors")
    safetensors_file(b"[]")
    refused("has a header that is not a JSON object", path="val.safetensors")


# ---- .pt


class Marker:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("marker",)


@pytest.mark.parametrize("old", [False, True])
def test_a_pt_with_code_is_refused_and_the_code_not_run(old):
    torch.save({"logits": torch.zeros(6, 3), "x": Marker()}, "val.pt", _use_new_zipfile_serialization=not old)
    refused(
        "val.pt: holds a pickled posix.mkdir; unpickling it could run code, so it is not read",
        'Save only tensors: torch.save({"logits": logits, "labels": labels}, path)',
        path="val.pt",
    )
    assert not Path("marker").exists()
    torch.load("val.pt", weights_only=False)
    assert Path("marker").exists(), "the file would have run code"


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_plain_pickle_is_refused_and_its_code_not_run(protocol):
    write("val.pt", pickle.dumps({"logits": LOGITS, "x": Marker()}, protocol))
    refused("val.pt: ", "which could run code" if protocol == 4 else "", "Save only tensors", path="val.pt")
    assert not Path("marker").exists()


def test_a_pt_with_numpy_arrays_says_how_to_save_them():
    torch.save({"logits": LOGITS, "labels": LABELS}, "val.pt")
    refused("holds a pickled numpy.", "Convert NumPy arrays with torch.from_numpy", path="val.pt")


def test_a_pt_that_holds_other_objects_is_refused():
    torch.save([torch.zeros(2)] * 3, "val.pt")
    refused("must hold a dict of tensors, one tensor, or logits and labels; found a list", path="val.pt")
    torch.save({"logits": torch.eye(3).to_sparse()}, "val.pt")
    refused("val.pt, logits: is a tensor of float32 and layout sparse_coo, which is not read", path="val.pt")
    torch.save({"logits": torch.zeros(3, 2).to(torch.float8_e4m3fn)}, "val.pt")
    refused("val.pt, logits: is a tensor of float8_e4m3fn", path="val.pt")


def test_a_pt_that_changes_while_it_is_read():
    torch.save({"logits": torch.zeros(6, 3)}, "val.pt")
    rows = open_rows("val.pt", need_labels=False)
    torch.save({"logits": torch.zeros(5, 3)}, "val.pt")
    with pytest.raises(InputError, match=r"val\.pt, logits: the file changed while it was read"):
        list(rows.blocks(2))
