"""The package as installed without any extra: NumPy, SciPy and scikit-learn only.

This file needs pytest, NumPy and the package, and nothing else of the repository but its conftest.
"""

import sys
import warnings

import numpy as np
import pytest

import temperance
from temperance import CALIBRATORS, make_calibrator, metrics
from temperance.data import simulate


class WithoutTorch:
    """An import system in which PyTorch is not installed; None in sys.modules would upset SciPy."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


@pytest.fixture(scope="module")
def rows():
    return simulate(n_rows=300, n_classes=4, random_state=3), simulate(
        n_rows=300, n_classes=4, random_state=4
    )


@pytest.mark.parametrize("key", CALIBRATORS)
def test_every_method_fits_saves_and_loads(key, rows, tmp_path):
    val, new = rows
    cal = make_calibrator(key).fit(val.logits, val.labels)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    probs = loaded.predict_proba(new.logits)
    np.testing.assert_array_equal(probs, cal.predict_proba(new.logits))
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(loaded.predict(new.logits), new.logits.argmax(axis=1))
    assert f"{type(cal).__name__} (" in loaded.summary()


def test_metrics_are_evaluated(rows):
    val, _ = rows
    scores = metrics.evaluate(val.probabilities, val.labels, draws=20)
    assert scores["nll"].low <= scores["nll"].value <= scores["nll"].high
    assert scores["accuracy"].value == metrics.accuracy(val.probabilities, val.labels)


def test_methods_are_compared(rows):
    val, new = rows
    result = temperance.compare(val.logits, val.labels, new.logits, new.labels, draws=20)
    assert list(result.results) == ["none", *CALIBRATORS]
    assert result.recommended in result.results


@pytest.mark.parametrize("key", ["lts", "hts", "hnlts", "pts", "pts-ece"])
def test_the_descent_of_the_paper_says_how_to_get_pytorch(key, rows, monkeypatch):
    val, _ = rows
    for name in [name for name in sys.modules if name == "torch" or name.startswith("temperance.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [WithoutTorch(), *sys.meta_path])
    with pytest.raises(ImportError, match=r'pip install "temperance\[torch\]"'):
        make_calibrator(key, solver="sgd").fit(val.logits, val.labels)


def test_one_sided_rows_give_a_warning_and_no_error(rows):
    val, _ = rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_calibrator("hts").fit(val.logits, val.logits.argmax(axis=1))
    assert any("classified right" in str(warning.message) for warning in caught)
