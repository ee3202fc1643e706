"""Each pass over the rows against the definitions; what is counted, kept and shared."""

import numpy as np
import pytest
from core_reference import draw, softmax

from temperance.core import blocks, logit_rows
from temperance.core.blocks import threads
from temperance.core.logit_rows import LogitRows
from temperance.core.row_block import block_type

Z, Y = draw(101, 9, spread=3.0)
BETA = np.geomspace(0.1, 10, len(Z))
X = Z - Z.mean(axis=1, keepdims=True)


def test_top_peak_and_label_gap_are_those_of_each_row():
    rows = LogitRows(Z, Y)
    assert np.array_equal(rows.top, Z.argmax(axis=1))
    assert np.array_equal(rows.peak, Z.max(axis=1))
    assert np.array_equal(rows.label_gap, Z[np.arange(len(Z)), Y] - Z.max(axis=1))
    assert LogitRows(Z).label_gap.size == 0


def test_mean_and_largest_are_exact_for_logits_far_from_zero():
    far = Z + 1e6
    np.testing.assert_allclose(LogitRows(far).mean(), far.mean(axis=1), rtol=1e-15)
    want = np.sort(X, axis=1)[:, ::-1]
    for count in (1, 4, 9):
        np.testing.assert_allclose(LogitRows(far).topk(count), want[:, :count], atol=1e-9)


