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

COMPARED = [key for key, method in CALIBRATORS.items() if method.in_comparison]


@pytest.fixture(scope="module")
def rows():
    return simulate(n_rows=300, n_classes=4, random_state=3), simulate(
        n_rows=300, n_classes=4, random_state=4
    )


@pytest.mark.parametrize("key", COMPARED)
def test_every_method_fits_saves_and_loads(key, rows, tmp_path):
    val, new = rows
    cal = make_calibrator(key).fit(val.logits, val.labels)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    probs = loaded.predict_proba(new.logits)
    np.testing.assert_array_equal(probs, cal.predict_proba(new.logits))
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    decided_by = new.logits if CALIBRATORS[key].keeps_class else probs
    np.testing.assert_array_equal(loaded.predict(new.logits), decided_by.argmax(axis=1))
    assert f"{type(cal).__name__} (" in loaded.summary()


def test_metrics_are_evaluated(rows):
    val, _ = rows
    scores = metrics.evaluate(val.probabilities, val.labels, draws=20)
    assert scores["nll"].low <= scores["nll"].value <= scores["nll"].high
    assert scores["accuracy"].value == metrics.accuracy(val.probabilities, val.labels)


def test_methods_are_compared(rows):
    val, new = rows
    result = temperance.compare(val.logits, val.labels, new.logits, new.labels, "all", draws=20)
    assert list(result.results) == ["none", *COMPARED]
    assert result.recommended in result.results


@pytest.mark.parametrize("key", ["lts", "hts", "hnlts", "pts", "pts-ece"])
def test_the_training_of_the_paper_needs_no_extra(key, rows, monkeypatch):
    from temperance.core import descent

    for name, value in {"LEARNING_RATE": 1e-2, "MIN_RATE": 1e-3, "PATIENCE": 3, "COOLDOWN": 1}.items():
        monkeypatch.setattr(descent, name, value)
    val, _ = rows
    cal = make_calibrator(key, solver="sgd").fit(val.logits, val.labels)
    assert cal.solution_.message.startswith("SGD")


def test_rows_that_are_all_right_or_all_wrong_give_a_warning_and_no_error(rows):
    val, _ = rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_calibrator("hts").fit(val.logits, val.logits.argmax(axis=1))
    assert any("classified correctly" in str(warning.message) for warning in caught)


def test_the_command_line_runs_the_whole_workflow(rows, tmp_path, run_command):
    val, new = rows
    np.savez(tmp_path / "val.npz", logits=val.logits, labels=val.labels)
    np.savez(tmp_path / "new.npz", logits=new.logits, labels=new.labels)
    cal, probs, report = (tmp_path / name for name in ("cal.json", "probs.npz", "report.html"))
    files = tmp_path / "val.npz", tmp_path / "new.npz"
    assert run_command("fit", files[0], "-m", "hts", "-o", cal)[0] == 0
    assert run_command("apply", cal, files[1], "-o", probs)[0] == 0
    assert run_command("evaluate", probs, "--draws", 20)[0] == 0
    code, out, _ = run_command("compare", *files, "-m", "ts,hts", "--report", report)
    assert code == 0
    assert "Calibrate with " in out
    np.testing.assert_array_equal(np.load(probs)["probs"], temperance.load(cal).predict_proba(new.logits))
    assert "</html>" in report.read_text(encoding="utf-8")


def test_the_built_in_task_can_be_read():
    task = temperance.data.demo_task()
    assert task.val_logits.shape == (5000, 10)
    assert task.test_logits.shape == (10_000, 10)


def pretend_missing(package, monkeypatch):
    """Remove a package, and our modules that need it, from the imported modules."""
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"temperance.{package}")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("package", "title", "use", "suffix"),
    [("torch", "PyTorch", "to_torch", ".pt2"), ("onnx", "ONNX", "to_onnx", ".onnx")],
)
def test_models_say_how_to_install_their_package(
    package, title, use, suffix, rows, tmp_path, monkeypatch, run_command
):
    pretend_missing(package, monkeypatch)
    val, _ = rows
    cal = make_calibrator("ts").fit(val.logits, val.labels)
    advice = f'pip install "temperance[{package}]"'
    with pytest.raises(ImportError) as caught:
        getattr(cal, use)(tmp_path / f"cal{suffix}")
    assert str(caught.value) == f"{use} needs {title}: {advice}"
    cal.save(tmp_path / "cal.json")
    code, _, err = run_command("export", tmp_path / "cal.json", tmp_path / f"cal{suffix}")
    assert code == 2
    assert advice in err
    assert [path.name for path in tmp_path.iterdir()] == ["cal.json"]


def test_figures_say_how_to_install_matplotlib(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    val, _ = rows
    display = temperance.display.ReliabilityDisplay.from_probs(val.probabilities, val.labels)
    assert display.diagrams["classifier"].count.sum() == 300
    with pytest.raises(ImportError, match=r'pip install "temperance\[plot\]"'):
        display.plot()
