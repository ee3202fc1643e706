"""Probabilities of 0: every reader raises them to the same floor, which the calibrator stores."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from temperance import (
    InputError,
    compare,
    load,
    logits_from_probs,
    make_calibrator,
    probability_floor,
)
from temperance.data import open_rows, simulate
from temperance.formulas.fit_record import FittedOn
from temperance.study.tasks import find_tasks, load_task

EPS = np.finfo(np.float64).eps


@pytest.fixture(scope="module")
def forest():
    """Return the votes of 20 trees for 4 classes in 240 and 100 rows, many of them 0, with labels."""
    X, y = make_classification(740, 10, n_informative=6, n_classes=4, flip_y=0.2, random_state=5)
    model = RandomForestClassifier(20, max_depth=None, random_state=0).fit(X[:400], y[:400])
    probs = model.predict_proba(X[400:])
    return (probs[:240], y[400:640]), (probs[240:], y[640:])


@pytest.fixture
def files(forest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (probs, labels), (new, new_labels) = forest
    np.savez("val.npz", probs=probs, labels=labels)
    np.savez("test.npz", probs=new, labels=new_labels)
    np.savez("task.npz", probs_val=probs, labels_val=labels, probs_test=new, labels_test=new_labels)


@pytest.fixture
def run(files, run_command):
    def run(*words):
        code, _, err = run_command(*words)
        assert code == 0, err
        return err

    return run


def test_all_zeros_of_a_row_together_get_at_most_half_of_the_smallest_probability():
    assert probability_floor([[0.5, 0.5, 0], [0.25, 0.25, 0.5]]) == 0.25 / 6
    assert probability_floor([[1, 0, 0], [1, 0, 0]]) == 1 / 6
    logits = logits_from_probs([[1.0, 0, 0], [0.2, 0.3, 0.5]])
    np.testing.assert_allclose(np.exp(logits[0]), [1, 0.2 / 6, 0.2 / 6])


def test_the_floor_is_never_below_the_precision_of_a_float_where_there_is_a_zero():
    probs = np.array([[1 - 1e-200, 1e-200], [1.0, 0.0]])
    assert probability_floor(probs) == EPS
    np.testing.assert_allclose(logits_from_probs(probs)[:, 1], np.log(EPS))


def test_without_a_zero_nothing_is_raised():
    probs = np.array([[1 - 1e-200, 1e-200], [0.5, 0.5]])
    np.testing.assert_array_equal(logits_from_probs(probs), np.log(probs))
    assert 0 < probability_floor(probs) <= 1e-200


def test_a_given_floor_is_used_and_0_keeps_impossible_classes():
    probs = [[0.9, 0.1, 0.0], [0.999, 0.001, 0.0]]
    np.testing.assert_allclose(np.exp(logits_from_probs(probs, floor=0.01))[:, 1:], [[0.1, 0.01], [0.01] * 2])
    assert np.isneginf(logits_from_probs(probs, floor=0)[:, 2]).all()
    for floor in (-0.1, 1, np.nan, "small"):
        with pytest.raises(InputError, match="floor must be a number from 0 to 1"):
            logits_from_probs(probs, floor=floor)


def test_one_column_of_two_classes_may_be_0_and_1():
    logits = logits_from_probs(np.array([0.0, 1.0, 0.5, 0.9]))
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits, [np.log(0.025), -np.log(0.025), 0, np.log(9)], rtol=1e-9)
    make_calibrator("ts").fit(logits, [0, 1, 1, 0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_floor_may_be_below_the_range_of_a_small_float(dtype):
    logits = logits_from_probs(np.array([[1, 0], [0.5, 0.5]], dtype), floor=1e-12)
    assert logits.dtype == dtype
    assert logits[0, 1] == dtype(np.log(1e-12))


def test_dask_finds_the_floor_of_all_blocks(forest):
    arrays = pytest.importorskip("dask.array")
    probs = np.array([[0.5, 0.5, 0.0]] * 4 + [[0.9, 0.06, 0.04]] * 4)
    lazy = arrays.from_array(probs, chunks=(2, 3))
    assert probability_floor(lazy) == probability_floor(probs)
    np.testing.assert_array_equal(logits_from_probs(lazy).compute(), logits_from_probs(probs))
    np.testing.assert_array_equal(logits_from_probs(lazy, 0.01).compute(), logits_from_probs(probs, 0.01))
    np.testing.assert_array_equal(logits_from_probs(lazy[:, 0]).compute(), logits_from_probs(probs[:, 0]))


def test_a_file_has_one_floor_however_it_is_read(files, forest):
    probs = forest[0][0]
    rows = open_rows("val.npz")
    assert rows.low_end().n_rows_with_zero == (probs == 0).any(axis=1).sum() > 20
    np.testing.assert_array_equal(np.concatenate(list(rows.logit_blocks(7))), logits_from_probs(probs))
    told = open_rows("val.npz", floor=0.3)
    np.testing.assert_array_equal(told.logits(), logits_from_probs(probs, floor=0.3))


def test_fit_records_the_floor_and_says_so(run, forest):
    said = run("fit", "val.npz", "-m", "lts", "-o", "cal.json")
    probs, labels = forest[0]
    floor, zeros = probability_floor(probs), (probs == 0).any(axis=1).sum()
    assert load("cal.json").fitted_on_ == FittedOn("probabilities", floor)
    assert f"probability 0 in {zeros} of 240 rows: raised to {floor:.3g}, half of the smallest" in said
    wanted = make_calibrator("lts").fit(logits_from_probs(probs), labels)
    np.testing.assert_array_equal(load("cal.json").class_weights_, wanted.class_weights_)


def test_probabilities_above_0_that_are_raised_are_counted_too(run):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=60)
    probs[:10, 0], probs[10:15, 0] = 0, 1e-40
    np.savez("tiny.npz", probs=probs / probs.sum(axis=1, keepdims=True), labels=rng.integers(0, 3, 60))
    said = run("fit", "tiny.npz", "-m", "ts", "-o", "cal.json")
    assert "probabilities below 2.22e-16 in 15 of 60 rows: raised to it, the precision of a float" in said
    np.savez("few.npz", probs=np.array([[0.3, 0.3, 0.4], [1.0, 1e-17, 1e-18]]))
    said = run("apply", "cal.json", "few.npz", "-o", "out.npz")
    assert "probabilities below 2.22e-16 in 1 of 2 rows: raised to it, as at the fit" in said


@pytest.mark.filterwarnings("ignore:100 rows do not determine")
def test_apply_evaluate_and_adapt_use_the_floor_of_the_fit(run, forest):
    run("fit", "val.npz", "-m", "bayes-bias", "-o", "cal.json")
    cal, one = load("cal.json"), np.array([[0.6, 0.4, 0.0, 0.0], [0.6, 0.4, 0.0, 0.0]])
    np.savez("one.npz", probs=one)
    said = run("apply", "cal.json", "one.npz", "-o", "probs.npz")
    assert "probability 0 in 2 of 2 rows: raised to" in said
    assert "as at the fit" in said
    logits = logits_from_probs(one, cal.fitted_on_.floor)
    np.testing.assert_allclose(np.load("probs.npz")["probs"], cal.predict_proba(logits), rtol=1e-12)
    assert "as at the fit" in run("evaluate", "test.npz", "-c", "cal.json", "--draws", "5")
    run("adapt", "cal.json", "test.npz", "-o", "adapted.json")
    wanted = cal.adapt(logits_from_probs(forest[1][0], cal.fitted_on_.floor))
    np.testing.assert_allclose(load("adapted.json").log_prior_ratio_, wanted.log_prior_ratio_)


def test_a_calibrator_without_a_floor_keeps_impossible_classes(run, forest):
    floorless = make_calibrator("ts").fit(logits_from_probs(forest[0][0]), forest[0][1])
    record = replace(floorless.model_.record, fitted_on=FittedOn("probabilities"))
    floorless.model_ = replace(floorless.model_, record=record)
    floorless.save("old.json")
    assert "kept as impossible classes, as at the fit" in run(
        "apply", "old.json", "test.npz", "-o", "out.npz"
    )
    assert (np.load("out.npz")["probs"] == 0).sum() == (forest[1][0] == 0).sum()


def test_compare_uses_one_floor_for_both_parts_and_drops_no_method(run):
    said = run("compare", "task.npz", "-m", "ts,lts", "--json")
    assert said.count("probability 0 in") == 2
    assert "as in the validation rows" in said
    assert "failed" not in said


def test_a_model_of_probabilities_takes_them(run, run_command, forest):
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json")
    _, said, _ = run_command("export", "cal.json", "cal.onnx")
    assert "ts: from probabilities (batch, 4) to calibrated_probabilities (batch, 4)" in said


def test_the_report_says_what_counts_for_zeros(run, forest):
    floor = f"{probability_floor(forest[0][0]):.3g}"
    run("compare", "task.npz", "-m", "ts,lts", "--report", "page.html", "-f")
    page = Path("page.html").read_text(encoding="utf-8")
    assert f"In the scores before calibration, probabilities below {floor} count as {floor}." in page


def test_a_classifier_that_needs_no_calibration_still_needs_the_floor():
    task = simulate(400, 3, random_state=0)
    result = compare(task.logits / 2, task.labels, methods=["ts"], draws=5, progress=False)
    left = replace(result.verdict, method="none")
    assert left.advice == "Leave the classifier as it is."
    assert replace(left, floor=0.01).advice.endswith("but raise probabilities below 0.01 to this value.")
    assert replace(left, floor=0.01).to_dict()["floor"] == 0.01


def test_a_study_has_one_floor_for_both_parts(files, forest):
    (task,) = find_tasks(["task.npz"])
    floor = np.log(probability_floor(forest[0][0]))
    loaded = load_task(task)
    assert loaded.val.logits.min() == pytest.approx(floor)
    assert loaded.test.logits.min() == pytest.approx(floor)


def test_calarena_keeps_the_floor_of_its_fit(forest, benchmark_script):
    (probs, labels), _ = forest
    cal = benchmark_script("calarena").CalArenaCalibrator("ts").fit(probs, labels)
    assert cal.floor_ == probability_floor(probs)
    one = cal.predict_proba(np.array([[0.6, 0.4, 0.0, 0.0]]))
    wanted = cal.calibrator_.predict_proba(logits_from_probs([[0.6, 0.4, 0.0, 0.0]], cal.floor_))
    np.testing.assert_array_equal(one, wanted)
