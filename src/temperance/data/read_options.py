"""How the rows of a file are read: what a user says about a file, from the command line to its format.

To add an option, add a field with its help here and an argument to `open_rows`, and read it in the format
that it is for. The command line makes an option of every field with help; errors, commands to paste and the
store of a study write the fields by their names.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

KINDS = ("logits", "probs")
"""Names of arrays of scores, and their prefixes in a task file."""
UNITS = ("fraction", "percent")  # formulas.fit_record.UNITS, which would be slow to import here
PARTS = ("val", "test")
"""The sets of rows in a task file."""
CLASS_KEYS = ("classes", "class_names")
"""Names of the array with the names of the classes."""
MARK_KEY = "calibrated_by"
"""The key of the calibrator that made the probabilities of a file."""


def _option(help: str, default: Any = None, **kind: Any) -> Any:
    """Return a field that is an option of the command line, with its help and the kind of its value."""
    return field(default=default, metadata={"help": help, **kind})


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the user says about a file of rows. `open_rows` describes the fields."""

    kind: str | None = _option("What the numbers are, if the file does not say.", choices=KINDS)
    labels: Path | None = _option(  # noqa: RUF009  a field
        "File with the labels, if they are not in the file of logits.", file=True
    )
    part: str | None = _option("Which rows of a task file (logits_val or logits_test).", choices=PARTS)
    length_normalised: bool = _option(
        "Divide log-likelihoods of lm-evaluation-harness by the length of the answers, as acc_norm does.",
        default=False,
    )
    renormalise: bool = _option(
        "Divide each row of probabilities by its sum: for rounded ones, percentages or votes.",
        default=False,
    )
    positions: bool = _option(
        "Columns are positions without a meaning, as the options of questions, not classes. Samples of "
        "lm-evaluation-harness say so.",
        default=False,
    )
    """What the file cannot say about its columns: only on the command line."""
    label_column: str | None = _option(
        "Column of a table with the labels, if it has another name.", metavar="NAME"
    )
    id_column: str | None = _option("Column of a table with the row names.", metavar="NAME")
    group_column: str | None = _option(
        "Column, or array, with the group of each row, such as the patient or the document; by default one "
        "called groups.",
        metavar="NAME",
    )
    by: str | None = _option(
        "Column, or array, whose values are scored separately, such as the hospital.", metavar="NAME"
    )
    dim: int | None = _option(
        "Axis of the classes in an array with more than two axes, counted from 0: 1 for pixels "
        "(N, K, H, W), 2 for tokens (N, T, K). The entries of the first axis are groups.",
        type=int,
    )
    ignore_index: int | None = _option(
        "Label of rows to leave out, such as 255 for pixels without a class.", type=int
    )
    classes: tuple[str, ...] | None = _option(
        "Class names, separated by commas, or @FILE with one on each line.", metavar="NAMES"
    )
    positive: str | None = _option(
        "Class whose probability people act on.  [default: as in the fit; of two, the second]",
        metavar="NAME",
    )
    """Its name, or its column where classes have no names."""
    from_probs: bool = _option(
        "The file holds the classifier's own probabilities: calibrate their logarithms.", default=False
    )
    """As kind="probs", for a calibrator that was fitted to logits: only on the command line."""
    unit: str | None = _option(
        "What stated confidences are in.  [default: as in the fit; without one, the numbers tell]",
        choices=UNITS,
    )
    floor: float | None = None
    default_part: str | None = None
    """The part of a task file that is read if `part` is None; other files have no parts."""
    default_dim: int | None = None
    """The axis of the classes in an array with more axes if `dim` is None, from a calibrator's fit."""
    default_kind: str | None = None
    """What the numbers are, if nothing says so and the classes are `default_classes`."""
    default_classes: tuple[str, ...] | None = None
    """The names of the classes if neither the user nor the file has any, from a calibrator."""
    default_unit: str | None = None
    """The unit of stated confidences if `unit` is None, from a calibrator's fit or from validation rows."""
    default_positive: int | None = None
    """The class that is evaluated if `positive` is None, from a calibrator."""
    labels_only: bool = False
    """Whether only the labels are read, so that other columns can hold anything. The reader sets it."""

    @classmethod
    def described(cls) -> list[Field[Any]]:
        """Return the fields that a user of the command line can set."""
        return [one for one in fields(cls) if one.metadata]

    def for_new_rows(self) -> ReadOptions:
        """Return the options for rows that are neither fitted to nor scored."""
        return replace(self, group_column=None, by=None, ignore_index=None, positive=None)

    def given(self) -> dict[str, Any]:
        """Return the values that the user has set, by field."""
        values = {one.name: getattr(self, one.name) for one in self.described()}
        return {name: value for name, value in values.items() if value is not None and value is not False}
