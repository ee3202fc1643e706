"""Probabilities of 0 in the files of a command: what they are raised to, and the line that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temperance.cli.output import Output, on_one_line

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile
    from temperance.probabilities import LowEnd


def with_own_floor(rows: RowFile, output: Output) -> RowFile:
    """Return rows whose probabilities are raised to their own floor; logits unchanged."""
    if rows.kind != "probs":
        return rows
    end = rows.low_end()
    _tell(output, rows, end, f"raised to {end.floor:.3g}, {_reason(end)}")
    return rows.with_floor(end.floor)


def with_given_floor(rows: RowFile, floor: float, output: Output, whose: str) -> RowFile:
    """Return rows whose probabilities are raised to the floor of other rows; logits unchanged."""
    if rows.kind != "probs":
        return rows
    kept = "kept as impossible classes" if floor == 0 else f"raised to {floor:.3g}"
    _tell(output, rows, rows.low_end(), f"{kept}, as {whose}")
    return rows.with_floor(floor)


def with_floor_of(fitted: Calibrator, rows: RowFile, output: Output) -> RowFile:
    """Return rows with the floor of a calibrator's fit; with their own, if it was fitted to logits.

    Older calibrator files have no floor: there, a probability of 0 was the logit -inf.
    """
    fitted_on = fitted.model_.record.fitted_on
    if fitted_on is None or fitted_on.kind != "probabilities":
        return with_own_floor(rows, output)
    return with_given_floor(rows, fitted_on.floor or 0.0, output, "at the fit")


def _reason(end: LowEnd) -> str:
    from temperance.probabilities import LOWEST_FLOOR

    if end.floor == LOWEST_FLOOR:
        return "the precision of a float"
    return f"half of the smallest one above 0 ({end.smallest:.3g}) over {end.n_classes} classes"


def _tell(output: Output, rows: RowFile, end: LowEnd, what: str) -> None:
    if end.n_rows_with_zero:
        name = on_one_line(rows.path.name)
        output.tell(f"{name}: probability 0 in {end.n_rows_with_zero} of {end.n_rows} rows: {what}")
