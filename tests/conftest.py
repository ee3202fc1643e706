"""Fixtures of the tests of the public interface: every method of the registry, made small and quick."""

import importlib
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared import CLASS_KEEPING

from temperance import make_calibrator
from temperance.data import simulate
from temperance.data.tasks import SimulatedTask

# pytest loads these automatically; as modules with doctests they would all have the same name.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

SMALL = {"bts": {"bins": 5}}


@pytest.fixture(scope="session", autouse=True)
def one_date() -> Iterator[None]:
    """Date all fits the same, so that equal fits are saved as equal files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1767225600")
        yield


@pytest.fixture(scope="session", params=CLASS_KEEPING)
def method(request: pytest.FixtureRequest) -> str:
    """Run the test once for each key of the registry."""
    return request.param


@pytest.fixture(scope="session")
def make() -> Callable[..., Any]:
    """Build a calibrator by key, with options that suit a few dozen rows."""
    return lambda key, **options: make_calibrator(key, **(SMALL.get(key, {}) | options))


@pytest.fixture(scope="session")
def fit(make: Callable[..., Any]) -> Callable[..., Any]:
    """Build and fit by key; with few rows a method may reach its limits and warn, which is allowed."""

    def fitted(key: str, logits: Any, labels: Any, sample_weight: Any = None, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*did not converge")
            return make(key, **options).fit(logits, labels, sample_weight)

    return fitted


@pytest.fixture(scope="session")
def task() -> SimulatedTask:
    """Return 300 rows of 4 classes of an overconfident classifier."""
    return simulate(n_rows=300, n_classes=4, random_state=3)


@pytest.fixture(scope="session")
def binary() -> tuple[np.ndarray, np.ndarray]:
    """Return 200 logits of class 1 of two, overconfident, and their labels."""
    rng = np.random.default_rng(5)
    honest = 2 * rng.standard_normal(200)
    labels = (rng.random(200) < 1 / (1 + np.exp(-honest))).astype(int)
    return 2 * honest, labels


@pytest.fixture(scope="session")
def west() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P(yes), "no" or "yes", and the hospital: in West the log-odds of yes are 0.7 too high."""
    rng, n = np.random.default_rng(5), 20000
    z = rng.normal(size=n) * 1.8
    hospital = rng.choice(["North", "South", "East", "West"], n, p=[0.5, 0.2, 0.15, 0.15])
    happens = rng.random(n) < 1 / (1 + np.exp(-(z - 0.7 * (hospital == "West"))))
    p, answer = 1 / (1 + np.exp(-z)), np.where(happens, "yes", "no")
    return p[5000:], answer[5000:], hospital[5000:]


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process; return its exit code, standard output and standard error."""

    def run(*words: object) -> tuple[int, str, str]:
        from temperance.cli import main

        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        return left.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def benchmark_script() -> Iterator[Callable[[str], Any]]:
    """Return the import function for scripts of benchmarks/, which the next module of tests does not see."""
    root = Path(__file__).resolve().parents[1] / "benchmarks"
    folders, before = [str(root / "peers"), str(root)], set(sys.modules)
    sys.path[:0] = folders
    yield importlib.import_module
    for folder in folders:
        sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if str(root) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the workers of a study as forks of a process that has imported what they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["temperance.study.protocol"])
    monkeypatch.setattr("temperance.study.runner.get_context", lambda method: context)


@pytest.fixture(scope="session")
def fitted(task: SimulatedTask, fit: Callable[..., Any]) -> Callable[[str], Any]:
    """Return the calibrator of a key fitted to `task`, always the same one: not to be changed."""
    cache: dict[str, Any] = {}

    def of(key: str) -> Any:
        if key not in cache:
            cache[key] = fit(key, task.logits, task.labels)
        return cache[key]

    return of
