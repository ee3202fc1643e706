"""The methods of a study, in the order of the paper's tables; those from outside come last."""

from __future__ import annotations

from collections.abc import Iterable

from temperance.calibrators import CALIBRATORS, UNCALIBRATED
from temperance.calibrators.external_methods import Methods, find_methods
from temperance.calibrators.registry import Method
from temperance.inputs.validation import InputError

_PAPER = ("ts", "ets", "ets-brier", "bts", "hts", "lts", "hnlts", "pts", "pts-ece")

METHODS: tuple[str, ...] = (*_PAPER, *(key for key in CALIBRATORS if key not in _PAPER))


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names of methods in the order of tables, each once."""
    given = dict.fromkeys(names)
    return [*(key for key in METHODS if key in given), *(key for key in given if key not in METHODS)]


def study_methods(given: Methods | None) -> dict[str, Method]:
    """Return the methods to study by name, by default those of the registry that are meant for it."""
    chosen = find_methods([key for key in METHODS if CALIBRATORS[key].in_study] if given is None else given)
    if not chosen or UNCALIBRATED in chosen:
        raise InputError(
            f"methods must name at least one method, and not {UNCALIBRATED!r}, which is always studied."
        )
    return {key: chosen[key] for key in in_order(chosen)}
