"""A fit to rows in parts equals the fit to all of them, whatever the parts; invalid rows are named."""

import logging
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from compared import CLASS_KEEPING
from dask.callbacks import Callback

from temperance import InputError, make_calibrator
from temperance.calibrators import fit_record
from temperance.core import quantiles
from temperance.core.blocks import sampled_rows
from temperance.dask import fit_data
from temperance.dask.fit_data import _survey
from temperance.data import simulate

pytestmark = pytest.mark.usefixtures("in_this_thread")

METHODS = [key for key in CLASS_KEEPING if key != "pts-ece"]
UNEVEN = (40, 1, 0, 1500, 700, 759)


def largest_difference(one, other):
    """Return the largest relative difference between parameters, and quantiles of T, of two fits."""
    pairs = [(a, other.parameters()[name]) for name, a in one.parameters().items()]
    if hasattr(one, "temperature_quantiles_"):
        pairs.append((one.temperature_quantiles_, other.temperature_quantiles_))
    return max(np.abs(a - b).max() / max(np.abs(a).max(), 1.0) for a, b in pairs if a.size)


def in_parts(array, parts=UNEVEN):
    return da.from_array(array, chunks=(parts, *array.shape[1:]))


@pytest.mark.parametrize("key", METHODS)
def test_parts_of_any_size_give_the_parameters_of_the_whole(key, fit, task, weights):
    whole = fit(key, task.logits, task.labels, weights)
    parts = fit(key, in_parts(task.logits), in_parts(task.labels), in_parts(weights))
    assert largest_difference(whole, parts) < 1e-6
    assert parts.solution_.value == pytest.approx(whole.solution_.value, rel=1e-6)
    for name, errors in whole.standard_errors_.items():
        np.testing.assert_allclose(parts.standard_errors_[name], errors, rtol=1e-3)
    assert (parts.n_rows_, parts.n_classes_) == (np.count_nonzero(weights), 5)


def test_parts_give_the_record_of_the_whole(fit, task, weights, monkeypatch):
    monkeypatch.setattr(fit_record, "HASHED_ROWS", 400)
    monkeypatch.setattr(fit_record, "BASELINE_ROWS", 700)
    whole = fit("ts", task.logits, task.labels, weights)
    parts = fit("ts", in_parts(task.logits), in_parts(task.labels), in_parts(weights))
    assert parts.data_hash_ == whole.data_hash_
    np.testing.assert_allclose(parts.class_counts_, whole.class_counts_, rtol=1e-12)
    assert parts.baseline_.rows == len(weights[weights > 0][::5])
    for name, value in vars(whole.baseline_).items():
        np.testing.assert_allclose(getattr(parts.baseline_, name), value, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("key", ["hts", "bts", pytest.param("ets", marks=pytest.mark.slow)])
def test_threads_give_the_same_bits(key, fit, task, weights):
    one_by_one = fit(key, in_parts(task.logits), task.labels, weights)
    with dask.config.set(scheduler="threads"):
        assert largest_difference(one_by_one, fit(key, in_parts(task.logits), task.labels, weights)) == 0


@pytest.mark.parametrize(
    ("key", "dtype"),
    [("hts", np.float32), ("hts", np.float16), ("hts", np.int64), ("lts", np.float16), ("bts", np.int64)],
)
def test_numbers_of_any_type_give_the_parameters_of_the_whole(key, dtype, fit, task):
    logits = (100 * task.logits).astype(dtype) if dtype is np.int64 else task.logits.astype(dtype)
    whole, parts = fit(key, logits, task.labels), fit(key, in_parts(logits), task.labels)
    assert largest_difference(whole, parts) < 1e-6


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("bayes", {"class_bias": True}),
        ("bayes", {"class_bias": "auto"}),
        ("bayes", {"prior": "weak"}),
        pytest.param("ets", {"loss": "brier"}, marks=pytest.mark.slow),
    ],
)
def test_options_give_the_parameters_of_the_whole(key, options, fit, task):
    whole, parts = (fit(key, z, task.labels, **options) for z in (task.logits, in_parts(task.logits)))
    assert largest_difference(whole, parts) < 1e-6


