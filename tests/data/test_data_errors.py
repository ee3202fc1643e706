"""Wrong files: one sentence that says what is wrong, in which file, at which key."""

import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from refusal import refused, write

from temperance import InputError
from temperance.data import open_rows
from temperance.data.formats import FORMATS
from temperance.data.rows_file import parts

N, K = 6, 3
LOGITS = np.arange(N * K, dtype=np.float32).reshape(N, K)
LABELS = np.arange(N) % K

pytestmark = pytest.mark.usefixtures("own_folder")


# ---- the file


def test_a_file_that_is_not_there():
    refused("val.npz: there is no such file. Check its name", path="val.npz")
    with pytest.raises(InputError, match="no such file"):
        parts("val.npz")


def test_a_folder():
    Path("val.npz").mkdir()
    refused("val.npz: is a folder. Pass the name of a file in it", path="val.npz")


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_empty_file_and_a_file_of_something_else(suffix):
    path = f"val{suffix}"
    write(path, b"")
    refused(f"{path}: is empty. Copy or save it again", path=path)
    write(path, bytes(range(256)) * 20)
    refused(f"{path}: ", path=path, kind="logits", need_labels=False)


def test_an_unknown_suffix_lists_the_known_ones():
    write("val.pkl", b"x")
    known = ", ".join(FORMATS)
    assert {".npz", ".csv", ".parquet", ".pt", ".jsonl", ".h5"} <= set(FORMATS)
    refused(f"val.pkl: must be one of {known}; found the suffix '.pkl'", path="val.pkl")


def test_a_file_that_may_not_be_read(monkeypatch):
    np.save("val.npy", LOGITS)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    refused("val.npy: cannot be read: Permission denied", path="val.npy", kind="logits")


def test_options_that_do_not_exist():
    with pytest.raises(InputError, match=r"part must be one of 'val', 'test'; found 'train'"):
        open_rows("val.npz", part="train")
    with pytest.raises(InputError, match=r"kind must be one of 'logits', 'probs'; found 'odds'"):
        open_rows("val.npz", kind="odds")


# ---- keys


def test_a_file_that_does_not_say_what_it_holds():
    np.save("val.npy", LOGITS)
    says = "does not say whether it holds logits or probabilities. Pass kind='logits' or kind='probs'."
    refused(f"val.npy: {says}", path="val.npy")
    np.savez("val.npz", outputs=LOGITS, labels=LABELS)
    refused(f"val.npz, outputs: {says}", path="val.npz")


def test_a_file_that_contradicts_the_options_is_refused():
    np.savez("val.npz", logits=LOGITS, labels=LABELS)
    refused(
        "val.npz, logits: must hold probs, as requested; found logits. Leave kind out, or choose another",
        path="val.npz",
        kind="probs",
    )


def test_a_file_without_scores():
    np.savez("val.npz", a=LOGITS, b=LOGITS, labels=LABELS)
    refused("must have an array named logits or probs; found a, b, labels. Rename one", path="val.npz")
    np.savez("val.npz", labels=LABELS)
    refused("must have an array named logits or probs; found labels", path="val.npz", kind="logits")
    with zipfile.ZipFile("val.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    refused("val.npz: holds no arrays", path="val.npz")
    torch.save({"epoch": 1}, "val.pt")
    refused("val.pt: holds no arrays", path="val.pt")


def test_a_file_without_labels():
    np.savez("val.npz", logits=LOGITS, target=LABELS)
    refused("val.npz: must have labels; found logits, target. Pass labels='FILE'.", path="val.npz")
    np.savez("val.npz", logits_val=LOGITS, logits_test=LOGITS)
    refused("must have labels_test; found logits_val, logits_test", path="val.npz", part="test")


def test_a_task_file_needs_a_part_and_a_plain_file_has_none():
    np.savez("task.npz", logits_val=LOGITS, logits_test=LOGITS, labels_val=LABELS, labels_test=LABELS)
    refused("task.npz: has two sets of rows, val and test. Pass part='val' or part='test'.", path="task.npz")
    np.savez("val.npz", logits=LOGITS, labels=LABELS)
    refused(
        "must have the part 'val'; found logits, labels: it is not a task file. Leave part out",
        path="val.npz",
        part="val",
    )
    np.savez("half.npz", logits_val=LOGITS, labels_val=LABELS)
    refused("must have the part 'test'; found val. Leave part out", path="half.npz", part="test")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:-1], "found 5 labels for 6 rows"),
        (LABELS - 1, "found other numbers, such as -1, in 2 rows (first: row 0)"),
        (
            np.array(list("abcdef"), object),
            "could run code. Save a plain array of numbers. Save text as np.array(labels, dtype=str)",
        ),
    ],
)
def test_labels_that_do_not_match_are_refused(labels, words):
    np.savez("val.npz", logits=LOGITS, labels=labels)
    refused("val.npz, labels: ", words, path="val.npz")


