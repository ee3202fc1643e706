"""The methods of a study: those of the registry, and the paper's own ways to fit them.

- `ets-brier` is ETS as the paper's tables have it: weights that minimise the Brier score.
- `pts-plain` is PTS without our prior on its weights.
- `...-sgd` are trained as the paper did, by stochastic gradient descent.
"""

from __future__ import annotations

from typing import Any

from temperance.calibrators import CALIBRATORS, Calibrator, make_calibrator
from temperance.comparison import UNCALIBRATED
from temperance.validation import InputError

__all__ = ["DEFAULT", "LABELS", "METHODS", "UNCALIBRATED", "check_methods", "is_random", "make_method"]

_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ets-brier": ("ets", {"loss": "brier"}),
    "pts-plain": ("pts", {"weight_decay": 0.0}),
    "hts-sgd": ("hts", {"solver": "sgd"}),
    "lts-sgd": ("lts", {"solver": "sgd"}),
    "hnlts-sgd": ("hnlts", {"solver": "sgd"}),
    "pts-sgd": ("pts", {"solver": "sgd"}),
    "pts-ece-sgd": ("pts-ece", {"solver": "sgd"}),
}

LABELS: dict[str, str] = {
    UNCALIBRATED: "Uncalibrated",
    "ts": "TS",
    "ets": "ETS",
    "ets-brier": "ETS-Brier",
    "bts": "BTS",
    "hts": "HTS",
    "lts": "LTS",
    "hnlts": "HnLTS",
    "pts": "PTS",
    "pts-ece": "PTS-ECE",
    "bayes": "Bayes",
    "pts-plain": "PTS-plain",
    "hts-sgd": "HTS-SGD",
    "lts-sgd": "LTS-SGD",
    "hnlts-sgd": "HnLTS-SGD",
    "pts-sgd": "PTS-SGD",
    "pts-ece-sgd": "PTS-ECE-SGD",
}
"""What tables and figures call a method, in the order of the paper's columns, ours behind."""

METHODS: tuple[str, ...] = (
    *(key for key in LABELS if key in CALIBRATORS or key in _VARIANTS),
    *(key for key in CALIBRATORS if key not in LABELS),
)
DEFAULT: tuple[str, ...] = tuple(key for key in METHODS if key in CALIBRATORS or key == "ets-brier")


def check_methods(keys: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return keys in the order of tables, each once; raise if one is none of a method."""
    unknown = [key for key in keys if key not in METHODS]
    if unknown or not keys:
        got = repr(unknown[0]) if unknown else "none"
        raise InputError(f"the methods must be some of {', '.join(METHODS)}; got {got}.")
    return tuple(key for key in METHODS if key in keys)


def make_method(key: str, random_state: int) -> Calibrator:
    """Build the calibrator of a method; the seed is for those that have chance in their fit."""
    registered, options = _VARIANTS.get(key, (key, {}))
    seed = (
        {"random_state": random_state} if "random_state" in make_calibrator(registered).get_params() else {}
    )
    return make_calibrator(registered, **options, **seed)


def is_random(key: str) -> bool:
    """Say whether two fits to the same rows may differ."""
    return "random_state" in make_method(key, 0).get_params()
