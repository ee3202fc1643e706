"""Groups of rows: any ids, and one message per mistake."""

import numpy as np
import pytest

from temperance import InputError
from temperance.inputs.containers import open_labelled
from temperance.inputs.groups import check_groups


@pytest.mark.parametrize(
    "ids",
    [[7, 3, 7, 3], ["b", "a", "b", "a"], [True, False, True, False], np.array(["b", 1, "b", 1], object)],
)
def test_ids_of_any_kind_are_numbered(ids):
    codes = check_groups(ids, 4)
    assert codes[0] == codes[2] != codes[1] == codes[3]
    assert sorted({*codes.tolist()}) == [0, 1]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], r"one id per row.*; found shape \(2,\) for 3 rows"),
        ([1.0, np.nan, 2.0], r"found rows without one in 1 of 3 rows|found rows without one"),
        (np.array(["a", None, "b"], object), "found rows without one"),
        (["a", "a", "a"], "at least 2 different ids; found 1"),
    ],
)
def test_a_mistake_is_named(ids, message):
    with pytest.raises(InputError, match=message):
        check_groups(ids, 3)


def test_pixels_of_an_image_are_a_group():
    logits, labels = np.zeros((3, 2, 4, 5)), np.zeros((3, 4, 5), int)
    opened = open_labelled(logits, labels, dim=1)
    assert opened.groups.tolist() == np.repeat([0, 1, 2], 20).tolist()
    labels[0, 0] = 255
    assert np.bincount(open_labelled(logits, labels, dim=1, ignore_index=255).groups).tolist() == [15, 20, 20]
    by_line = np.broadcast_to(np.arange(4)[None, :, None], (3, 4, 5))
    assert np.bincount(
        open_labelled(logits, labels[:], dim=1, ignore_index=255, groups=by_line).groups
    ).tolist() == [10, 15, 15, 15]
    labels[:2] = 255
    assert open_labelled(logits, labels, dim=1, ignore_index=255).groups is None  # a single image is left


@pytest.mark.parametrize(("shape", "dim"), [((6, 2), -1), ((2, 4, 5), 0), ((1, 4, 2), -1)])
def test_rows_of_a_matrix_or_of_one_image_have_no_groups(shape, dim):
    leading = [size for axis, size in enumerate(shape) if axis != dim % len(shape)]
    assert open_labelled(np.zeros(shape), np.zeros(leading, int), dim=dim).groups is None
