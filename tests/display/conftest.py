"""A comparison small enough to be quick, drawn without a screen; no test may leave a figure open."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from temperance import display, metrics
from temperance.comparison import LearningCurve, compare
from temperance.data import simulate


@pytest.fixture(autouse=True)
def _tidy():
    """Draw without a screen, and close what was drawn."""
    before = mpl.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.fixture(scope="session")
def rows():
    """Return 1200 rows of 4 classes: half to fit, half to test."""
    return simulate(1200, 4, random_state=6)


@pytest.fixture(scope="session")
def comparison(rows):
    """Return four methods evaluated on a test set."""
    z, y = rows.logits, rows.labels
    return compare(z[:600], y[:600], z[600:], y[600:], ["ts", "hts", "ets", "bayes"], draws=10)


@pytest.fixture(scope="session")
def weighted(rows):
    """Return a comparison by cross-validation whose rows have weights, some of them 0."""
    weights = np.random.default_rng(3).choice([0.0, 1.0, 2.5], len(rows.labels))
    return compare(rows.logits, rows.labels, methods=["ts"], sample_weight=weights, folds=2, draws=10)


@pytest.fixture(scope="session")
def curve():
    """Return a learning curve of two methods and two draws."""
    nll = {"ts": np.array([[0.6, 0.8], [0.5, 0.5]]), "lts": np.array([[9.0, 5.0], [0.4, 0.6]])}
    return LearningCurve((20, 50), nll, 0.9, 100)


@pytest.fixture(scope="session")
def displays(comparison, curve):
    """Return one display of each kind, with the methods that the page shows."""
    probs, right = np.tile([0.6, 0.7, 0.8, 0.9], 100), np.arange(400) % 3 > 0
    gaps = metrics.evaluate(probs, right, by=np.arange(400) % 4, draws=10)
    shown = {
        "LearningCurveDisplay": display.LearningCurveDisplay.from_curve(curve),
        "GapsDisplay": display.GapsDisplay.from_evaluation(gaps),
    }
    for name in display.__all__:
        if name not in shown:
            # The page has the method of the verdict.
            methods = [[comparison.verdict.tried]] if name == "TemperatureDisplay" else []
            shown[name] = getattr(display, name).from_comparison(comparison, *methods)
    return shown
