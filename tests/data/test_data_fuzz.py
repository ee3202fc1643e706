"""Reading a damaged file returns numbers or one sentence about what is wrong."""

import numpy as np
import pytest
from saved import SAVERS

from temperance import InputError
from temperance.data import open_rows

N, K = 40, 3
RNG = np.random.default_rng(7)
ARRAYS = {"logits": RNG.standard_normal((N, K)).astype(np.float32), "labels": RNG.integers(0, K, N)}
# A checksum covers all numbers of these, so damage never passes for other numbers.
CHECKED = ("npz", "npz-compressed")
TEXT = ("csv", "json-lines")  # which can end anywhere and still be text


def read(path):
    """Return what the file gives: a sentence, or its arrays, which must agree with each other."""
    try:
        rows = open_rows(path, kind="logits")
        whole, blocks = rows.array(), list(rows.blocks(7))
    except InputError as error:
        return str(error)
    assert rows.labels.shape == rows.shape[:1]
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    return whole


@pytest.fixture(params=[*SAVERS, "npy"])
def name(request):
    return request.param


@pytest.fixture
def damaged(name, tmp_path):
    """Return the bytes of a sound file, and a function that reads other bytes in its place."""
    if name == "npy":
        np.save(tmp_path / "labels.npy", ARRAYS["labels"])
        path = tmp_path / "val.npy"
        np.save(path, ARRAYS["logits"])
    else:
        save, suffix = SAVERS[name]
        path = tmp_path / f"val{suffix}"
        save(path, ARRAYS)

    def check(content):
        path.write_bytes(content)
        if name != "npy":
            return read(path)
        try:
            return open_rows(path, kind="logits", labels=tmp_path / "labels.npy").array()
        except InputError as error:
            return str(error)

    return path.read_bytes(), check


def test_a_file_cut_short(name, damaged):
    content, check = damaged
    lengths = {0, 1, 4, 8, 9, *np.linspace(10, len(content) - 1, 40).astype(int).tolist()}
    for length in sorted(lengths):
        found = check(content[:length])
        assert not isinstance(found, str) or "val." in found
        assert isinstance(found, str) or (name in TEXT and len(found) <= N) or length >= len(content) - 2


# The first and last bytes are headers and footers; every fifth of them is enough.
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_bytes_changed(name, damaged, step):
    content, check = damaged
    rng = np.random.default_rng(3)
    places = {*range(min(len(content), 200)), *rng.integers(0, len(content), 200).tolist()}
    places |= set(range(max(0, len(content) - 150), len(content)))
    for place in sorted(places)[::step]:
        other = bytearray(content)
        other[place] ^= 1 << int(rng.integers(8))
        found = check(bytes(other))
        if isinstance(found, str):
            assert "val." in found
            continue
        # In text a digit can become a comma's neighbour, and a line two.
        assert found.shape == (N, K) or name in TEXT, place
        if name in CHECKED:
            np.testing.assert_array_equal(found, ARRAYS["logits"])