def test_project_and_gram_use_the_logits_minus_their_mean():
    weights, share = np.arange(9.0) ** 2, np.linspace(0, 1, len(Z))
    others = np.column_stack([BETA, -BETA])
    np.testing.assert_allclose(LogitRows(Z).project(weights)[:, 0], X @ weights, rtol=1e-11, atol=1e-11)
    cross, gram = LogitRows(Z).gram(others, share)
    np.testing.assert_allclose(gram, X.T @ (share[:, None] * X), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(cross, X.T @ others, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(LogitRows(Z).gram(others, None)[0], cross, rtol=1e-13)


def test_an_output_takes_one_temperature_or_one_for_each_row(kernel):
    rows = block_type(1)
    for T, beta in ((1 / 0.7, 0.7), (1 / BETA[:, None], BETA)):
        np.testing.assert_allclose(rows(Z).divide(T), softmax(Z, beta), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(rows(Z, log=True).divide(T), Z * np.broadcast_to(beta, len(Z))[:, None])
    np.testing.assert_allclose(LogitRows(Z).softmax(0.7), softmax(Z, 0.7), rtol=1e-12, atol=1e-300)


def test_a_mixture_is_the_weighted_mean_of_softmaxes_or_its_logarithm(kernel):
    rows, column = block_type(1), BETA[:, None]
    betas, weights = [column, np.full_like(column, np.nan), 1 / column], np.array([0.2, 0.0, 0.8])
    want = 0.2 * softmax(Z, BETA) + 0.8 * softmax(Z, 1 / BETA)
    np.testing.assert_allclose(rows(Z).mixture(betas, weights), want, rtol=1e-11)
    np.testing.assert_allclose(rows(Z, log=True).mixture(betas, weights), np.log(want), rtol=1e-11)


def test_the_logarithm_of_a_mixture_is_finite_where_the_mixture_underflows(kernel):
    z = np.array([[0.0, -5000.0], [-9000.0, 1.0]])
    got = block_type(1)(z, log=True).mixture([1.0, 0.5], np.array([0.5, 0.5]))
    np.testing.assert_allclose(got, [[0, np.log(0.5) - 2500], [np.log(0.5) - 4500.5, 0]], rtol=1e-13)


def test_the_tops_are_found_by_one_pass_and_each_further_call_is_one_too():
    rows = LogitRows(Z, Y)
    assert rows.passes == 0
    rows.moments(1.0)
    assert rows.passes == 2  # the first found the tops
    _ = rows.top, rows.peak, rows.label_gap
    assert rows.passes == 2
    rows.moments(2.0)
    rows.softmax(1.0)
    rows.project(np.ones(9))
    assert rows.passes == 5
    rows.gram(BETA[:, None], BETA)
    assert rows.passes == 6
    for _ in range(2):  # features are kept
        rows.log_entropy()
        rows.topk(3)
        rows.log_sum_at(rows.shape_at(0.5) and 0.5)
    assert rows.passes == 9


def test_passes_counts_how_often_each_number_is_read():
    class Watched(np.ndarray):
        read = 0

        def __getitem__(self, key):
            part = super().__getitem__(key)
            if isinstance(key, slice):
                Watched.read += part.size
            return part.view(np.ndarray)

    rows = LogitRows(Z.view(Watched), Y)
    rows.moments(1.0)
    rows.moments(BETA)
    assert Watched.read == rows.passes * Z.size == 3 * Z.size


def test_every_is_a_view_of_every_nth_row_and_its_label(kernel):
    rows = LogitRows(Z, Y)
    thinned = rows.take(slice(None, None, 7))
    assert np.shares_memory(thinned.values, Z)
    assert np.shares_memory(thinned.labels, Y)
    assert thinned._block is rows._block
    np.testing.assert_allclose(thinned.moments(0.5).mu, rows.moments(0.5).mu[::7], rtol=1e-13)
    assert np.array_equal(thinned.label_gap, rows.label_gap[::7])
    assert LogitRows(Z).take(slice(None, None, 3)).labels is None


def test_some_rows_know_the_tops_that_the_whole_has_found():
    rows = LogitRows(Z, Y)
    index = np.array([3, 50, 7])
    expected = rows.take(index)
    rows.locate()
    for found, want in zip(rows.take(index).locate(), expected.locate(), strict=True):
        np.testing.assert_array_equal(found, want)
    assert rows.take(index).passes == 0


def test_blocks_whose_products_are_summed_have_a_limited_size(monkeypatch):
    monkeypatch.setattr(logit_rows, "GRAM_SIZE", 60)
    rows, sizes = LogitRows(np.zeros((50, 4))), []
    rows.sum(lambda z, i, j, scratch: (np.array([sizes.append(j - i) or 0.0]),))
    assert max(sizes) == 60 // 4
    sizes.clear()
    rows.sum(lambda z, i, j, scratch: (np.array([sizes.append(j - i) or 0.0]),), width=20)
    assert max(sizes) == 60 // 20
    assert sum(sizes) == 50


@pytest.mark.parametrize("n_classes", [3, 40])
def test_kept_gaps_have_the_bits_of_gaps_computed_at_each_pass(n_classes, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 12)
    z, y = draw(300, n_classes)
    z[::7, 0] = -np.inf
    y[::7] = 1
    beta = np.linspace(0.2, 2, len(z))
    found = []
    for most_bytes in (1 << 23, 0):
        monkeypatch.setattr(blocks, "MAX_KEPT_BYTES", most_bytes)
        rows = LogitRows(z, y)
        with threads(2):
            rows.moments(1.0)
            found.append(rows.moments(beta))
    kept, computed = found
    for name in ("log_s", "mu", "v"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(computed, name))


def test_many_numbers_are_not_kept(monkeypatch):
    z = np.zeros((10, 4), np.float32)
    monkeypatch.setattr(blocks, "MAX_KEPT_BYTES", z.nbytes)
    labels = np.zeros(10, int)
    assert LogitRows(z, labels)._gap_cache == {}
    assert LogitRows(z.astype(np.float64), labels)._gap_cache is None
    assert LogitRows(z.astype(np.float16), labels)._gap_cache == {}  # computed in single precision
    assert LogitRows(z)._gap_cache is None  # without labels, there is no fit


def test_moments_without_the_variance_are_the_same():
    z, _ = draw(50, 5)
    full, part = LogitRows(z).moments(0.7), LogitRows(z).moments(0.7, variance=False)
    np.testing.assert_array_equal(part.log_s, full.log_s)
    np.testing.assert_array_equal(part.mu, full.mu)
    assert part.v.size == 0 < full.v.size