def test_a_binary_classifier(fit, task):
    score, label = task.logits[:, 1] - task.logits[:, 0], task.labels % 2
    assert largest_difference(fit("hts", score, label), fit("hts", in_parts(score), label)) < 1e-6


def test_a_loss_with_jumps_ends_near_the_same_place(fit, task):
    # The loss jumps where a row changes bins, so the last bit of a sum may change the path.
    whole, parts = (fit("pts-ece", z, task.labels) for z in (task.logits, in_parts(task.logits)))
    assert parts.solution_.value == pytest.approx(whole.solution_.value, abs=2e-3)
    assert parts.solution_.value < fit("ts", task.logits, task.labels).solution_.value


def test_many_rows_are_thinned_out_first_and_the_thin_sample_is_read_in_few_parts(task, weights):
    sample = fit_data.open_fit_data(in_parts(task.logits, (300,) * 10), task.labels, weights)
    thin = sample.every(7)
    at = np.flatnonzero(weights)[sampled_rows(7, np.count_nonzero(weights))]
    assert thin.n_rows == sum(thin.lengths) == len(at)
    assert len(thin.parts) == 2
    parts = dask.compute(*thin.parts)
    held = [np.concatenate([part[i] for part in parts]) for i in range(3)]
    for got, all_rows in zip(held, (task.logits, task.labels, weights), strict=True):
        np.testing.assert_array_equal(got, all_rows[at])
    assert thin.total_weight == pytest.approx(weights[at].sum())
    assert sample.every(1) is sample


def test_rows_beyond_the_memory_of_the_workers_are_subsampled_more(task, monkeypatch):
    sample = fit_data.open_fit_data(in_parts(task.logits), task.labels, None)
    assert sample.thinning == 16
    monkeypatch.setattr("temperance.core.objective.MAX_THIN_BYTES", task.logits.nbytes // 50)
    assert sample.thinning == 50


def test_quantiles_that_need_a_second_look_are_exact(fit, task, weights, monkeypatch):
    whole = fit("bts", task.logits, task.labels, weights, bins=20)
    monkeypatch.setattr(quantiles, "POINTS", 50)
    parts = fit("bts", in_parts(task.logits), task.labels, weights, bins=20)
    assert largest_difference(whole, parts) < 1e-6


def test_labels_and_weights_may_have_other_chunks(fit, task, weights):
    whole = fit("hts", task.logits, task.labels, weights)
    logits = in_parts(task.logits, (2000, 1000)).rechunk((2000, 2))  # classes apart, too
    parts = fit("hts", logits, in_parts(task.labels, (500,) * 6), in_parts(weights, (3000,)))
    assert largest_difference(whole, parts) < 1e-6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, for what Dask does with it
def test_a_frame_of_unknown_length_and_a_parquet_file(fit, task, weights, tmp_path):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    whole = fit("hts", task.logits, task.labels, weights)
    frame = pd.DataFrame(task.logits, columns=[f"class {k}" for k in range(5)])
    frame = frame.assign(label=task.labels, weight=weights)
    dd.from_pandas(frame, npartitions=4).to_parquet(tmp_path / "rows.parquet")
    stored = dd.read_parquet(tmp_path / "rows.parquet")
    logits = stored[[f"class {k}" for k in range(5)]]
    assert largest_difference(whole, fit("hts", logits, stored["label"], stored["weight"])) < 1e-6
    assert largest_difference(whole, fit("hts", logits, task.labels, in_parts(weights))) < 1e-6
    few = dd.from_pandas(frame, npartitions=3)["label"].to_dask_array()  # unknown, and cut elsewhere
    assert largest_difference(whole, fit("hts", logits, few, weights)) < 1e-6


class Seen(Callback):
    """Take note of the tasks that Dask runs, as its progress bar does."""

    def __init__(self):
        super().__init__(pretask=lambda key, graph, state: self.names.add(str(key).split("-")[:2][-1]))
        self.names = set()


def test_progress_can_be_seen_by_name_and_in_the_log(task, caplog):
    with Seen() as seen, caplog.at_level(logging.INFO, "temperance"), dask.config.set(scheduler="sync"):
        make_calibrator("bts").fit(in_parts(task.logits), task.labels)
    assert {"sum", "objective", "sketch"} <= seen.names
    assert any("pass 3 over 3000 rows in 6 parts: objective" in line for line in caplog.messages)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda z, y, w: y.__setitem__(1700, 9),
            r"^labels .*0 to 4.*such as 9, in at least 1 row .*row 1700\)",
        ),
        (
            lambda z, y, w: z.__setitem__((2500, 2), np.nan),
            r"^logits .*NaN in at least 1 row .*row 2500\)",
        ),
        (lambda z, y, w: z.__setitem__((3, 2), np.inf), r"^logits must be finite.*row 3\)"),
        (
            lambda z, y, w: w.__setitem__(2000, -1),
            r"one finite number >= 0.*such as -1.0, in at least 1 row \(first: row 2000\)",
        ),
        (lambda z, y, w: w.__setitem__(slice(None), 0), "found zero in all 3000 rows"),
        (lambda z, y, w: w.__setitem__(slice(None), 1e120), "must have a sum from 1e-100 to 1e100; found"),
    ],
    ids=["label", "nan", "inf", "negative weight", "no weight", "huge weights"],
)
def test_bad_rows_are_named_where_they_are(spoil, message, task, weights):
    z, y, w = task.logits.copy(), task.labels.copy(), weights + 0.1
    spoil(z, y, w)
    with pytest.raises(InputError, match=message):
        make_calibrator("hts").fit(in_parts(z), in_parts(y), in_parts(w))


