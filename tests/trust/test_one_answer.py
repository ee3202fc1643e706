"""The same rows have the same finding in `evaluate`, `compare`, `check`, and `--by` with one value."""

import numpy as np
import pytest

from temperance import TemperatureScaling, compare, metrics, monitoring

FIELDS = ("state", "p_value", "level_p", "spread_p", "name", "mean", "rate", "ratio", "gap", "slope")


def rows_of(world, n_rows, n_classes, seed):
    """Return log-odds or logits, and labels with the probabilities of `world`."""
    rng = np.random.default_rng([seed, n_rows, n_classes])
    logits = rng.normal(0, 1.5, (n_rows, n_classes))
    logits[:, -1] -= 1.0
    true = {"calibrated": 1.0, "too extreme": 0.6, "reversed": -1.0}.get(world, 1.0) * logits
    true[:, 0] += 0.6 * (world == "level")
    p = np.exp(true)
    p /= p.sum(axis=1, keepdims=True)
    labels = (rng.uniform(size=(n_rows, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return logits, np.minimum(labels, n_classes - 1)


def same(one, other):
    for field in FIELDS:
        np.testing.assert_equal(getattr(one, field), getattr(other, field), err_msg=field)
    assert str(one) == str(other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rows", [60, 1500])
@pytest.mark.parametrize("world", ["calibrated", "level", "too extreme", "reversed"])
def test_every_command_says_the_same_of_the_same_rows(world, n_rows, n_classes):
    fit, test = (rows_of(world, n_rows, n_classes, seed) for seed in (0, 1))
    calibrator = TemperatureScaling().fit(*fit)
    for positive in (None, 0):
        after = calibrator.predict_proba(test[0])
        options = {"positive": positive}
        evaluated = metrics.evaluate(after, test[1], draws=10, **options)
        compared = compare(*fit, *test, methods=["ts"], draws=10, **options)
        same(compared.results["ts"].scores.finding, evaluated.finding)
        same(monitoring.check(calibrator, *test, **options).finding, evaluated.finding)
        # Each value of `by` has the finding of its rows, before it counts the others.
        twice = np.concatenate([after, after]), np.concatenate([test[1], test[1]])
        by = np.repeat(["rows", "the same"], n_rows)
        for value in metrics.evaluate(*twice, draws=10, by=by, **options).by_group.values:
            same(value.alone, evaluated.finding)
