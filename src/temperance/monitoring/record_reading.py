"""What a line of a history must hold: text, numbers and sums of the right shapes, within what rows can add.

A line that was changed by hand, or by a disk, is refused here. Otherwise it would be counted as evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from temperance.errors import excerpt
from temperance.monitoring.evidence import BETS, summed_residuals
from temperance.monitoring.limits import MAX_GROUPS
from temperance.monitoring.sums import LabelledSums, PredictionSums

MOST_ROWS = 10**15  # of one check: a larger number has lost its last digits
_TEXTS = ("calibrator", "date", "name", "rows_digest", "action")
_LARGEST_LOG = 1e18
_SLACK = 1e-3  # relative: probabilities of float16 add up to 1 within this
_NUMBERS = {
    "tolerance": (0.0, 0.5),
    "alpha": (0.0, 0.5),
    "log_e": (-_LARGEST_LOG, _LARGEST_LOG),
    "highest_log_e": (-_LARGEST_LOG, _LARGEST_LOG),
}
# What one row can add to a sum: logarithms of probabilities end at -18.4, those of a bet at log 0.2.
_BY_ROW = {"residuals": (-1, 1), "capitals": (-2, 2), "score": (-20, 20), "information": (-400, 400)}
_COUNT = (0, 1)

Plain = Mapping[str, Any]


def check_texts_and_numbers(plain: Plain) -> None:
    """Raise ValueError unless the parts of a record that are no sums are what a check writes."""
    for name in _TEXTS:
        if not isinstance(plain[name], str):
            raise ValueError(f"{excerpt(plain[name])} as {name}")
    for name, (low, high) in _NUMBERS.items():
        if not _is_number(plain[name]) or not low <= plain[name] <= high:
            raise ValueError(f"{excerpt(plain[name])} as {name}")
    if not isinstance(plain["shift_alarm"], bool):
        raise ValueError(f"{excerpt(plain['shift_alarm'])} as shift_alarm")


def read_predictions(plain: Plain) -> PredictionSums:
    """Return counts of predictions; raise ValueError if they cannot be counts."""
    rows, n_classes = _rows(plain), len(plain["predicted"])
    n_quantiles = len(plain["confidence"])
    shapes = {"predicted": (n_classes,), "confidence": (n_quantiles,), "entropy": (n_quantiles,)}
    sums = PredictionSums(rows=rows, **_arrays(plain, {"rows"}, shapes, rows))
    if sums.predicted.sum() != rows:
        raise ValueError("predicted classes of another number of rows")
    return sums


def read_labelled(plain: Plain, n_classes: int) -> LabelledSums:
    """Return sums over labelled rows; raise ValueError if rows cannot add up to them."""
    rows, with_gap, with_beta = _rows(plain), 1 + n_classes, 1 + min(n_classes, MAX_GROUPS)
    shapes = {
        "probabilities": (n_classes,),
        "labels": (n_classes,),
        "residuals": (with_gap,),
        "squares": (with_gap,),
        "capitals": (2, len(BETS), summed_residuals(with_gap)),
        "score": (with_beta,),
        "information": (with_beta, with_beta),
    }
    confidence = plain["confidence"]
    if not _is_number(confidence) or not 0 <= confidence <= rows * (1 + _SLACK):
        raise ValueError(f"{excerpt(confidence)} as confidence")
    arrays = _arrays(plain, {"rows", "confidence"}, shapes, rows)
    if arrays["labels"].sum() != rows:
        raise ValueError("labels of another number of rows")
    return LabelledSums(rows=rows, confidence=float(confidence), **arrays)


def _rows(plain: Plain) -> int:
    rows = plain["rows"]
    if not isinstance(rows, int) or isinstance(rows, bool) or not 1 <= rows <= MOST_ROWS:
        raise ValueError(f"{excerpt(rows)} as rows")
    return rows


def _arrays(
    plain: Plain, others: set[str], shapes: Mapping[str, tuple[int, ...]], rows: int
) -> dict[str, Any]:
    if set(plain) != others | set(shapes):
        raise ValueError("other sums than a check has")
    arrays = {}
    for name, shape in shapes.items():
        array = np.array(plain[name])
        low, high = (rows * bound * (1 + _SLACK) for bound in _BY_ROW.get(name, _COUNT))
        if array.dtype.kind not in "if" or array.shape != shape:
            raise ValueError(f"other numbers than those of a check as {name}")
        if not ((array >= low) & (array <= high)).all():  # nor nan
            raise ValueError(f"{name} that {rows} rows cannot add up to")
        arrays[name] = array.astype(np.float64)
    return arrays


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
