"""Logits of any type and order give the same results, without a copy."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_reference import draw

import temperance
from temperance.core import blocks, logit_rows
from temperance.core.blocks import read_blocks, threads
from temperance.core.logit_rows import LogitRows

# Few enough binary digits that float16 and bfloat16 hold every number exactly.
Z = np.round(draw(211, 13, spread=3.0)[0] * 4) / 4
Y = draw(211, 13)[1]
BETA = np.geomspace(0.1, 4, len(Z))
SHARE = np.linspace(0, 1, len(Z))


def strided(z: np.ndarray) -> np.ndarray:
    """Return the same numbers with gaps between the rows and between the columns."""
    wide = np.full((2 * z.shape[0], 3 * z.shape[1]), np.nan, z.dtype)
    wide[::2, ::3] = z
    return wide[::2, ::3]


FORMS: dict[str, tuple[float, Callable[[np.ndarray], Any]]] = {
    "float64, F order": (1e-12, np.asfortranarray),
    "float64, strided": (1e-12, strided),
    "float64, reversed": (1e-12, lambda z: z[::-1, ::-1].copy()[::-1, ::-1]),
    "float64, big-endian": (1e-12, lambda z: z.astype(">f8")),
    "float32": (2e-6, lambda z: z.astype(np.float32)),
    "float32, F order": (2e-6, lambda z: np.asfortranarray(z.astype(np.float32))),
    "float32, strided": (2e-6, lambda z: strided(z.astype(np.float32))),
    "float16": (2e-6, lambda z: z.astype(np.float16)),
    "float16, F order": (2e-6, lambda z: np.asfortranarray(z.astype(np.float16))),
    "int16": (1e-12, lambda z: (4 * z).astype(np.int16)),
}


def results(values: Any) -> dict[str, np.ndarray]:
    """Return the results of all passes over the values."""
    x = LogitRows(values, Y)
    cross, gram = x.gram(BETA[:, None], SHARE)
    return {
        **vars(x.moments(BETA)),
        "log entropy": x.log_entropy(),
        "log confidence": x.log_confidence(),
        "softmax": x.softmax(0.7),
        "project": x.project(np.linspace(0, 1, 13)),
        "label gap": x.label_gap,
        "gram": gram,
        "cross": cross,
    }


def assert_same(values: Any, want: dict[str, np.ndarray], tolerance: float) -> None:
    for name, got in results(values).items():
        scale = np.abs(want[name]).max()
        np.testing.assert_allclose(got, want[name], rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("key", ["ts", "hts", "ets", "pts", "bayes"])
def test_few_classes_that_come_one_by_one_are_read_in_place_with_the_same_bits(key, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 10)
    z = Z.astype(np.float32)
    by_class = np.asfortranarray(z)
    cal = temperance.make_calibrator(key).fit(Z, Y)
    for method in (cal.predict_proba, cal.transform):
        got = method(by_class)
        assert got.strides == by_class.strides
        np.testing.assert_array_equal(got, method(z))


@pytest.mark.parametrize("form", FORMS)
def test_type_and_order_do_not_matter(kernel, form):
    tolerance, convert = FORMS[form]
    assert_same(convert(Z), results(4 * Z if form == "int16" else Z), tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_a_working_type_in_order_are_read_where_they_are(dtype):
    values = Z.astype(dtype)
    many_classes = np.tile(values, 3)
    for source, in_place in (
        (values, True),
        (np.asfortranarray(values), True),
        (strided(values), False),
        (many_classes, True),
        (np.asfortranarray(many_classes), False),
    ):
        block = next(read_blocks(source))[0]
        assert np.shares_memory(block, source) == in_place
        assert block.flags.c_contiguous or in_place


def measure_peak(work: Callable[[], Any]) -> int:
    """Return the most bytes that were allocated at one time during `work`."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LARGE: dict[str, Callable[[np.ndarray], Any]] = {
    "float32": lambda z: z,
    "float32, F order": np.asfortranarray,
    "float32, every second row": lambda z: np.repeat(z, 2, axis=0)[::2],
    "float16": lambda z: z.astype(np.float16),
    "float64": lambda z: z.astype(np.float64),
}


@pytest.mark.parametrize("form", LARGE)
def test_no_pass_copies_the_whole_array(kernel, monkeypatch, form):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(logit_rows, "GRAM_SIZE", 1 << 14)
    n_rows, n_classes = 20_000, 200
    z = np.random.default_rng(0).normal(size=(n_rows, n_classes)).astype(np.float32)
    z[::2, 0] += 400  # so confident that the entropy is computed from the gaps themselves
    values = LARGE[form](z)
    # A dozen blocks for each of two threads, and 80 bytes for each row: tops, temperatures, moments.
    allowed = 2 * 12 * blocks.BLOCK_BYTES + 80 * n_rows
    assert allowed < z.size  # half of the smallest copy, that of half precision
    matrices = 6 * 8 * n_classes**2
    x = LogitRows(values)
    with threads(2):
        x.moments(1.0)  # modules that are loaded only once
        assert measure_peak(lambda: LogitRows(values).moments(0.5)) < allowed
        assert measure_peak(x.log_entropy) < allowed
        assert measure_peak(lambda: x.project(np.ones(n_classes))) < allowed
        assert measure_peak(lambda: x.topk(3)) < allowed
        assert measure_peak(lambda: x.gram(np.ones((n_rows, 1)), np.ones(n_rows))) < allowed + matrices
