"""A weight k is k copies of the row in fits and scores; rows of weight 0 are dropped before anything else."""

import numpy as np
import pytest

from temperance import compare, make_calibrator, metrics, monitoring
from temperance.data import simulate
from temperance.errors import InputWarning
from temperance.inputs.containers import open_labelled


@pytest.fixture(scope="module")
def task():
    return simulate(n_rows=900, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def padded(task):
    """Rows among which every third has weight 0, and logits and a label that would change any answer."""
    weights = np.tile([1.0, 0.0, 2.0], 300)
    logits = np.where(weights[:, None] > 0, task.logits, 40 * task.logits)
    labels = np.where(weights > 0, task.labels, (task.labels + 1) % 3)
    return logits, labels, weights


def counted(padded):
    logits, labels, weights = padded
    kept = weights > 0
    return logits[kept], labels[kept], weights[kept]


@pytest.mark.parametrize("method", ["ts", "bayes", "hts", "mono"])
def test_a_fit_does_not_see_rows_without_weight(padded, method):
    all_rows, some = (make_calibrator(method).fit(*rows) for rows in (padded, counted(padded)))
    for name, value in some.parameters().items():
        np.testing.assert_array_equal(all_rows.parameters()[name], value)
    assert all_rows.n_rows_ == 600
    assert all_rows.model_.record.data_hash == some.model_.record.data_hash


def test_a_fit_and_its_comparison_do_not_see_invalid_rows_without_weight(padded):
    logits, labels, weights = (one.copy() for one in padded)
    logits[1] = np.nan
    assert make_calibrator("ts").fit(logits, labels, weights).n_rows_ == 600
    found = compare(logits, labels, sample_weight=weights, methods=["ts"], draws=20, progress=False)
    assert found.to_dict()["rows_fitted"] == 600


def test_groups_without_weight_are_gone(task):
    groups, weights = np.arange(900) // 9, np.ones(900)
    weights[:90] = 0
    fitted = make_calibrator("ts").fit(task.logits, task.labels, weights, groups=groups)
    assert fitted.n_groups_ == 90
    assert (
        metrics.evaluate(
            task.probabilities, task.labels, sample_weight=weights, groups=groups, draws=20
        ).n_groups
        == 90
    )
    calibrator = make_calibrator("ts").fit(task.logits, task.labels)
    found = monitoring.check(calibrator, 2 * task.logits, task.labels, sample_weight=weights, groups=groups)
    assert found.rows == 90


def test_weights_and_ignored_labels_are_dropped_together():
    logits = np.arange(10.0).reshape(5, 2) / 7
    rows = open_labelled(logits, [0, 255, 1, 0, 1], [1, np.nan, 0, 2, 3], ignore_index=255, by=list("abcde"))
    np.testing.assert_array_equal(rows.logits, logits[[0, 3, 4]])
    assert (rows.labels.tolist(), rows.weights.tolist(), rows.by.tolist()) == (
        [0, 0, 1],
        [1, 2, 3],
        list("ade"),
    )


def test_values_of_another_length_are_refused_before_rows_are_dropped(task):
    with pytest.raises(ValueError, match="899 labels for 900 rows"):
        metrics.evaluate(task.probabilities, task.labels[1:], sample_weight=np.arange(900))
    with pytest.raises(ValueError, match="by must have one value per row"):
        metrics.evaluate(task.probabilities, task.labels, sample_weight=np.arange(900), by=np.arange(901) % 2)


@pytest.mark.parametrize("labelled", [True, False])
def test_a_check_does_not_see_rows_without_weight(task, labelled):
    calibrator = make_calibrator("ts").fit(task.logits, task.labels)
    new = simulate(n_rows=500, n_classes=3, random_state=1)
    logits = np.concatenate([new.logits, np.tile(5 * new.logits, (40, 1))])
    labels = np.concatenate([new.labels, np.tile((new.labels + 1) % 3, 40)])
    weights = np.repeat([1.0, 0.0], [500, 20_000])
    given = (new.labels, labels) if labelled else (None, None)
    plain = monitoring.check(calibrator, new.logits, given[0])
    found = monitoring.check(calibrator, logits, given[1], sample_weight=weights)
    assert found.action == plain.action
    assert (found.rows, found.log_e) == (plain.rows, plain.log_e)
    assert found.records[0].rows_digest == plain.records[0].rows_digest


# ---- weights that are not numbers of rows


def test_weights_that_sum_to_one_are_warned_of(task):
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 900)
    plain = make_calibrator("bayes-bias").fit(task.logits, task.labels, weights / weights.mean())
    with pytest.warns(InputWarning, match=r"found 900 rows that count as 1\. .* sample_weight.mean"):
        few = make_calibrator("bayes-bias").fit(task.logits, task.labels, weights / weights.sum())
    nll = [metrics.nll(one.predict_proba(task.logits), task.labels) for one in (plain, few)]
    assert nll[1] > nll[0] + 0.02
    with pytest.warns(InputWarning, match="count as 1"):
        compare(
            task.logits,
            task.labels,
            sample_weight=weights / weights.sum(),
            methods=["ts"],
            draws=20,
            progress=False,
        )


def test_weights_that_choose_rows_are_no_reason_to_warn(task):
    make_calibrator("ts").fit(task.logits, task.labels, (np.arange(900) % 10 == 0).astype(float))


def test_weights_of_a_lazy_fit_are_warned_of(task, da):
    lazy = da.from_array(task.logits, chunks=(300, 3))
    with pytest.warns(InputWarning, match="found 900 rows that count as 9"):
        make_calibrator("ts").fit(lazy, task.labels, np.full(900, 0.01))
    make_calibrator("ts").fit(lazy, task.labels, (np.arange(900) % 10 == 0).astype(float))


# ---- effective rows in intervals


def test_the_bins_of_a_diagram_count_effective_rows(task):
    """Ten rows of weight 10 are as sure as ten rows; unequal weights make them fewer."""
    probs, labels = task.probabilities, task.labels
    plain = metrics.reliability(probs, labels, bins=5)
    equal = metrics.reliability(probs, labels, bins=5, sample_weight=np.full(900, 10.0))
    np.testing.assert_allclose(equal.low, plain.low)
    np.testing.assert_allclose(equal.count, 10 * plain.count)
    weights = np.random.default_rng(0).exponential(size=900)
    found = metrics.reliability(probs, labels, bins=5, sample_weight=weights)
    inside = probs.max(axis=1) > 0.8
    rows = weights[inside].sum() ** 2 / (weights[inside] ** 2).sum()
    rate, z = found.accuracy[-1], 1.959964
    half = z * np.sqrt(rate * (1 - rate) / rows + z**2 / (4 * rows**2)) / (1 + z**2 / rows)
    assert (found.high[-1] - found.low[-1]) / 2 == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("weights", [None, np.arange(900) % 5])
def test_an_error_names_the_row_that_was_handed_over(task, weights):
    """Row 701 comes after 141 rows without weight."""
    logits, labels, probs = task.logits.copy(), task.labels.copy(), task.probabilities.copy()
    logits[701], labels[702], probs[703] = np.nan, 7, 2.0
    with pytest.raises(ValueError, match=r"NaN in 1 row \(first: row 701\)"):
        make_calibrator("ts").fit(logits, task.labels, weights)
    with pytest.raises(ValueError, match=r"first: row 702\)"):
        make_calibrator("ts").fit(task.logits, labels, weights)
    with pytest.raises(ValueError, match=r"first: row 703\)"):
        metrics.evaluate(probs, task.labels, sample_weight=weights)