@pytest.mark.parametrize("key", ["lts", "pts"])
def test_a_masked_class_is_refused_by_the_methods_that_weigh_every_logit(key, task):
    z = task.logits.copy()
    z[2900, (task.labels[2900] + 1) % 5] = -np.inf
    with pytest.raises(InputError, match=r"-inf in at least 1 row \(first: row 2900\)"):
        make_calibrator(key).fit(in_parts(z), task.labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda z, y: (z, y[:-1]), r"labels must have one number per row; found shape \(2999,\) for 3000"),
        (
            lambda z, y: (z, in_parts(y[:-1], (2999,))),
            "labels must have one number per row; found 2999 for 3000 rows",
        ),
        (
            lambda z, y: (z, da.stack([in_parts(y)] * 2)),
            "labels must have one number per row; found 2 dimensions",
        ),
        (lambda z, y: (z[:0], y[:0]), "logits have no rows"),
        (lambda z, y: (z[:, :1], y), "found 1 column"),
        (lambda z, y: (z[:, :, None], y), "found 3 dimensions"),
        (lambda z, y: (z.astype(str), y), "floating point numbers; found <U"),
    ],
)
def test_shapes_and_types_are_checked_before_anything_is_computed(change, message, task):
    def explode(block):
        raise AssertionError("computed")

    logits, labels = change(in_parts(task.logits).map_blocks(explode, dtype=float), task.labels)
    with pytest.raises(InputError, match=message):
        make_calibrator("ts").fit(logits, labels)


@pytest.mark.parametrize("key", ["hts", "pts"])
def test_sgd_needs_the_rows_in_memory_and_says_so(key, task):
    with pytest.raises(InputError, match=r"draws rows at random, so it needs them in memory; found a Dask"):
        make_calibrator(key, solver="sgd").fit(in_parts(task.logits), task.labels)


def test_without_dask_the_sentence_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("temperance.dask")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r'pip install "temperance\[dask\]"'):
        import temperance.dask  # noqa: F401


@pytest.mark.parametrize("step", [1, 4, 7])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 90])
def test_samples_of_parts_are_those_of_the_whole_and_none_of_a_part_without_sampled_rows(step, size):
    rows, weights, taken = simulate(90, 4, random_state=0), np.arange(1.0, 91.0), []
    wanted = sampled_rows(step, 90)
    samples = [(step, lambda some, weights: (some.values, weights))]
    for start in range(0, 90, size):
        at = slice(start, start + size)
        part = rows.logits[at], rows.labels[at], weights[at], start
        _, (found,) = _survey((lambda some, weights: (), samples), part, 90)
        assert (found is None) == (not set(wanted) & set(range(90)[at]))
        taken += [] if found is None else [found]
    np.testing.assert_array_equal(np.concatenate([values for values, _ in taken]), rows.logits[wanted])
    np.testing.assert_array_equal(np.concatenate([weights for _, weights in taken]), weights[wanted])
