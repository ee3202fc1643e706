"""The methods of a study: those of the registry, in the order of the paper's tables."""

from __future__ import annotations

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, Calibrator
from temperance.validation import InputError

__all__ = ["DEFAULT", "METHODS", "UNCALIBRATED", "check_methods", "make_method"]

_PAPER = ("ts", "ets", "ets-brier", "bts", "hts", "lts", "hnlts", "pts", "pts-ece")

METHODS: tuple[str, ...] = (*_PAPER, *(key for key in CALIBRATORS if key not in _PAPER))
DEFAULT: tuple[str, ...] = tuple(key for key in METHODS if CALIBRATORS[key].in_study)


def check_methods(keys: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return keys in the order of tables, each once; raise if one is none of a method."""
    unknown = [key for key in keys if key not in METHODS]
    if unknown or not keys:
        got = repr(unknown[0]) if unknown else "none"
        raise InputError(f"the methods must be some of {', '.join(METHODS)}; got {got}.")
    return tuple(key for key in METHODS if key in keys)


def make_method(key: str, random_state: int) -> Calibrator:
    """Build the calibrator of a method; the seed is for those that are random."""
    method = CALIBRATORS[key]
    calibrator: Calibrator = method(**({"random_state": random_state} if method.is_random else {}))
    return calibrator
