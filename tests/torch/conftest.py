"""Every method, fitted once; the folder is not called torch, since `import torch` would find it."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compared import CLASS_KEEPING, STEEP, class_biases

from temperance import make_calibrator
from temperance.data import simulate

torch = pytest.importorskip("torch", reason="PyTorch is an extra")

# Besides the registry: biases with and without interactions of the classes, mixtures without some part.
VARIANTS: dict[str, tuple[str, dict[str, Any], int]] = {
    **{key: (key, {}, 5) for key in CLASS_KEEPING},
    "bayes, bias": ("bayes", {"class_bias": True}, 5),
    "bayes, biases of 3": ("bayes", {"class_bias": True}, 3),
    "bayes, biases of 33": ("bayes", {"class_bias": True}, 33),
    "bayes of 2": ("bayes", {}, 2),
    "hts of 2": ("hts", {}, 2),
    "pts, 3 of 5": ("pts", {"top_k": 3, "hidden": (4,)}, 5),
    "mono, steep": ("mono", {}, 5),
    "ets, tempered": ("ets", {}, 5),
    "ets, uniform": ("ets", {}, 5),
}
CHANGES: dict[str, dict[str, Any]] = {
    "bayes, biases of 3": class_biases(3),
    "bayes, biases of 33": class_biases(33),
    "mono, steep": {"map_slopes": np.array(STEEP)},
    "ets, tempered": {"weights": np.array([1.0, 0.0, 0.0])},
    "ets, uniform": {"weights": np.array([0.0, 0.0, 1.0])},
}


@pytest.fixture(autouse=True)
def by_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute with tensors even where NumPy would: on a CPU, without gradients."""
    for name in ("temperance.formulas.model.framework_of", "temperance.torch.module.framework_of"):
        monkeypatch.setattr(name, lambda logits: "torch" if isinstance(logits, torch.Tensor) else None)


@pytest.fixture(scope="session", params=list(VARIANTS))
def variant(request: pytest.FixtureRequest) -> str:
    """Run the test once for each of the variants."""
    return request.param


@pytest.fixture(scope="session")
def calibrator() -> Callable[[str], Any]:
    """Return the fitted calibrator of a variant, always the same one: not to be changed."""
    cache: dict[str, Any] = {}

    def of(name: str) -> Any:
        if name not in cache:
            key, options, n_classes = VARIANTS[name]
            task = simulate(n_rows=1000, n_classes=n_classes, entropy_slope=0.3, random_state=n_classes)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*did not converge")
                cache[name] = make_calibrator(key, **options).fit(task.logits, task.labels)
            model = cache[name].model_
            formula = replace(model.formula, **CHANGES.get(name, {}))
            cache[name].model_ = replace(model, formula=formula)
        return cache[name]

    return of


@pytest.fixture(scope="session")
def wild() -> Callable[[int], np.ndarray]:
    """Make 10,000 rows: gaps from 0.1 to 1e4, from even to dominated by a few, at any level."""

    def rows(n_classes: int) -> np.ndarray:
        rng = np.random.default_rng(n_classes)
        size = 10 ** rng.uniform(-1, 4, (10_000, 1))
        even = rng.uniform(0, 1, (10_000, n_classes)) ** (10 ** rng.uniform(-1, 1, (10_000, 1)))
        return size * even + rng.normal(0, 100, (10_000, 1))

    return rows