def test_a_file_of_labels_that_does_not_fit():
    np.savez("val.npz", logits=LOGITS)
    np.save("y.npy", LABELS[:-1])
    refused("y.npy: labels must be integer column indices from 0 to 2", path="val.npz", labels="y.npy")
    refused("nowhere.npy: there is no such file", path="val.npz", labels="nowhere.npy")
    np.savez("y.npz", a=LABELS, b=LABELS)
    refused("y.npz: must have an array named labels; found a, b", path="val.npz", labels="y.npz")


# ---- arrays


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 3, 4)), "found shape (2, 3, 4). Pass dim=1 or dim=2."),
        (np.zeros((5, 0)), "found shape (5, 0). Save one column per class"),
        (np.zeros((0, 3)), "found shape (0, 3). Save at least one row"),
        (np.array(3.0), "must be an array with rows; found a single number"),
        (np.array([["a", "b"]]), "must hold numbers; found <U1"),
        (np.zeros((2, 2), complex), "must hold numbers; found complex128"),
        (np.zeros(3, [("a", "f4")]), "must hold numbers"),
        (
            np.array([[1, None]]),
            "holds Python objects, which are stored as a pickle and could run code",
        ),
    ],
)
def test_arrays_that_are_not_logits_are_refused(array, words):
    np.savez("val.npz", logits=array, labels=LABELS)
    refused("val.npz, logits: ", words, path="val.npz")
    np.save("val.npy", array)
    refused("val.npy: ", words, path="val.npy", kind="logits")


def test_invalid_probabilities_are_named_with_file_key_and_row():
    probs = np.full((N, 2), 0.5)
    probs[4] = 3
    np.savez("val.npz", probs=probs)
    rows = open_rows("val.npz", need_labels=False)
    message = r"^val.npz, probs: probabilities must be .*such as \[3, 3\], in at least 1 row \(first: row 4\)"
    with pytest.raises(InputError, match=message):
        rows.logits()
    with pytest.raises(InputError, match=message):  # counted from the first row, not from the block's
        list(rows.logit_blocks(3))


def test_blocks_need_a_size():
    np.save("val.npy", LOGITS)
    with pytest.raises(InputError, match="rows must be a whole number >= 1; found 0"):
        open_rows("val.npy", kind="logits", need_labels=False).blocks(0)


# ---- packages


class Without:
    """An import system in which a package is not installed."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("package", "format", "extra"),
    [
        ("torch", "a .pt", "torch"),
        ("pyarrow", "a .parquet", "io"),
        ("h5py", "a .h5", "io"),
        ("openpyxl", "an .xlsx", "excel"),
    ],
)
def test_a_missing_package_is_named_with_the_way_to_get_it(package, format, extra, monkeypatch):
    path = f"val{format.split()[1]}"
    write(path, b"x")
    for name in [name for name in sys.modules if re.match(rf"{package}(\.|$)", name)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without(package), *sys.meta_path])
    refused(
        f'{path}: {format} file needs the package {package}: pip install "temperance[{extra}]"', path=path
    )
