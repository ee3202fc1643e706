"""The rows of a command: opened, matched with a calibrator or with other rows, and described.

Probabilities of 0, or nearly, are raised to a floor, and the user is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temperance.cli.output import Output
from temperance.data.read_options import MARK_KEY, ReadOptions
from temperance.errors import Remedy, listed, on_one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from temperance.calibrators import Calibrator
    from temperance.data import RowFile

KIND_IN_WORDS = {"logits": "logits", "probs": "probabilities"}


def open_for_calibrator(
    path: Path, reading: ReadOptions, fitted: Calibrator, output: Output, *, need_labels: bool = False
) -> RowFile:
    """Open the rows to be calibrated, with the settings of the calibrator's fit.

    Labels are read if they are needed, or if the user names them. Raise unless the calibrator was fitted to
    rows of the same kind with the same classes.
    """
    from temperance.data import RowFile
    from temperance.formulas.fit_record import FittedOn

    need_labels |= reading.label_column is not None
    at_fit = fitted.model_.record.fitted_on or FittedOn(kind="")  # rows of which nothing is known
    default_kind = {words: kind for kind, words in KIND_IN_WORDS.items()}.get(at_fit.kind)
    names = getattr(fitted, "class_names_", None)
    reading = replace(
        reading,
        default_kind=default_kind,
        default_classes=names,
        default_dim=at_fit.dim,
        default_unit=at_fit.unit,
        default_positive=fitted.model_.record.positive,
    )
    rows = RowFile.open(path, reading, need_labels=need_labels)
    if at_fit.length_normalised and rows.length_normalised is False:
        rows = RowFile.open(path, replace(reading, length_normalised=True), need_labels=need_labels)
    elif at_fit.length_normalised is False and rows.length_normalised:
        fact = "log-likelihoods must be as in the fit, not divided by the length of the answers"
        raise rows.stored.file_error(f"{fact}; found the opposite.", Remedy("length_normalised"))
    refuse_calibrated(rows)
    kind = KIND_IN_WORDS[rows.kind]
    if at_fit.kind not in ("", kind) and not reading.from_probs:
        fact = f"must hold {at_fit.kind}, which the calibrator was fitted to; found {kind}."
        if kind == "probabilities":
            said = "If they are the classifier's own probabilities, say so."
            raise rows.stored.file_error(f"{fact} {said}", Remedy("from_probs", (True,)))
        raise rows.stored.file_error(f"{fact} Save their softmax under the name probs.")
    if at_fit.renormalised and rows.kind == "probs":
        rows = rows.renormalise()
    if at_fit.positions or rows.positions:
        _check_positions(rows, bool(at_fit.positions), names)
    else:
        check_same_classes(rows, names, "the calibrator")
    if at_fit.length_normalised and rows.length_normalised is None:
        output.tell(f"{on_one_line(path.name)}: used as it is; the calibrator was fitted on {at_fit}")
    if at_fit.kind != "probabilities":
        return with_floor(rows, output)
    # Older calibrator files have no floor: there, a probability of 0 was the logit -inf.
    return with_floor(rows, output, at_fit.floor or 0.0, "at the fit")


def _check_positions(rows: RowFile, at_fit: bool, names: Sequence[str] | None) -> None:
    """Raise if columns are positions of answers at the fit and named classes here, or the reverse."""
    answers = "positions of answers, as in samples of lm-evaluation-harness"
    wanted, found = (
        answers if of_positions else f"classes {listed(named)}" if named else ""
        for of_positions, named in ((at_fit, names), (rows.positions, rows.class_names))
    )
    if wanted and found and wanted != found:
        raise rows.stored.file_error(
            f"the columns must be {wanted}, which the calibrator was fitted to; found {found}. Choose the "
            f"file or the calibrator of the same classifier{', or say that they are positions' * at_fit}.",
            Remedy("positions", (True,)) if at_fit else None,
        )


def refuse_calibrated(rows: RowFile) -> None:
    """Raise if the rows are already calibrated: calibrating twice gives wrong probabilities."""
    if rows.calibrated_by is not None:
        raise rows.stored.file_error(
            f"must hold the classifier's own outputs; found probabilities already calibrated by "
            f"{rows.calibrated_by}. Give the file that these were made from. To calibrate once more on "
            f"purpose, drop {MARK_KEY} from the file."
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


def with_floor(rows: RowFile, output: Output, floor: float | None = None, whose: str = "") -> RowFile:
    """Return rows whose probabilities are raised to a floor, and say so; logits unchanged.

    The floor comes from these rows or from others; `whose` says which.
    """
    from temperance.inputs.probabilities import MIN_FLOOR

    if rows.kind != "probs":
        return rows
    if floor is None:
        end = rows.low_end()
        floor, raises = end.floor, end.n_rows_with_zero > 0  # without a 0, all are at or above the floor
        why = f"half of the smallest one above 0 ({end.smallest:.3g}) over {end.n_classes} classes"
        if floor == MIN_FLOOR:
            why = "the precision of a float"
    else:
        end = rows.low_end(floor)
        raises, why = end.n_rows_below > 0, f"as {whose}"
    count, what = end.n_rows_below, ""
    if raises and count == end.n_rows_with_zero:
        which, what = "probability 0", f"raised to {floor:.3g}"
    elif raises:
        which, what = f"probabilities below {floor:.3g}", "raised to it"
    elif floor == 0 and end.n_rows_with_zero:
        which, what, count = "probability 0", "kept as impossible classes", end.n_rows_with_zero
    if what:
        name = on_one_line(rows.path.name)
        output.tell(f"{name}: {which} in {count} of {end.n_rows} rows: {what}, {why}")
    return rows.with_floor(floor, raises=raises)


def record_rows(fitted: Calibrator, rows: RowFile, class_names: Sequence[str] | None) -> None:
    """Record what only the file tells about the rows of a fit: how they were read, and class names."""
    from temperance.calibrators.fit_record import record_source
    from temperance.formulas.fit_record import FittedOn

    source = FittedOn(
        KIND_IN_WORDS[rows.kind],
        rows.floor if rows.kind == "probs" else None,
        rows.length_normalised,
        positions=rows.positions or None,
        renormalised=rows.renormalised or None,
        unit=rows.unit,
        dim=None if rows.dim is None or rows.dim == len(rows.array_shape) - 1 else rows.dim,
    )
    fitted.model_ = record_source(fitted.model_, source, None if rows.positions else class_names)


def labels_for(fitted: Calibrator, rows: RowFile) -> NDArray[Any] | None:
    """Return the labels as a calibrator takes them: names of its classes, if these have names, or columns.

    Columns would be looked up among names that are whole numbers themselves.
    """
    import numpy as np

    names = fitted.model_.record.class_names
    return rows.labels if names is None or rows.labels is None else np.array(names)[rows.labels]


def say_columns(output: Output, rows: RowFile) -> None:
    """Print how the columns of a table are used, or the class names; nothing if classes are numbered."""
    columns, names = rows.stored.columns, rows.class_names
    if not columns:
        if names is not None:
            output.say(on_one_line(f"classes: {listed(names)}"))
        return
    parts = [f"{'classes' if len(columns) > 1 else 'score'}: {listed(columns)}"]
    if names is not None and len(rows.shape) == 1:
        parts = [f"P({names[1]}): {columns[0]!r}{', in percent' * (rows.unit == 'percent')}"]
    elif names is not None and not all(map(str.endswith, columns, names)):
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


def calibrator_for_json(path: Path, fitted: Calibrator) -> dict[str, str]:
    """Return what the JSON output says about the calibrator file."""
    from temperance.calibrators.registry import key_of

    return {"path": str(path), "method": key_of(fitted)}


def file_for_json(rows: RowFile, **more: Any) -> dict[str, Any]:
    """Return what the JSON output says about the file of the rows."""
    about = {"path": str(rows.path), "key": rows.key, "rows": rows.shape[0]}
    return about | more | columns_for_json(rows)
