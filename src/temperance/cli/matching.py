"""Whether a file of rows matches a calibrator or another file, and what a command reports about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temperance.cli.floor import with_floor_of
from temperance.cli.inputs import RowOptions
from temperance.cli.output import Output
from temperance.errors import on_one_line

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile

KINDS = {"logits": "logits", "probs": "probabilities"}


def reading_probs(row_options: RowOptions, from_probs: bool) -> RowOptions:
    """Return the options of a file that holds probabilities, if the user has said so."""
    from temperance.errors import InputError, Remedy

    if not from_probs:
        return row_options
    if row_options.kind == "logits":
        raise InputError("--from-probs and --input logits exclude each other.", remedy=Remedy("kind"))
    return replace(row_options, kind="probs")


def refuse_calibrated(rows: RowFile) -> None:
    """Raise if the rows are already calibrated: calibrating twice gives wrong probabilities."""
    if rows.calibrated_by is not None:
        raise rows.stored.file_error(
            f"must hold the classifier's own outputs; found probabilities already calibrated by "
            f"{rows.calibrated_by}. Give the file that these were made from."
        )


def open_for_calibrator(
    path: Path,
    row_options: RowOptions,
    fitted: Calibrator,
    output: Output,
    *,
    from_probs: bool,
    need_labels: bool = False,
) -> RowFile:
    """Open the rows to be calibrated, with the floor of the calibrator's fit."""
    from temperance.errors import InputError, Remedy

    options = reading_probs(row_options, from_probs)
    try:
        rows = options.open(path) if need_labels else options.open_with_any_labels(path)
    except InputError as error:
        if from_probs and error.remedy == Remedy("kind"):
            error.remedy = Remedy("from_probs")  # the user has not said --input
        raise
    check_for_calibrator(rows, fitted, from_probs=from_probs)
    return with_floor_of(fitted, rows, output)


def check_for_calibrator(rows: RowFile, fitted: Calibrator, *, from_probs: bool) -> None:
    """Raise unless the calibrator was fitted to rows of the same kind with the same classes."""
    refuse_calibrated(rows)
    _check_kind(rows, fitted, from_probs)
    names = getattr(fitted, "class_names_", None)
    check_same_classes(rows, names, "the calibrator")


def _check_kind(rows: RowFile, fitted: Calibrator, from_probs: bool) -> None:
    from temperance.errors import Remedy

    fitted_on = getattr(fitted, "fitted_on_", None)
    kind = KINDS[rows.kind]
    if fitted_on is None or fitted_on.kind == kind or from_probs:
        return
    fact = f"must hold {fitted_on.kind}, which the calibrator was fitted to; found {kind}."
    if kind == "probabilities":
        said = "If they are the classifier's own probabilities, say so."
        raise rows.stored.file_error(f"{fact} {said}", Remedy("from_probs", (True,)))
    raise rows.stored.file_error(f"{fact} Save their softmax under the name probs.")


def check_same_kind(rows: RowFile, others: RowFile) -> None:
    """Raise if one file holds logits and the other probabilities."""
    if rows.kind != others.kind:
        wanted, found = KINDS[others.kind], KINDS[rows.kind]
        raise rows.stored.file_error(
            f"must hold {wanted}, as {others.path.name} does; found {found}. Save the same outputs of the "
            "classifier in both."
        )


def check_same_classes(rows: RowFile, names: Sequence[str] | None, whose: str) -> None:
    """Raise if the class names of the rows, or their order, differ from those given."""
    from temperance.data.formats.columns import joined
    from temperance.errors import Remedy, listed

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


def describe_columns(rows: RowFile) -> str:
    """Say how the columns of a table are used, or the class names; nothing if classes are numbered."""
    from temperance.errors import listed

    if not rows.stored.columns:
        return "" if rows.class_names is None else f"classes: {listed(rows.class_names)}"
    parts = [f"{'classes' if len(rows.stored.columns) > 1 else 'score'}: {listed(rows.stored.columns)}"]
    if rows.class_names is not None and not _are_named_after(rows.stored.columns, rows.class_names):
        parts.append(f"named {listed(rows.class_names)}")
    if rows.label_column is not None:
        parts.append(f"labels: {rows.label_column!r}")
    if rows.id_column is not None:
        parts.append(
            f"ids: {rows.id_column!r}" if rows.id_column else "ids: the first column, without a name"
        )
    return f"{rows.path.name}: columns of " + "; ".join(parts)


def say_columns(output: Output, rows: RowFile) -> None:
    """Print how the columns are used, before the work begins."""
    if words := describe_columns(rows):
        output.say(on_one_line(words))


def _are_named_after(columns: Sequence[str], names: Sequence[str]) -> bool:
    return all(column.endswith(name) for column, name in zip(columns, names, strict=False))


def columns_for_json(rows: RowFile) -> dict[str, Any]:
    """Return the same for the JSON output."""
    if not rows.stored.columns:
        return {} if rows.class_names is None else {"class_names": list(rows.class_names)}
    return {
        "columns": {
            "scores": list(rows.stored.columns),
            "label": rows.label_column,
            "id": rows.id_column,
        },
        "class_names": None if rows.class_names is None else list(rows.class_names),
    }
