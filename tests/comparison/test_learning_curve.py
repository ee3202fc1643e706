"""The learning curve: nested parts of the validation rows, evaluated on rows that no fit has seen."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from temperance import InputError, compare, make_calibrator, metrics
from temperance.comparison import learning_curve
from temperance.data import simulate

QUICK = {"draws": 20}


@pytest.fixture(scope="module")
def judged():
    val, test = (simulate(n_rows=n, n_classes=4, random_state=s) for n, s in ((300, 3), (700, 8)))
    return (
        compare(val.logits, val.labels, test.logits, test.labels, methods=["ts", "hts"], **QUICK),
        val,
        test,
    )


@pytest.fixture(scope="module")
def alone():
    task = simulate(n_rows=500, n_classes=4, random_state=3)
    return compare(task.logits, task.labels, methods=["ts"], folds=3, **QUICK)


def test_sizes_grow_up_to_all_rows_which_give_the_last_point(judged):
    result, val, test = judged
    curve = learning_curve(result, draws=2)
    assert curve.sizes == (20, 50, 100, 200, 300)
    assert curve.nll.keys() == {"ts", "hts"}
    for key in ("ts", "hts"):
        probs = make_calibrator(key).fit(val.logits, val.labels).predict_proba(test.logits)
        assert curve.nll[key].shape == (5, 2)
        assert curve.nll[key][-1] == pytest.approx(metrics.nll(probs, test.labels), rel=1e-6)
    assert curve.uncalibrated == pytest.approx(result.results["none"].scores["nll"].value, rel=1e-9)


def test_a_point_is_the_fit_to_the_first_rows_of_the_draw(judged):
    result, val, test = judged
    curve = learning_curve(result, sizes=[100], draws=3, random_state=7)
    for draw in range(3):
        rows = np.random.default_rng([7, draw]).permutation(300)[:100]
        probs = make_calibrator("ts").fit(val.logits[rows], val.labels[rows]).predict_proba(test.logits)
        assert curve.nll["ts"][0, draw] == pytest.approx(metrics.nll(probs, test.labels), rel=1e-6)


def test_without_a_test_set_the_last_fifth_of_a_draw_is_used(alone, monkeypatch):
    seen, judged = [], []
    kind = type(alone.results["ts"].calibrator)
    fit, predict = kind.fit, kind.predict_proba

    def spy_on_fit(self, logits, labels, sample_weight=None):
        seen.append(logits)
        return fit(self, logits, labels, sample_weight)

    def spy_on_use(self, logits, **given):
        judged.append(logits)
        return predict(self, logits, **given)

    monkeypatch.setattr(kind, "fit", spy_on_fit)
    monkeypatch.setattr(kind, "predict_proba", spy_on_use)
    curve = learning_curve(alone, draws=2)
    assert curve.sizes == (20, 50, 100, 200, 400)
    assert curve.n_judged == 100
    for fitted, held in zip(seen, judged, strict=True):
        assert len(held) == 100
        assert not np.isin(held[:, 0], fitted[:, 0]).any()


def test_mean_error_and_last_fall_are_over_the_draws(judged):
    curve = learning_curve(judged[0], sizes=[50, 300], draws=4)
    np.testing.assert_allclose(curve.mean("ts"), curve.nll["ts"].mean(axis=1))
    np.testing.assert_allclose(curve.error("ts"), curve.nll["ts"].std(axis=1, ddof=1) / 2)
    assert curve.error("ts")[1] < 1e-7, "all rows are the same in every draw"
    fell = curve.nll["ts"][0] - curve.nll["ts"][1]
    assert curve.last_fall("ts") == pytest.approx((fell.mean(), fell.std(ddof=1) / 2))


def test_the_curve_is_fitted_on_request(monkeypatch):
    task = simulate(n_rows=100, n_classes=3, random_state=3)
    rows = (task.logits, task.labels)
    assert compare(*rows, methods=["ts"], folds=2, **QUICK).learning_curve is None
    found = compare(*rows, methods=["ts"], folds=2, learning_curve=True, random_state=4, **QUICK)
    again = learning_curve(found, random_state=4)
    np.testing.assert_array_equal(found.learning_curve.nll["ts"], again.nll["ts"])


def test_the_same_seed_gives_the_same_curve_and_progress_is_reported(judged):
    told = []
    first = learning_curve(
        judged[0], sizes=[50], draws=2, progress=lambda what, share: told.append((what, share))
    )
    again = learning_curve(judged[0], sizes=[50], draws=2)
    np.testing.assert_array_equal(first.nll["hts"], again.nll["hts"])
    assert [what for what, _ in told] == ["ts, 50 rows", "hts, 50 rows"] * 2
    assert [share for _, share in told] == [0, 0, 0.5, 0.5]


def test_many_test_rows_are_thinned_evenly():
    val, test = (simulate(n_rows=n, n_classes=3, random_state=s) for n, s in ((60, 1), (12_000, 2)))
    result = compare(val.logits, val.labels, test.logits, test.labels, methods=["ts"], **QUICK)
    assert learning_curve(result, sizes=[20], draws=2).n_judged == 5000


def test_with_many_classes_methods_with_class_weights_are_left_out_and_fewer_test_rows_are_used(monkeypatch):
    from temperance.comparison import learning_curve as function
    from temperance.report.page import render_report

    module = sys.modules[function.__module__]
    monkeypatch.setattr(module, "MAX_CLASSES", 3)
    monkeypatch.setattr(module, "MAX_TEST_LOGITS", 400)
    val, test = (simulate(n_rows=n, n_classes=4, random_state=s) for n, s in ((60, 1), (300, 2)))
    methods = ["ts", "lts", "hts", "bayes-bias"]
    result = compare(val.logits, val.labels, test.logits, test.labels, methods=methods, **QUICK)
    curve = learning_curve(result, sizes=[20], draws=2)
    assert curve.nll.keys() == {"ts", "hts"}
    assert curve.n_judged == 100
    assert learning_curve(result, methods=["lts"], sizes=[50], draws=2).nll.keys() == {"lts"}
    told = replace(result, learning_curve=learning_curve(result, draws=2))
    assert "with so many classes: lts, bayes-bias." in render_report(told)


@pytest.mark.parametrize("sizes", [[401], [500], [0], [20.5]])
def test_a_size_that_includes_held_out_rows_is_refused(alone, sizes):
    with pytest.raises(InputError, match=r"sizes must be a whole number from 1 to 400, .*; found"):
        learning_curve(alone, sizes=sizes)
