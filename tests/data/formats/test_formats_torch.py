"""Files of torch.save with lists and pairs, and names of classes in .npz."""

import numpy as np
import pytest
import torch

from temperance import InputError
from temperance.data import open_rows

LOGITS = torch.tensor([[0.5, 1.5, -2.0], [3.0, 0.25, 1.0], [0.0, 0.0, 4.0]])
LABELS = torch.tensor([1, 0, 2])
NAMES = ["cat", "dog", "owl"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "val.pt"


@pytest.mark.parametrize("labels", [LABELS, [1, 0, 2], ["dog", "cat", "owl"], ("dog", "cat", "owl")])
@pytest.mark.parametrize(("old", "key"), [(False, "classes"), (True, "classes"), (False, "class_names")])
def test_labels_and_classes_may_be_lists(path, labels, old, key):
    content = {"logits": LOGITS, "labels": labels, key: NAMES, "epoch": 3, "history": [0.5, 0.25]}
    torch.save(content, path, _use_new_zipfile_serialization=not old)
    rows = open_rows(path)
    assert rows.class_names == tuple(NAMES)
    np.testing.assert_array_equal(rows.logits(), LOGITS.numpy())
    assert rows.labels.tolist() == [1, 0, 2]


@pytest.mark.parametrize("labels", [LABELS, [1, 0, 2], LABELS.to(torch.uint8)])
@pytest.mark.parametrize("kind", [tuple, list])
def test_a_pair(path, labels, kind):
    torch.save(kind([LOGITS, labels]), path)
    rows = open_rows(path, kind="logits")
    np.testing.assert_array_equal(rows.logits(), LOGITS.numpy())
    assert rows.labels.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        ((LABELS, LOGITS), r"found int64 \(3,\) and float32 \(3, 3\)"),
        ((LOGITS, LOGITS), r"found float32 \(3, 3\) and float32 \(3, 3\)"),
        ((LOGITS, LABELS.float()), r"found float32 \(3, 3\) and float32 \(3,\)"),
        ((LOGITS, {"a": 1}), r"found float32 \(3, 3\) and a dict"),
        (([0.5, 0.5], LABELS), r"found a list of float and int64 \(3,\)"),
    ],
)
def test_another_pair_is_refused_with_advice(path, pair, found):
    torch.save(pair, path)
    with pytest.raises(InputError, match=rf"in this order; {found}\. Save only tensors: torch\.save"):
        open_rows(path, kind="logits")


def test_classes_that_do_not_fit(path):
    torch.save({"logits": LOGITS, "labels": LABELS, "classes": ["cat", "cat", "dog"]}, path)
    with pytest.raises(
        InputError, match="classes must be 3 different names, one per class; found 3, 2 of them different"
    ):
        open_rows(path)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ([1.0, 0.0, 2.0], "a list of float"),
        ([torch.tensor(1), torch.tensor(0), torch.tensor(2)], "a list of Tensor"),
        ((1, "cat", 2), "a tuple of int and str"),
        ({"a.png": 1}, "a dict"),
    ],
)
def test_labels_of_another_kind_are_refused_and_not_missing(path, labels, found):
    torch.save({"logits": LOGITS, "labels": labels}, path)
    with pytest.raises(
        InputError, match=f"labels: must be a tensor, or a list of whole numbers or of text; found {found}"
    ):
        open_rows(path)
    np.testing.assert_array_equal(open_rows(path, need_labels=False).logits(), LOGITS.numpy())
    np.save(path.with_suffix(".npy"), LABELS.numpy())
    assert open_rows(path, labels=path.with_suffix(".npy")).labels.tolist() == [1, 0, 2]


def test_labels_that_are_none_are_missing(path):
    torch.save({"logits": LOGITS, "labels": None}, path)
    with pytest.raises(InputError, match=r"must have labels; found logits\. Pass labels"):
        open_rows(path)


def test_other_lists_are_not_arrays(path):
    torch.save({"a": LOGITS, "b": LABELS, "files": ["1.png"], "class_names": {"cat": 0}}, path)
    with pytest.raises(InputError, match=r"must have an array named logits or probs; found a, b\."):
        open_rows(path)


def test_names_of_classes_in_an_npz_may_be_whole_numbers(tmp_path):
    path = tmp_path / "val.npz"
    np.savez(path, logits=LOGITS.numpy(), labels=[1, 0, 2], classes=[10, 20, 30])
    with pytest.raises(InputError, match=r"class names are whole numbers.*: 10, 20, 30; found 1 in 3 rows"):
        open_rows(path)
    np.savez(path, logits=LOGITS.numpy(), labels=[20, 10, 30], classes=[10, 20, 30])
    rows = open_rows(path)
    assert (rows.class_names, rows.labels.tolist()) == (("10", "20", "30"), [1, 0, 2])
