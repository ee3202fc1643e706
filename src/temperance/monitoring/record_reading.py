"""What a line of a history must hold: text, numbers and sums of the right shapes, within what rows can add.

A line that was changed by hand, or by a disk, is refused here. Otherwise it would be counted as evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temperance.errors import InputError
from temperance.json_fields import (
    Check,
    Field,
    check_flag,
    check_object,
    check_text,
    count,
    number,
    numbers,
    read_fields,
    refuse_others,
)
from temperance.monitoring.bets import BETS, summed_residuals
from temperance.monitoring.predictions import PredictionSums
from temperance.monitoring.residuals import MOST_GROUPS, LabelledSums

_SLACK = 1e-3  # relative: probabilities of float16 add up to 1 within this
_ROWS = count(1, 10**15)  # of one check: a larger number has lost its last digits
_LOGARITHM = number(-1e18, 1e18)
_LEVEL = number(0.0, 0.5)

RECORD = (
    Field("calibrator", check_text),
    Field("date", check_text),
    Field("name", check_text),
    Field("rows_digest", check_text),
    Field("tolerance", _LEVEL),
    Field("alpha", _LEVEL),
    Field("log_e", _LOGARITHM),
    Field("highest_log_e", _LOGARITHM),
    Field("shift_alarm", check_flag),
    Field("action", check_text),
)
"""The parts of a record that are no sums."""


def read_predictions(given: Any) -> PredictionSums:
    """Return counts of predictions; raise if they cannot be counts."""
    plain = check_object(given, "predictions")
    rows = _ROWS(plain.get("rows"), "predictions.rows", 0)
    n_classes, n_quantiles = _length(plain, "predicted"), _length(plain, "confidence")
    table = (
        Field("rows", _ROWS),
        Field("predicted", _sums(rows, n_classes)),
        Field("confidence", _sums(rows, n_quantiles)),
        Field("entropy", _sums(rows, n_quantiles)),
    )
    sums = PredictionSums(**_read(plain, table, "predictions"))
    if sums.predicted.sum() != rows:
        raise InputError(f"predictions.predicted must add up to {rows} rows; found {sums.predicted.sum():g}")
    return sums


def read_labelled(given: Any, n_classes: int) -> LabelledSums:
    """Return sums over labelled rows; raise if rows cannot add up to them."""
    plain = check_object(given, "labelled")
    rows = _ROWS(plain.get("rows"), "labelled.rows", 0)
    with_gap, with_beta = 1 + n_classes, 1 + min(n_classes, MOST_GROUPS)
    # Logarithms of probabilities end at -18.4, those of a bet at log 0.2.
    table = (
        Field("rows", _ROWS),
        Field("confidence", number(0, rows * (1 + _SLACK))),
        Field("probabilities", _sums(rows, n_classes)),
        Field("labels", _sums(rows, n_classes)),
        Field("residuals", _sums(rows, with_gap, low=-1)),
        Field("squares", _sums(rows, with_gap)),
        Field("capitals", _sums(rows, 2, len(BETS), summed_residuals(with_gap), low=-2, high=2)),
        Field("score", _sums(rows, with_beta, low=-20, high=20)),
        Field("information", _sums(rows, with_beta, with_beta, low=-400, high=400)),
    )
    sums = LabelledSums(**_read(plain, table, "labelled"))
    if sums.labels.sum() != rows:
        raise InputError(f"labelled.labels must add up to {rows} rows; found {sums.labels.sum():g}")
    return sums


def _sums(rows: int, *shape: int, low: float = 0, high: float = 1) -> Check:
    """Check sums over rows, of which each adds from `low` to `high`."""
    return numbers(*shape, least=rows * low * (1 + _SLACK), most=rows * high * (1 + _SLACK))


def _length(plain: dict[str, Any], name: str) -> int:
    values = plain.get(name)
    return len(values) if isinstance(values, list) else 0


def _read(plain: dict[str, Any], table: Sequence[Field], what: str) -> dict[str, Any]:
    refuse_others([field.name for field in table], plain, what)
    return read_fields(plain, table, what, prefix=f"{what}.")
