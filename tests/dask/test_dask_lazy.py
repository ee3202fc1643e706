"""A fitted calibrator on Dask arrays is lazy, and gives the same results as in memory."""

import dask.array as da
import numpy as np
import pytest
from compared import CLASS_KEEPING

from temperance import InputError, compare, logits_from_probs, metrics

pytestmark = pytest.mark.usefixtures("in_this_thread")

PARTS = (900, 0, 2000, 100)


@pytest.mark.parametrize("key", CLASS_KEEPING)
def test_every_method_gives_the_same_bits_as_for_an_array(key, fit, task):
    cal = fit(key, task.logits, task.labels)
    lazy = da.from_array(task.logits, chunks=(PARTS, 2))
    methods = ["transform", "predict_proba", "predict"] + ["temperature"] * (key not in ("ets", "mono"))
    for name in methods + ["log_temperature_std"] * (key == "bayes"):
        got, want = getattr(cal, name)(lazy), getattr(cal, name)(task.logits)
        assert isinstance(got, da.Array)
        assert (got.shape, got.dtype, got.chunks[0]) == (want.shape, want.dtype, PARTS)
        np.testing.assert_array_equal(got.compute(), want)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_type_is_known_before_anything_is_computed(dtype, fit, task):
    cal = fit("hts", task.logits, task.labels)
    probs = cal.predict_proba(da.from_array(task.logits.astype(dtype), chunks=(1000, 5)))
    assert probs.dtype == probs.compute().dtype == np.float32


def test_nothing_is_computed_before_it_is_needed(fit, task):
    seen = []

    def note(block):
        seen.append(len(block))
        return block

    lazy = da.from_array(task.logits, chunks=(1000, 5)).map_blocks(note, dtype=float, meta=np.empty((0, 0)))
    probs = fit("hts", task.logits, task.labels).predict_proba(lazy)
    assert seen == []
    probs[1500:1510].compute(scheduler="sync")
    assert seen == [1000]


def test_scores_of_a_binary_classifier(fit, task):
    score, label = task.logits[:, 1] - task.logits[:, 0], task.labels % 2
    cal, lazy = fit("ets", score, label), da.from_array(score, chunks=700)
    assert cal.predict_proba(lazy).shape == (3000, 2)
    for name in ("transform", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(cal, name)(lazy).compute(), getattr(cal, name)(score))


def test_a_frame_of_unknown_length(fit, task):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    cal = fit("hts", task.logits, task.labels)
    frame = dd.from_pandas(pd.DataFrame(task.logits), npartitions=3)
    np.testing.assert_array_equal(cal.predict_proba(frame).compute(), cal.predict_proba(task.logits))
    np.testing.assert_array_equal(cal.temperature(frame).compute(), cal.temperature(task.logits))


def test_the_number_of_classes_is_checked_at_once_and_rows_when_they_are_read(fit, task):
    cal = fit("hts", task.logits, task.labels)
    with pytest.raises(InputError, match=r"fitted on 5 classes.*found 4"):
        cal.predict_proba(da.from_array(task.logits[:, :4], chunks=(1000, 4)))
    spoiled = task.logits.copy()
    spoiled[2100, 0] = np.nan
    probs = cal.predict_proba(da.from_array(spoiled, chunks=(1000, 5)))
    with pytest.raises(InputError, match=r"^logits .*NaN in at least 1 row \(first: row 2100\)"):
        probs.compute(scheduler="sync")


def test_probabilities_become_logits_lazily():
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    lazy = logits_from_probs(da.from_array(probs, chunks=(20, 2)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), logits_from_probs(probs))
    probs[33] /= 2
    with pytest.raises(
        InputError, match=r"found other sums, such as 0.5, in at least 1 row \(first: row 33\)"
    ):
        logits_from_probs(da.from_array(probs, chunks=(20, 2))).compute(scheduler="sync")


def test_dask_collections_are_not_computed_silently(fit, task):
    probs, labels = np.full((3000, 5), 0.2), task.labels
    lazy = da.from_array(probs, chunks=1000)
    for use in (
        lambda: metrics.nll(lazy, labels),
        lambda: metrics.ece(probs, da.from_array(labels)),
        lambda: compare(da.from_array(task.logits), labels),
        lambda: fit("ts", task.logits, da.from_array(labels)),
    ):
        with pytest.raises(InputError, match=r"must be in memory here; found a Dask collection.*compute\(\)"):
            use()


def test_an_invalid_row_in_a_part_of_unknown_position_is_named_within_its_part(fit, task):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    spoiled = task.logits.copy()
    spoiled[2100, 0] = np.nan
    frame = dd.from_pandas(pd.DataFrame(spoiled), npartitions=3)
    message = r"\(first: row 100 of one part; how many rows come before that part is unknown\)"
    with pytest.raises(InputError, match=message):
        fit("ts", task.logits, task.labels).predict_proba(frame).compute()


@pytest.mark.parametrize("key", ["hts", "bayes-bias"])
def test_positions_may_be_more_or_fewer_than_at_the_fit(key, make, task):
    lazy = da.from_array(task.logits, chunks=(1000, 5))
    cal = make(key).fit(lazy, da.from_array(task.labels, chunks=1000), positions=True)
    for columns in (slice(3), slice(None)):
        z = np.hstack([task.logits, task.logits[:, :2]])[:, columns]
        got = cal.predict_proba(da.from_array(z, chunks=(PARTS, 2)))
        assert got.shape == z.shape
        np.testing.assert_array_equal(got.compute(), cal.predict_proba(z))
