"""Probabilities of 0, or nearly, in the files of a command: what they are raised to, and who is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from temperance.cli.output import Output
from temperance.errors import on_one_line

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile
    from temperance.formulas.fit_record import FittedOn
    from temperance.inputs.probabilities import LowEnd


def with_own_floor(rows: RowFile, output: Output) -> RowFile:
    """Return rows whose probabilities are raised to their own floor; logits unchanged."""
    if rows.kind != "probs":
        return rows
    end = rows.low_end()
    if end.n_rows_with_zero:  # else all are at or above the floor
        _tell_raised(output, rows, end, end.floor, _reason(end))
    return rows.with_floor(end.floor, raises=bool(end.n_rows_with_zero))


def with_given_floor(rows: RowFile, floor: float, output: Output, whose: str) -> RowFile:
    """Return rows whose probabilities are raised to the floor of other rows; logits unchanged."""
    if rows.kind != "probs":
        return rows
    end = rows.low_end(floor)
    if floor == 0 and end.n_rows_with_zero:
        zeros = f"probability 0 in {end.n_rows_with_zero} of {end.n_rows} rows"
        _tell(output, rows, f"{zeros}: kept as impossible classes, as {whose}")
    elif end.n_rows_below:
        _tell_raised(output, rows, end, floor, f"as {whose}")
    return rows.with_floor(floor, raises=bool(end.n_rows_below))


def with_floor_of(fitted: Calibrator, rows: RowFile, output: Output) -> RowFile:
    """Return rows with the floor of a calibrator's fit; with their own, if it was fitted to logits.

    Older calibrator files have no floor: there, a probability of 0 was the logit -inf.
    """
    fitted_on = fitted.model_.record.fitted_on
    if fitted_on is None or fitted_on.kind != "probabilities":
        return with_own_floor(rows, output)
    return with_given_floor(rows, fitted_on.floor or 0.0, output, "at the fit")


def raised_floor(files: Iterable[RowFile]) -> float | None:
    """Return the floor of the files if it raises a probability in any of them."""
    return next((rows.floor for rows in files if rows.raises), None)


def source_of(rows: RowFile) -> FittedOn:
    """Return what a calibrator of these rows is fitted on."""
    from temperance.formulas.fit_record import FittedOn

    return FittedOn("probabilities", rows.floor) if rows.kind == "probs" else FittedOn("logits")


def _reason(end: LowEnd) -> str:
    from temperance.inputs.probabilities import MIN_FLOOR

    if end.floor == MIN_FLOOR:
        return "the precision of a float"
    return f"half of the smallest one above 0 ({end.smallest:.3g}) over {end.n_classes} classes"


def _tell_raised(output: Output, rows: RowFile, end: LowEnd, floor: float, why: str) -> None:
    if end.n_rows_below == end.n_rows_with_zero:
        which, what = "probability 0", f"raised to {floor:.3g}"
    else:
        which, what = f"probabilities below {floor:.3g}", "raised to it"
    _tell(output, rows, f"{which} in {end.n_rows_below} of {end.n_rows} rows: {what}, {why}")


def _tell(output: Output, rows: RowFile, what: str) -> None:
    output.tell(f"{on_one_line(rows.path.name)}: {what}")
