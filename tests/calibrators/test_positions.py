"""Positions are not classes: no term of a calibrator belongs to a column, and their number may differ."""

import numpy as np
import pandas as pd
import pytest
from compared import ANY_COLUMNS, WEIGH_CLASSES

from temperance import InputError, compare, load, make_calibrator, monitoring, serving
from temperance.data import simulate


def questions(n_rows, n_options, seed=0, temperature=2.0):
    task = simulate(n_rows=n_rows, n_classes=n_options, temperature=temperature, random_state=seed)
    return task.logits, task.labels


@pytest.fixture(scope="module")
def mixed():
    """Return questions with three, four and five options, filled up with -inf."""
    parts = [questions(120, n, seed=n) for n in (3, 4, 5)]
    logits = np.full((360, 5), -np.inf)
    for i, (some, _) in enumerate(parts):
        logits[120 * i : 120 * (i + 1), : some.shape[1]] = some
    order = np.random.default_rng(0).permutation(360)
    return logits[order], np.concatenate([labels for _, labels in parts])[order]


@pytest.fixture(scope="module")
def of_mixed(mixed):
    """Return the calibrator of a method fitted to the mixed questions, always the same: not to be changed."""
    fitted = {key: make_calibrator(key).fit(*mixed, positions=True) for key in ANY_COLUMNS}
    return fitted.__getitem__


