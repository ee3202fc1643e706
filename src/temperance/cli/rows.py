"""The rows of a command: opened, matched with a calibrator or with other rows, and described.

Probabilities of 0, or nearly, are raised to a floor, and the user is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temperance.cli.options import advising
from temperance.cli.output import Output
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy, listed, on_one_line

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile
    from temperance.formulas.fit_record import FittedOn
    from temperance.inputs.probabilities import LowEnd

_KIND_IN_WORDS = {"logits": "logits", "probs": "probabilities"}


class Labels(Enum):
    """Whether a command needs the labels of its rows. Labels that the user names are always needed."""

    REQUIRED = "missing labels are an error"
    IF_PRESENT = "invalid labels are an error, missing ones are not"
    IF_VALID = "labels are read if they are there and valid"


def reading_probs(options: ReadOptions, from_probs: bool) -> ReadOptions:
    """Return the options of a file that holds probabilities, if the user has said so."""
    if not from_probs:
        return options
    if options.kind == "logits":
        raise InputError("--from-probs and --input logits exclude each other.", remedy=Remedy("kind"))
    return replace(options, kind="probs")


def open_for_calibrator(
    path: Path, options: ReadOptions, fitted: Calibrator, output: Output, labels: Labels, *, from_probs: bool
) -> RowFile:
    """Open the rows to be calibrated, with the floor of the calibrator's fit.

    Raise unless the calibrator was fitted to rows of the same kind with the same classes.
    """
    from temperance.data import RowFile

    needed = labels is Labels.REQUIRED or options.names_labels()
    with advising(kind="from_probs" if from_probs else "kind"):  # the user has not said --input
        rows = RowFile.open(path, reading_probs(options, from_probs), need_labels=needed)
    if rows.has_labels and not needed:
        with suppress(InputError) if labels is Labels.IF_VALID else nullcontext():
            rows = rows.with_labels()
    refuse_calibrated(rows)
    fitted_on, kind = fitted.model_.record.fitted_on, _KIND_IN_WORDS[rows.kind]
    if fitted_on is not None and fitted_on.kind != kind and not from_probs:
        fact = f"must hold {fitted_on.kind}, which the calibrator was fitted to; found {kind}."
        if kind == "probabilities":
            said = "If they are the classifier's own probabilities, say so."
            raise rows.stored.file_error(f"{fact} {said}", Remedy("from_probs", (True,)))
        raise rows.stored.file_error(f"{fact} Save their softmax under the name probs.")
    check_same_classes(rows, getattr(fitted, "class_names_", None), "the calibrator")
    if fitted_on is None or fitted_on.kind != "probabilities":
        return with_own_floor(rows, output)
    # Older calibrator files have no floor: there, a probability of 0 was the logit -inf.
    return with_given_floor(rows, fitted_on.floor or 0.0, output, "at the fit")


def refuse_calibrated(rows: RowFile) -> None:
    """Raise if the rows are already calibrated: calibrating twice gives wrong probabilities."""
    if rows.calibrated_by is not None:
        raise rows.stored.file_error(
            f"must hold the classifier's own outputs; found probabilities already calibrated by "
            f"{rows.calibrated_by}. Give the file that these were made from."
        )


def check_same_kind(rows: RowFile, others: RowFile) -> None:
    """Raise if one file holds logits and the other probabilities."""
    if rows.kind != others.kind:
        wanted, found = _KIND_IN_WORDS[others.kind], _KIND_IN_WORDS[rows.kind]
        raise rows.stored.file_error(
            f"must hold {wanted}, as {others.path.name} does; found {found}. Save the same outputs of the "
            "classifier in both."
        )


def check_same_classes(rows: RowFile, names: Sequence[str] | None, whose: str) -> None:
    """Raise if the class names of the rows, or their order, differ from those given."""
    from temperance.data.formats.columns import joined

    if names is None or rows.class_names is None or tuple(names) == rows.class_names:
        return
    same = sorted(names) == sorted(rows.class_names)
    what = "in the order of" if same else "named as in"
    fact = f"the classes must be {what} {whose}: {listed(names)}; found {listed(rows.class_names)}."
    if len(names) != len(rows.class_names):
        raise rows.stored.file_error(f"{fact} Choose the file or the calibrator of the same classifier.")
    if rows.stored.columns:
        raise rows.stored.file_error(fact, Remedy("classes", (joined(names),)))
    raise rows.stored.file_error(
        f"{fact} {'Reorder the columns' if same else 'Rename the classes'} and save again."
    )


def with_own_floor(rows: RowFile, output: Output) -> RowFile:
    """Return rows whose probabilities are raised to their own floor; logits unchanged."""
    from temperance.inputs.probabilities import MIN_FLOOR

    if rows.kind != "probs":
        return rows
    end = rows.low_end()
    if end.n_rows_with_zero:  # else all are at or above the floor
        why = f"half of the smallest one above 0 ({end.smallest:.3g}) over {end.n_classes} classes"
        if end.floor == MIN_FLOOR:
            why = "the precision of a float"
        _tell_raised(output, rows, end, end.floor, why)
    return rows.with_floor(end.floor, raises=bool(end.n_rows_with_zero))


def with_given_floor(rows: RowFile, floor: float, output: Output, whose: str) -> RowFile:
    """Return rows whose probabilities are raised to the floor of other rows; logits unchanged."""
    if rows.kind != "probs":
        return rows
    end = rows.low_end(floor)
    if floor == 0 and end.n_rows_with_zero:
        zeros = f"probability 0 in {end.n_rows_with_zero} of {end.n_rows} rows"
        output.tell(f"{on_one_line(rows.path.name)}: {zeros}: kept as impossible classes, as {whose}")
    elif end.n_rows_below:
        _tell_raised(output, rows, end, floor, f"as {whose}")
    return rows.with_floor(floor, raises=bool(end.n_rows_below))


def _tell_raised(output: Output, rows: RowFile, end: LowEnd, floor: float, why: str) -> None:
    if end.n_rows_below == end.n_rows_with_zero:
        which, what = "probability 0", f"raised to {floor:.3g}"
    else:
        which, what = f"probabilities below {floor:.3g}", "raised to it"
    name = on_one_line(rows.path.name)
    output.tell(f"{name}: {which} in {end.n_rows_below} of {end.n_rows} rows: {what}, {why}")


def raised_floor(files: Iterable[RowFile]) -> float | None:
    """Return the floor of the files if it raises a probability in any of them."""
    return next((rows.floor for rows in files if rows.raises), None)


def source_of(rows: RowFile) -> FittedOn:
    """Return what a calibrator of these rows is fitted on."""
    from temperance.formulas.fit_record import FittedOn

    return FittedOn("probabilities", rows.floor) if rows.kind == "probs" else FittedOn("logits")


def say_columns(output: Output, rows: RowFile) -> None:
    """Print how the columns of a table are used, or the class names; nothing if classes are numbered."""
    columns, names = rows.stored.columns, rows.class_names
    if not columns:
        if names is not None:
            output.say(on_one_line(f"classes: {listed(names)}"))
        return
    parts = [f"{'classes' if len(columns) > 1 else 'score'}: {listed(columns)}"]
    if names is not None and not all(map(str.endswith, columns, names)):
        parts.append(f"named {listed(names)}")
    if rows.label_column is not None:
        parts.append(f"labels: {rows.label_column!r}")
    if rows.id_column is not None:
        parts.append(
            f"ids: {rows.id_column!r}" if rows.id_column else "ids: the first column, without a name"
        )
    output.say(on_one_line(f"{rows.path.name}: columns of {'; '.join(parts)}"))


def columns_for_json(rows: RowFile) -> dict[str, Any]:
    """Return the same for the JSON output."""
    names = None if rows.class_names is None else list(rows.class_names)
    if not rows.stored.columns:
        return {} if names is None else {"class_names": names}
    columns = {"scores": list(rows.stored.columns), "label": rows.label_column, "id": rows.id_column}
    return {"columns": columns, "class_names": names}


def file_for_json(rows: RowFile, **more: Any) -> dict[str, Any]:
    """Return what the JSON output says about the file of the rows."""
    about = {"path": str(rows.path), "key": rows.key, "rows": rows.shape[0]}
    return about | more | columns_for_json(rows)
