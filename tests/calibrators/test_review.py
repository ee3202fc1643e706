"""Bugs that a critical review once found, each with the case that showed it."""

import threading

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_info

import temperance
from temperance import InputError, make_calibrator, metrics
from temperance.data import simulate


def noisy_labels(seed):
    """Return a confident classifier; one label in ten is drawn uniformly at random."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((3000, 6))
    scaled = np.exp(2 * (logits - logits.max(axis=1, keepdims=True)))
    p = 0.9 * scaled / scaled.sum(axis=1, keepdims=True) + 0.1 / 6
    return logits, (p.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_ets_reaches_what_another_solver_finds_from_many_starts(loss, seed):
    logits, labels = noisy_labels(seed)
    cal = make_calibrator("ets", loss=loss).fit(logits, labels)

    def value(x):
        weights = np.array([1 - x[1] - x[2], x[1], x[2]]).clip(1e-12)
        parts = [np.exp(b * (logits - logits.max(axis=1, keepdims=True))) for b in (np.exp(-x[0]), 1, 0)]
        p = sum(
            w * q / q.sum(axis=1, keepdims=True) for w, q in zip(weights / weights.sum(), parts, strict=True)
        )
        return getattr(metrics, loss)(p, labels)

    found = [
        minimize(
            value,
            [log_t, 0.1, third],
            method="SLSQP",
            bounds=[(-2.5, 2.5), (0, 1), (0, 1)],
            constraints={"type": "ineq", "fun": lambda x: 1 - x[1] - x[2]},
        ).fun
        for log_t in (-1.5, -0.5, 0.5)
        for third in (0.05, 0.3)
    ]
    assert cal.solution_.value <= min(found) + 1e-5


def test_calls_from_several_threads_do_not_change_the_threads_of_the_linear_algebra_library():
    task = simulate(20_000, 10)
    cal = make_calibrator("hts").fit(task.logits, task.labels)
    before = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    threads = [threading.Thread(target=cal.predict_proba, args=(task.logits,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    assert after == before


def test_pts_does_not_depend_on_the_order_of_many_rows():
    task = simulate(9_000, 10, random_state=1)
    order = np.random.default_rng(0).permutation(9_000)
    one = make_calibrator("pts").fit(task.logits, task.labels)
    other = make_calibrator("pts").fit(task.logits[order], task.labels[order])
    np.testing.assert_allclose(one.predict_proba(task.logits), other.predict_proba(task.logits), atol=1e-4)


def test_bts_gives_a_row_the_same_temperature_in_any_batch():
    task = simulate(20_000, 10)
    logits = task.logits.astype(np.float32)
    cal = make_calibrator("bts").fit(logits, task.labels)
    whole = cal.temperature(logits)
    parts = np.concatenate([cal.temperature(logits[i : i + 7]) for i in range(0, 20_000, 7)])
    np.testing.assert_array_equal(whole, parts)


def test_labels_that_always_have_the_second_logit_give_a_temperature_and_a_warning():
    logits = 3 * np.random.default_rng(0).standard_normal((300, 5))
    with pytest.warns(UserWarning, match="All 300 rows are classified wrong.*labels and columns match"):
        cal = make_calibrator("ts").fit(logits, np.argsort(logits, axis=1)[:, -2])
    assert cal.solution_.converged
    rescaled = logits / cal.temperature_
    p = np.exp(rescaled - rescaled.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    # The score is 0 at a maximum of the likelihood: the expected logit is that of the label.
    expected, observed = (p * logits).sum(axis=1), np.sort(logits, axis=1)[:, -2]
    assert expected.mean() == pytest.approx(observed.mean(), abs=1e-5)


def test_labels_no_better_than_chance_give_a_warning():
    rng = np.random.default_rng(4)
    logits = rng.standard_normal((1000, 10))
    labels = np.where(rng.random(1000) < 0.9, logits.argmin(axis=1), logits.argmax(axis=1))
    with pytest.warns(UserWarning, match="no better than chance.*weak prior, T is"):
        assert make_calibrator("ts").fit(logits, labels).temperature_ < 1e4


@pytest.mark.parametrize("key", ["ts", "bayes", "mono", "hts"])
def test_labels_shifted_by_one_class_give_a_warning(key):
    task = simulate(600, 10, random_state=1)
    shifted = (3 * task.logits).argmax(axis=1) + 1
    shifted = np.where(np.arange(600) % 50 == 0, task.logits.argmax(axis=1), shifted % 10)  # some are right
    with pytest.warns(UserWarning, match="no better than chance: check that labels and columns match"):
        make_calibrator(key).fit(task.logits, shifted)


def test_rows_without_weight_are_not_counted():
    task = simulate(60, 3, random_state=0)
    right = task.logits.argmax(axis=1) == task.labels
    assert not right.all()
    with pytest.warns(
        UserWarning, match=f"All {right.sum()} rows are classified right.*until some are wrong"
    ):
        make_calibrator("ts").fit(task.logits, task.labels, sample_weight=right.astype(float))


def test_set_params_after_a_fit_changes_neither_what_is_computed_nor_what_is_saved(tmp_path):
    task = simulate(500, 4)
    for key, options, later in (
        ("bts", {"bins": 6}, {"bins": 9}),
        ("pts", {"hidden": (4,), "top_k": 3}, {"hidden": (5, 5), "top_k": 2}),
    ):
        cal = make_calibrator(key, **options).fit(task.logits, task.labels)
        before = cal.predict_proba(task.logits)
        cal.set_params(**later)
        cal.save(tmp_path / f"{key}.json")
        np.testing.assert_array_equal(cal.predict_proba(task.logits), before)
        np.testing.assert_array_equal(
            temperance.load(tmp_path / f"{key}.json").predict_proba(task.logits), before
        )


def test_numpy_masks_are_refused_and_not_lost():
    task = simulate(50, 3)
    masked = np.ma.masked_array(task.logits, mask=np.zeros((50, 3), bool))
    masked[3, 1] = np.ma.masked
    with pytest.raises(InputError, match=r"must not be masked.*found 1 masked number"):
        make_calibrator("ts").fit(masked, task.labels)


def test_compare_leaves_out_methods_without_support_for_masks():
    task = simulate(400, 4)
    logits = task.logits.copy()
    hidden = (task.labels != 3) & (np.arange(400) % 5 == 0)
    logits[hidden, 3] = -np.inf
    result = temperance.compare(logits, task.labels, methods="all", draws=20)
    assert list(result.results) == ["none", "ts", "hts", "bts", "ets", "mono", "bayes", "bayes-bias"]
    with pytest.raises(InputError, match=r"-inf in \d+ rows"):
        temperance.compare(logits, task.labels, methods=["lts"])


def test_compare_reports_nan_in_the_test_logits():
    task = simulate(400, 4)
    test = task.logits.copy()
    test[7, 2] = np.nan
    with pytest.raises(InputError, match=r"NaN in 1 row \(first: row 7\)"):
        temperance.compare(simulate(400, 4, random_state=1).logits, task.labels, test, task.labels, draws=20)


def test_weights_with_an_extreme_sum_are_refused():
    task = simulate(50, 3)
    for weight in (1e-310, 1e308):
        with pytest.raises(InputError, match="must have a sum from 1e-100 to 1e100; found"):
            make_calibrator("ts").fit(task.logits, task.labels, np.full(50, weight))


def test_quantiles_count_a_weight_as_repetition():
    task = simulate(300, 4)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    one = make_calibrator("hts").fit(task.logits, task.labels, weights)
    other = make_calibrator("hts").fit(*(np.repeat(a, weights, axis=0) for a in (task.logits, task.labels)))
    np.testing.assert_allclose(one.temperature_quantiles_, other.temperature_quantiles_, rtol=1e-6)


def test_saving_into_a_missing_folder_names_it(tmp_path):
    task = simulate(100, 3)
    cal = make_calibrator("ts").fit(task.logits, task.labels)
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        cal.save(tmp_path / "nowhere" / "cal.json")
