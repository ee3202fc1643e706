"""Fixtures of the tests of the public interface: every method of the registry, made small and quick."""

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compared import CLASS_KEEPING

from temperance import make_calibrator
from temperance.data import SimulatedTask, simulate

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


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the workers of a study as forks of a process that has imported what they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["temperance.study.scoring"])
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