@pytest.mark.parametrize("key", ANY_COLUMNS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_does_not_depend_on_order_or_number_of_columns(key, dtype, of_mixed):
    cal, rng = of_mixed(key), np.random.default_rng(1)
    z = (3 * rng.normal(size=(40, 3))).astype(dtype)
    probs, width = cal.predict_proba(z), 7
    order = rng.permutation(width)
    padded = np.full((40, width), -np.inf, dtype)
    padded[:, :3] = z
    got = cal.predict_proba(padded[:, order])[:, np.argsort(order)]
    np.testing.assert_allclose(got[:, :3], probs, rtol=1e-5 if dtype == np.float32 else 1e-12)
    assert not got[:, 3:].any()
    assert (probs.argmax(axis=1) == z.argmax(axis=1)).all()
    for row, one in zip(z, probs, strict=True):
        np.testing.assert_array_equal(cal.predict_proba(row[None])[0], one)


@pytest.mark.parametrize("key", ANY_COLUMNS)
def test_a_file_and_a_service_take_other_numbers_of_options(key, of_mixed, tmp_path):
    cal = of_mixed(key)
    cal.save(tmp_path / "cal.json")
    for reader in (load, serving.load):
        read = reader(tmp_path / "cal.json")
        for n_options in (2, 4, 9):
            z = questions(20, n_options)[0]
            np.testing.assert_array_equal(read.predict_proba(z), cal.predict_proba(z))
    assert load(tmp_path / "cal.json").summary() == cal.summary()


def test_methods_with_numbers_for_columns_refuse_positions_or_other_numbers_of_them():
    with pytest.raises(InputError, match="must have 4 columns; found 3"):
        make_calibrator("pts").fit(*questions(300, 4), positions=True).predict_proba(questions(10, 3)[0])
    for key in WEIGH_CLASSES:
        with pytest.raises(InputError, match="columns must be classes; found positions"):
            make_calibrator(key).fit(*questions(100, 4), positions=True)


def always_first(n_rows, seed):
    """Return questions whose correct answer is always the first, and 52 % of them answered right."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n_rows, 4))
    logits[:, 0] += 2.2
    return logits, np.zeros(n_rows, int)


@pytest.mark.filterwarnings("ignore:.*did not converge")  # as classes, where one is always right
def test_no_accuracy_is_gained_from_positions():
    """As truthfulqa_mc1: as classes, bayes-bias would learn that the first is right and nothing else."""
    logits, labels = always_first(600, 0)
    new, right = always_first(2000, 1)
    own = (new.argmax(axis=1) == right).mean()
    as_classes = make_calibrator("bayes-bias").fit(logits, np.r_[labels[:-3], 1:4])  # classes have labels
    assert (as_classes.predict(new) == right).mean() > own + 0.3
    bias, plain = (
        make_calibrator(key).fit(logits, labels, positions=True) for key in ("bayes-bias", "bayes")
    )
    assert (bias.predict(new) == right).mean() == own
    np.testing.assert_array_equal(bias.predict_proba(new), plain.predict_proba(new))
    assert "class bias: not used; the columns are positions" in bias.summary()
    assert not hasattr(plain, "class_shift_")
    # Whatever the position of the correct answer, the fit is the same.
    order = np.random.default_rng(2).permuted(np.tile(np.arange(4), (600, 1)), axis=1)
    shuffled = np.take_along_axis(logits, order, axis=1)
    other = make_calibrator("bayes").fit(shuffled, np.argmin(order, axis=1), positions=True)
    np.testing.assert_allclose(other.predict_proba(new), plain.predict_proba(new), rtol=1e-3)
    with pytest.raises(InputError, match="class_bias=True adds one bias per class"):
        make_calibrator("bayes", class_bias=True).fit(logits, labels, positions=True)


def test_compare_leaves_out_what_weighs_classes():
    val, test = questions(200, 4), questions(200, 5, seed=1)
    found = compare(*val, *test, methods="all", positions=True, draws=10, progress=False)
    assert set(found.failures) == set(WEIGH_CLASSES) | {"pts", "pts-ece"}
    assert "columns must be classes; found positions" in found.failures["lts"]
    np.testing.assert_array_equal(found.results["bayes-bias"].row_nll, found.results["bayes"].row_nll)
    with pytest.raises(InputError, match="must have the same classes"):
        compare(*val, *test, methods=["ts"], draws=10, progress=False)


def test_positions_have_no_names_and_no_frequencies():
    logits, labels = questions(100, 4)
    frame = pd.DataFrame(logits, columns=list("ABCD"))
    cal = make_calibrator("ts").fit(frame, np.array(list("ABCD"))[labels], positions=True)
    np.testing.assert_array_equal(cal.predict_proba(logits), cal.predict_proba(frame))
    wider = pd.DataFrame(questions(10, 5)[0], columns=list("ABCDE"))
    assert cal.predict_proba(wider).shape == (10, 5)
    assert list(cal.set_output(transform="pandas").transform(wider).columns) == list("ABCDE")
    assert cal.transform(wider.to_numpy()).shape == (10, 5)
    with pytest.raises(InputError, match="fitted on positions, which are not classes"):
        cal.adapt(logits)
    assert "4 positions, fitted on 100 rows" in cal.summary()


def test_checks_of_any_number_of_options_make_one_history(tmp_path):
    cal, history = make_calibrator("bayes").fit(*questions(1500, 4), positions=True), tmp_path / "h.jsonl"
    for n_options in (4, 3, 5):
        logits, labels = questions(600, n_options, seed=n_options)
        found = monitoring.check(cal, logits, labels, history=history, name=str(n_options))
        assert found.action == "keep", found
    logits, labels = questions(600, 5, seed=9, temperature=6.0)
    found = monitoring.check(cal, logits, labels, history=history, name="worse")
    assert (found.action, found.change.gap.column, found.change.classes) == ("refit", None, ())


def test_a_check_does_not_alarm_for_other_positions():
    """Answers that moved to the first position are no change: as classes they would be one."""
    logits, labels = questions(3000, 4)
    new, right = logits[1500:], labels[1500:]
    logits, labels = logits[:1500], labels[:1500]
    order = np.argsort(np.arange(4)[None] != right[:, None], axis=1, kind="stable")
    moved = np.take_along_axis(new, order, axis=1), np.zeros(1500, int)
    as_classes = make_calibrator("ts").fit(logits, labels)
    assert monitoring.check(as_classes, *moved).acts
    cal = make_calibrator("ts").fit(logits, labels, positions=True)
    assert monitoring.check(cal, *moved).action == "keep"
    assert monitoring.check(cal, moved[0]).action == "keep"
