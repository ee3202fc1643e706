"""The methods that `bayes_evaluation` compares, in three groups that can be run apart.

`package`: no calibration, and the methods of this package that need no prior. `rivals`: methods of
scikit-learn and probmetrics. `ours`: the newer methods, with a prior learned from other data sets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance import CALIBRATORS, make_calibrator
from temperance.adapters import ProbmetricsCalibration, SklearnCalibration

REFERENCE = "ts"  # every method is compared with it, on the same rows
PACKAGE = ("ts", "hts", "ets", "pts", "bts", "lts", "hnlts")
OURS = ("mono", "bayes", "bayes-bias")
SKLEARN = ("temperature", "sigmoid", "isotonic")
PROBMETRICS = ("temp-scaling", "ts-mix", "ets", "vs", "svs", "sms")
FEW = 3  # draws, where a method is slow
ANY_NUMBER = sys.maxsize


@dataclass(frozen=True)
class Limits:
    """Where a slow method runs: up to so many classes, and with all draws up to so many."""

    classes: int
    classes_with_all_draws: int

    def draws(self, wanted: int, n_classes: int) -> int:
        """Return the number of draws out of those wanted; 0 where the method does not run."""
        if n_classes > self.classes:
            return 0
        return wanted if n_classes <= self.classes_with_all_draws else min(wanted, FEW)

    def draws_in_words(self) -> str:
        """Return the limits for the page of results."""
        few = f"{FEW} or more draws with more than {self.classes_with_all_draws} classes"
        if self.classes == ANY_NUMBER:
            return few
        limit = f"up to {self.classes} classes"
        return limit if self.classes_with_all_draws == self.classes else f"{limit}, {few}"


UNLIMITED = Limits(ANY_NUMBER, ANY_NUMBER)
LIMITS = {
    "probmetrics-sms": Limits(150, 150),
    "probmetrics-vs": Limits(150, 2),  # 3 s a fit with 100 classes, 2 min with 1000
    "lts": Limits(ANY_NUMBER, 2),  # 20 s a fit with 465 classes and 5000 rows
    "hnlts": Limits(ANY_NUMBER, 2),
}


class NoCalibration:
    """The softmax of the logits."""

    def fit(self, logits: NDArray[np.float64], labels: NDArray[np.intp]) -> NoCalibration:
        """Do nothing."""
        return self

    def predict_proba(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the softmax."""
        return np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))


def limits_of(method: str) -> Limits:
    """Return where a method runs."""
    return LIMITS.get(method, UNLIMITED)


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
