"""The methods that `bayes_evaluation` compares, in three groups that can be run separately.

`package`: no calibration, and the methods of this package that need no prior. `rivals`: methods of
scikit-learn and probmetrics. `ours`: the newer methods, with a prior learned from other data sets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from probmetrics_methods import ProbmetricsCalibration

from temperance import CALIBRATORS, make_calibrator
from temperance.adapters import SklearnCalibration

REFERENCE = "ts"  # every method is compared with it, on the same rows
PACKAGE = ("ts", "hts", "ets", "pts", "bts", "lts", "hnlts")
OURS = ("mono", "bayes", "bayes-bias")
SKLEARN = ("temperature", "sigmoid", "isotonic")
PROBMETRICS = ("temp-scaling", "ts-mix", "ets", "vs", "svs", "sms")
ANY, ALL = sys.maxsize, sys.maxsize  # number of classes, draws

# Slow methods: (up to so many classes, at most so many draws), and not at all with more classes.
LIMITS = {
    "lts": ((2, ALL), (ANY, 3)),  # 20 s a fit with 465 classes and 5000 rows
    "hnlts": ((2, ALL), (ANY, 3)),
    "sklearn-sigmoid": ((10, ALL), (ANY, 3)),
    "sklearn-isotonic": ((10, ALL), (ANY, 3)),
    "probmetrics-vs": ((2, ALL), (50, 3), (150, 1)),  # 7 s a fit with 100 classes, 2 min with 1000
    "probmetrics-sms": ((150, ALL),),
}


def most_draws(method: str, n_classes: int) -> int:
    """Return the largest number of draws of a method; 0 where it does not run."""
    steps = LIMITS.get(method, ((ANY, ALL),))
    return next((draws for classes, draws in steps if n_classes <= classes), 0)


def limits_in_words(method: str) -> str:
    """Return where a slow method runs with how many draws."""
    words, above = [], 0
    for classes, draws in LIMITS[method]:
        number = "all draws" if draws == ALL else f"{draws} or more draws"
        where = f"with more than {above}" if classes == ANY else f"up to {classes}"
        words.append(f"{number} {where} classes")
        above = classes
    return ", ".join(words)


class NoCalibration:
    """The softmax of the logits."""

    def fit(self, logits: NDArray[np.float64], labels: NDArray[np.intp]) -> NoCalibration:
        """Do nothing."""
        return self

    def predict_proba(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the softmax."""
        return np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))


def names(group: str) -> tuple[str, ...]:
    """Return the methods of a group, by name."""
    if group == "package":
        return ("none", *PACKAGE)
    if group == "rivals":
        return (*(f"sklearn-{key}" for key in SKLEARN), *(f"probmetrics-{key}" for key in PROBMETRICS))
    if group == "ours":
        return tuple(key for key in OURS if key in CALIBRATORS)
    raise ValueError(f"a group must be package, rivals or ours; found {group!r}")


def build(method: str, prior: Path | None) -> Any:
    """Return an unfitted calibrator; `prior` is for the methods that take one."""
    if method == "none":
        return NoCalibration()
    package, _, key = method.partition("-")
    outside: dict[str, Callable[[str], Any]] = {
        "sklearn": SklearnCalibration,
        "probmetrics": ProbmetricsCalibration,
    }
    if package in outside:
        return outside[package](key)
    calibrator = make_calibrator(method)
    if prior is not None and "prior" in calibrator.get_params():
        calibrator.set_params(prior=str(prior))
    return calibrator
