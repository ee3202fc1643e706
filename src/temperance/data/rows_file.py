"""A file of logits or probabilities with its labels, as the commands read it.

A file has the keys `logits` or `probs`, and `labels`. A task file has two sets of rows: `logits_val` or
`probs_val`, `labels_val`, and the same with `_test`. An array with another name, or without one, is used if
the caller names its kind.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats import ARRAYS, TABLES, format_of, open_members
from temperance.data.formats.columns import check_number_of_classes, joined
from temperance.data.formats.harness import are_samples
from temperance.data.lazy_array import FILL_BYTES, ChangedArray, LazyArray
from temperance.data.read_options import CLASS_KEYS, KINDS, MARK_KEY, PARTS, UNITS, ReadOptions
from temperance.errors import InputError, Remedy, file_error, listed, rows_from
from temperance.files import filled_array
from temperance.inputs.containers import open_logits, rows_to_keep
from temperance.inputs.groups import MIN_GROUPS, groups_of_axes
from temperance.inputs.labels import MARK_CLASSES, check_labels, from_marks
from temperance.inputs.names import check_class
from temperance.inputs.probabilities import MIN_FLOOR, LowEnd, divide_by_sums, logits_from_probs
from temperance.inputs.validation import (
    INSPECTED_ROWS,
    MIN_SCORES,
    SCORES_LIKE,
    check_choice,
    check_number,
    doubtful_columns,
    like_probabilities,
)

MAX_RATING = 10
"""The end of the longest usual scale of ratings: of percentages, some are larger."""


@dataclass(frozen=True)
class RowFile:
    r"""Rows of logits or probabilities in a file, read when needed, and their labels.

    `open_rows` opens one.

    Attributes
    ----------
    path : Path
        The file.
    kind : {"logits", "probs"}
        What the numbers are.
    labels : array of shape (N,), or None
        Column of the true class of each row; None if the labels were not read.
    stored : LazyArray
        The array, which is read block by block.
    class_names : tuple of str, or None
        Names of the classes, in the order of the columns; None if they are numbered.
    beside : dict of LazyArray
        What the file has beside the scores, as it is stored: labels, ids, groups, by.
    options : ReadOptions
        How the file is read.
    floor : float, or None
        Smaller probabilities are raised to this value; None means the floor of the rows themselves.
    raises : bool, or None
        Whether any probability is smaller; None if unknown.
    length_normalised : bool, or None
        For samples of lm-evaluation-harness: whether log-likelihoods are divided by the length of the
        answers. None for other files.
    positions : bool
        Whether the columns are positions of answers, as in such samples: `positions` of `Calibrator.fit`.
    renormalised : bool
        Whether each row of probabilities is divided by its sum.
    unit : {"fraction", "percent"}, or None
        What a single column of confidences is stored in; None for other rows.
    array_shape : tuple of int
        The shape of the array in the file; of one with more than two axes, every pixel or token is a row.
    dim : int, or None
        The axis of the classes in such an array.
    kept : array of bool, or None
        Which rows of the file these are; None if they are all.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("prob_cat,prob_dog,label\n0.9,0.1,cat\n0.2,0.8,dog\n")
    >>> rows = open_rows(path)
    >>> rows.kind, rows.class_names, rows.labels.tolist()
    ('probs', ('cat', 'dog'), [0, 1])
    >>> rows.logits().round(2).tolist()
    [[-0.11, -2.3], [-1.61, -0.22]]
    """

    path: Path
    kind: str
    stored: LazyArray = field(repr=False)
    beside: dict[str, LazyArray] = field(repr=False)
    options: ReadOptions = field(repr=False)
    class_names: tuple[str, ...] | None = None
    labels: NDArray[np.intp] | None = None
    floor: float | None = None
    raises: bool | None = None
    length_normalised: bool | None = None
    positions: bool = False
    renormalised: bool = False
    unit: str | None = None
    array_shape: tuple[int, ...] = ()
    dim: int | None = None
    kept: NDArray[np.bool_] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: Path, options: ReadOptions, *, need_labels: bool = True) -> RowFile:
        """Open a file with some options. Missing labels raise an error only if they are needed."""
        for name, times in Counter(options.classes or ()).items():
            if not name or times > 1:
                what = f"{name!r} more than once" if name else "an empty one"
                raise InputError(f"classes must be different names, one per class; found {what}.")
        # The label column belongs to the file with the labels.
        own = options if options.labels is None else replace(options, label_column=None)
        members = open_members(path, own)
        part = _choose_part(path, members, options)
        kind, whole, stored, dim = _choose_scores(path, members, part, options)
        if not stored.key and stored.columns and options.classes is None:
            _refuse_doubtful(stored, kind, options.default_classes)
        stored, unit = _in_unit(stored, kind, options)
        names = _class_names(path, members, stored, options)
        leading = _without_axis(whole.shape, dim)
        of_labels = replace(options, classes=names)
        found = {
            "labels": _find_labels(path, members, part, of_labels, required=need_labels),
            "ids": members.get("ids"),
            "groups": _find_beside(path, members, part, "groups", options.group_column, leading),
            "by": _find_beside(path, members, part, "by", options.by, leading),
            MARK_KEY: members.get(MARK_KEY),
        }
        beside = {key: array for key, array in found.items() if array is not None}
        ids = beside.get("ids")
        if ids is not None and (ids.shape != stored.shape[:1] or ids.dtype.kind not in "Uiuf"):
            del beside["ids"]
        samples = are_samples(members)
        rows = cls(
            path,
            kind,
            stored,
            beside,
            options,
            names,
            floor=options.floor,
            length_normalised=options.length_normalised if samples else None,
            positions=options.positions or samples,
            unit=unit,
            array_shape=whole.shape,
            dim=dim,
        )
        rows = rows.renormalise() if options.renormalise else rows
        return rows.with_labels() if need_labels or options.labels is not None else rows

    def with_labels(self) -> RowFile:
        """Return the rows with their labels read; raise if a label is invalid."""
        stored, rows, ignored = self.beside["labels"], self, self.options.ignore_index
        # Compiled loops need aligned labels.
        array = np.require(stored.labels(), requirements="A")
        if self.class_names == MARK_CLASSES:
            array = from_marks(array)
        with stored.naming_file():
            if self.dim is not None and array.shape != self.leading:
                axes, of = range(1, len(self.array_shape)), self.array_shape
                fitting = tuple(dim for dim in axes if _without_axis(of, dim) == array.shape)
                raise InputError(
                    f"labels must have the shape of the {self.kind} without the axis of the classes, "
                    f"{self.leading}; found shape {array.shape}.",
                    remedy=Remedy("dim", fitting) if fitting else None,
                )
            array = array.reshape(-1) if self.dim is not None else array
            if ignored is not None and array.shape == self.shape[:1] and self.kept is None:
                kept = np.zeros(len(array), bool)
                kept[rows_to_keep(array, ignored)] = True
                left = ChangedArray(
                    self.stored,
                    (int(kept.sum()), *self.shape[1:]),
                    lambda block, first: block[kept[first : first + len(block)]],
                    self.stored.dtype,
                )
                rows, array = replace(self, stored=left, kept=kept), array[kept]
            labels = check_labels(array, rows.shape[0], rows.n_classes, rows.class_names)
        return replace(rows, labels=labels)

    @property
    def key(self) -> str:
        """Name of the array in the file."""
        return self.stored.key

    @property
    def has_labels(self) -> bool:
        """Whether there are labels, in this file or in another that the user has named."""
        return "labels" in self.beside

    @property
    def label_column(self) -> str | None:
        """The column of this table from which the labels were read."""
        if self.labels is None or self.beside["labels"].path != self.path:
            return None
        return next(iter(self.beside["labels"].columns), None)

    @property
    def calibrated_by(self) -> str | None:
        """The calibrator that made these probabilities, if the file names one."""
        if MARK_KEY not in self.beside:
            return None
        with suppress(InputError):
            return str(next(self.beside[MARK_KEY]._blocks(1)).ravel()[0])
        return "a calibrator"  # the cell cannot be read

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, K), or (N,) for a binary classifier with one score."""
        return self.stored.shape

    @property
    def leading(self) -> tuple[int, ...]:
        """The shape of the array in the file without the axis of the classes."""
        return _without_axis(self.array_shape, self.dim)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the logits: integers become float64."""
        return _float_type(self.stored)

    @property
    def n_classes(self) -> int:
        """K, which is 2 if there is one score."""
        return self.shape[1] if len(self.shape) == 2 else 2

    @property
    def from_probs(self) -> bool | None:
        """What calibrators are told of `logits()`: False if they are logits for sure.

        They are if they come from probabilities, or if the user says so.
        """
        return False if self.kind == "probs" or self.options.kind == "logits" else None

    def _check_are_logits(self, rows: NDArray[Any]) -> None:
        """Raise if the first rows are probabilities under the name of logits; of a few, their use warns."""
        if self.from_probs is False or len(rows) < MIN_SCORES:
            return
        what = like_probabilities(open_logits(rows).values)
        if what and not (what == SCORES_LIKE and self.options.default_kind):
            stem = "columns prob_..." if self.stored.columns else "array probs"
            raise self.stored.file_error(
                f"logits are unbounded scores; found {what}, like probabilities. If they are, name the "
                f"{stem}. If they are logits, say so.",
                Remedy("kind", ("logits",)),
            )

    @property
    def positive(self) -> int | None:
        """The column of the class whose probability is evaluated, if the user or a calibrator names one."""
        name, names = self.options.positive, self.class_names
        if name is None:
            return self.options.default_positive
        return check_class("positive", name, names, self.n_classes)

    def named(self, columns: Any) -> Any:
        """Return columns as the library takes them beside `class_names`: as names, if there are any."""
        return columns if self.class_names is None or columns is None else np.array(self.class_names)[columns]

    @property
    def id_column(self) -> str | None:
        """The column of a table with the row names."""
        return next(iter(self.beside["ids"].columns), None) if "ids" in self.beside else None

    @property
    def ids(self) -> NDArray[Any] | None:
        """The row names, read when needed; None if the file has none."""
        return self._one_per_row("ids")

    @property
    def groups(self) -> NDArray[Any] | None:
        """The group of each row, read when needed; None if the file has none.

        Rows of an array with more axes have groups: the entries of the first axis, if these are several.
        """
        return self.groups_of(MIN_GROUPS)

    def groups_of(self, at_least: int) -> NDArray[Any] | None:
        """Return `groups`, where so many entries of the first axis are groups."""
        if "groups" in self.beside:
            return self._one_per_row("groups")
        groups = groups_of_axes(self.leading, at_least=at_least)
        return groups if groups is None or self.kept is None else groups[self.kept]

    @property
    def by(self) -> NDArray[Any] | None:
        """The value by which each row is scored separately, read when needed; None unless asked for."""
        return self._one_per_row("by")

    def _one_per_row(self, key: str) -> NDArray[Any] | None:
        """Return what is stored beside the scores, per row; an image or text has it for all its rows."""
        if key not in self.beside:
            return None
        values = self.beside[key].labels()
        if self.dim is not None:
            missing = len(self.leading) - values.ndim
            values = np.broadcast_to(values.reshape(values.shape + missing * (1,)), self.leading).reshape(-1)
        return values if self.kept is None else values[self.kept]

    def blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored numbers in order, in blocks of `rows` rows; the last block can be smaller."""
        check_number("rows", rows, ">= 1", lambda number: number >= 1, whole=True)
        return self.stored.blocks(rows)

    def array(self) -> NDArray[Any]:
        """Return all stored numbers: a memory map if the format allows it."""
        return self.stored.array()

    def logit_blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield logits in order, as `blocks` does: logarithms of probabilities, with zeros raised."""
        start, floor = 0, self.floor
        if self.kind == "probs" and floor is None:
            floor = self.low_end().floor
        for block in self.stored.blocks(rows):
            if start == 0:
                self._check_are_logits(block[:INSPECTED_ROWS])
            with self.stored.naming_file(), rows_from(start):
                logits = logits_from_probs(block, floor) if self.kind == "probs" else block
            yield logits.astype(self.dtype, copy=False)
            start += len(block)

    def logits(self) -> NDArray[Any]:
        """Return all logits; those from probabilities are computed block by block into scratch space."""
        if self.kind == "logits" and self.stored.dtype.kind == "f":
            array = self.array()
            self._check_are_logits(array[:INSPECTED_ROWS])
            return array
        return filled_array(self.shape, self.dtype, self.logit_blocks(self._rows_at_once()))

    def renormalise(self) -> RowFile:
        """Return the same rows of probabilities, each divided by its sum."""
        if self.kind != "probs":
            raise self.stored.file_error(
                "must hold probabilities to be renormalised; found logits.", Remedy("renormalise")
            )
        if self.renormalised:
            return self
        shares = ChangedArray(self.stored, self.shape, lambda block, first: divide_by_sums(block), self.dtype)
        return replace(self, stored=shares, renormalised=True)

    def low_end(self, floor: float = MIN_FLOOR) -> LowEnd:
        """Return how many rows have a probability of 0, or below `floor`, in one pass over the file."""
        return LowEnd.joined(LowEnd.of(block, floor) for block in self.stored.blocks(self._rows_at_once()))

    def with_floor(self, floor: float, *, raises: bool | None = None) -> RowFile:
        """Return the same rows with smaller probabilities raised to `floor`; 0 raises none.

        `raises` is whether there are any smaller ones, if that is known.
        """
        return replace(self, floor=floor, raises=raises)

    def _rows_at_once(self) -> int:
        return max(1, FILL_BYTES // (self.dtype.itemsize * math.prod(self.shape[1:])))


def open_rows(
    path: str | Path,
    *,
    part: str | None = None,
    kind: str | None = None,
    labels: str | Path | None = None,
    need_labels: bool = True,
    classes: str | Sequence[str] | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    group_column: str | None = None,
    by: str | None = None,
    floor: float | None = None,
    length_normalised: bool = False,
    renormalise: bool = False,
    unit: str | None = None,
    dim: int | None = None,
    ignore_index: int | None = None,
) -> RowFile:
    """Open a file of logits or probabilities; only the labels are read.

    Parameters
    ----------
    path : path
        A file with a format in `temperance.data.formats.FORMATS`, such as .npz, .csv, .parquet or .jsonl.
    part : {"val", "test"}, optional
        Which rows of a task file.
    kind : {"logits", "probs"}, optional
        What the file holds, if its keys do not tell, or if it holds both.
    labels : path, optional
        Another file with the labels.
    need_labels : bool
        Whether missing labels raise an error. If False, labels in `path` are not read, since they might be
        unknown; a file given as `labels` is still read.
    classes : sequence of str, or names separated by commas; optional
        Names of the classes, if the file has none. If the columns of a table have such names, these columns
        are used in this order.
    label_column, id_column : str, optional
        The table column with the labels, if its name is not label, target, y, class or truth; and the column
        with the row names, if it is not a first column without a name.
    group_column, by : str, optional
        The column or array with the group of each row, if its name is not groups; and the column or array
        whose values are scored separately.
    floor : float, optional
        Smaller probabilities are raised to this value before the logarithm, as in `logits_from_probs`. By
        default, one more pass over the file finds it.
    length_normalised : bool
        Divide the log-likelihoods in samples of lm-evaluation-harness by the characters of the answers.
    renormalise : bool
        Divide each row of probabilities by its sum: for rounded probabilities, percentages or votes.
    unit : {"fraction", "percent"}, optional
        What stated confidences, a single column of them, are in. By default the numbers tell: up to 1 they
        are fractions, and with one above 10 percentages; between, as ratings are, they raise an error.
    dim : int, optional
        The axis of the classes in an array with more than two axes: 1 for pixels (N, K, H, W), 2 for tokens
        (N, T, K). Every pixel or token is a row; the entries of the first axis are their groups.
    ignore_index : int, optional
        Label of rows to leave out, such as 255 for pixels without a class.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.savez(f"{folder.name}/val.npz", logits=np.zeros((4, 3)), labels=[0, 1, 2, 0])
    >>> rows = open_rows(f"{folder.name}/val.npz")
    >>> rows.kind, rows.shape, rows.labels
    ('logits', (4, 3), array([0, 1, 2, 0]))
    >>> [len(block) for block in rows.blocks(3)]
    [3, 1]
    >>> folder.cleanup()
    """
    for name, value, choices in (("part", part, PARTS), ("kind", kind, KINDS), ("unit", unit, UNITS)):
        if value is not None:
            check_choice(name, value, choices)
    given = classes.split(",") if isinstance(classes, str) else classes
    options = ReadOptions(
        part=part,
        kind=kind,
        labels=None if labels is None else Path(labels),
        classes=None if given is None else tuple(str(name).strip() for name in given),
        label_column=label_column,
        id_column=id_column,
        group_column=group_column,
        by=by,
        floor=floor,
        length_normalised=length_normalised,
        renormalise=renormalise,
        unit=unit,
        dim=dim,
        ignore_index=ignore_index,
    )
    return RowFile.open(Path(path), options, need_labels=need_labels)


def parts(path: str | Path) -> tuple[str, ...]:
    """Return the sets of rows in a task file, such as ("val", "test"); () for other files.

    Parameters
    ----------
    path : path
        A file of logits or probabilities.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "task.npz"
    >>> np.savez(path, logits_val=np.eye(2), labels_val=[0, 1], logits_test=np.eye(2), labels_test=[0, 1])
    >>> parts(path)
    ('val', 'test')
    """
    return parts_of(open_members(path)) if format_of(Path(path)) in ARRAYS else ()


def parts_of(members: dict[str, LazyArray]) -> tuple[str, ...]:
    """Return the sets of rows that a task file has."""
    return tuple(part for part in PARTS if f"logits_{part}" in members or f"probs_{part}" in members)


def _choose_part(path: Path, members: dict[str, LazyArray], options: ReadOptions) -> str | None:
    """Return the part to read; None for a file that is not a task file."""
    there = parts_of(members)
    part = options.part or (options.default_part if options.default_part in there else None)
    if part is not None and part not in there:
        has = " and ".join(there) or f"{_listed(members)}: it is not a task file"
        raise file_error(path, f"must have the part {part!r}; found {has}.", remedy=Remedy("part"))
    if part is not None or not there or any(kind in members for kind in KINDS):
        return part
    if len(there) == 2:
        raise file_error(path, "has two sets of rows, val and test.", remedy=Remedy("part", PARTS))
    return there[0]


def _choose_scores(
    path: Path, members: dict[str, LazyArray], part: str | None, options: ReadOptions
) -> tuple[str, LazyArray, LazyArray, int | None]:
    """Return whether logits or probabilities, their array, its rows, and the axis of the classes.

    The axis is None for one or two axes. Raise unless the rows are an (N, K) or (N,) array.
    """
    kind, said = ("probs", "from_probs") if options.from_probs else (options.kind, "kind")
    suffix = f"_{part}" if part else ""
    named = [one for one in KINDS if one + suffix in members]
    beside = ("labels", "ids", "groups", "by", MARK_KEY, *CLASS_KEYS, options.group_column, options.by)
    others = [key for key in members if key not in beside]
    if not named and len(others) != 1:
        raise file_error(
            path, f"must have an array named logits or probs; found {_listed(members)}. Rename one."
        )
    found = (kind if kind in named else named[0]) if named else None  # logits first
    whole = members[f"{found}{suffix}" if found else others[0]]
    if found and kind not in (None, found):
        raise whole.file_error(f"must hold {kind}, as requested; found {found}.", Remedy(said))
    whole.check_numbers()  # arrays that cannot be read are not listed
    stored, dim = _rows_of(whole, found or "scores", options)
    if not found and kind is None and options.default_kind and _is_default_kind(members, stored, options):
        kind = options.default_kind
    found = found or kind
    if found is None:
        sentence = "does not say whether it holds logits or probabilities."
        raise stored.file_error(sentence, Remedy("kind", KINDS))
    shape, advice = stored.shape, ""
    if dim is None and shape[1:] == (1,):  # the head of a binary classifier
        shape = shape[:1]
        stored = ChangedArray(stored, shape, lambda block, first: block[:, 0], stored.dtype)
    if len(shape) == 2 and shape[1] < 2:
        advice = "Save one column per class."
    elif shape[0] == 0:
        advice = "Save at least one row."
    if advice:
        wanted = f"{found} must be an (N, K) array, one row per prediction and one column per class"
        raise stored.file_error(f"{wanted}; found shape {shape}. {advice}")
    return found, whole, stored, dim


def _without_axis(shape: tuple[int, ...], dim: int | None) -> tuple[int, ...]:
    """Return the shape of what has one value per row; `dim` is None for one or two axes."""
    return shape[:1] if dim is None else (*shape[:dim], *shape[dim + 1 :])


def _rows_of(stored: LazyArray, what: str, options: ReadOptions) -> tuple[LazyArray, int | None]:
    """Return the rows of an array, and the axis of the classes if it has more than two axes."""
    shape, dim = stored.shape, options.dim
    if len(shape) < 3 and (dim is None or (len(shape) == 2 and dim in (-1, 1))):
        return stored, None
    last = len(shape) - 1
    choices = Remedy("dim", tuple(dict.fromkeys((1, last)))) if last > 1 else Remedy("dim")
    if dim is None and options.default_dim is not None and options.default_dim <= last:
        dim = options.default_dim
    if dim is None:
        wanted = f"{what} with more than two axes need the axis of the classes"
        raise stored.file_error(f"{wanted}; found shape {shape}.", choices)
    if not (-last <= dim < 0 or 1 <= dim <= last):
        fact = f"dim must be the axis of the classes, which is not the first, in shape {shape}"
        raise stored.file_error(f"{fact}; found {dim}.", choices)
    dim %= len(shape)
    inner, n_classes = math.prod(_without_axis(shape, dim)[1:]), shape[dim]

    def rows(block: NDArray[Any], first: int) -> NDArray[Any]:
        return np.moveaxis(block, dim, -1).reshape(-1, n_classes)

    of_rows = (shape[0] * inner, n_classes)
    return ChangedArray(stored, of_rows, rows, stored.dtype, rows_in_entry=inner), dim


def _in_unit(stored: LazyArray, kind: str, options: ReadOptions) -> tuple[LazyArray, str | None]:
    """Return a single column of confidences from 0 to 1, and the unit in which it is stored.

    The user or a calibrator's fit says the unit; otherwise the numbers have to tell.
    """
    said, unit = options.unit, options.unit or options.default_unit
    single = kind == "probs" and len(stored.shape) == 1
    if said is not None and not single:
        what = f"{kind} of shape {stored.shape}"
        raise stored.file_error(
            f"the unit belongs to a single column of confidences; found {what}.", Remedy("unit")
        )
    if not single or (unit is None and stored.class_names != MARK_CLASSES):
        return stored, None
    of_fit = options.default_kind == "probs"
    unit = unit or _told_unit(stored, of_fit=of_fit)
    fraction = unit == "fraction"

    def shares(block: NDArray[Any], first: int) -> NDArray[Any]:
        bad = (block < 0) | (block > (1 if fraction else 100))
        if not fraction and said is None:  # only the user can know that 0.9 is less than one percent
            bad |= (block > 0) & (block < 1)
        if bad.any():
            wanted = (
                "fractions, from 0 to 1"
                if fraction
                else f"percentages, {'' if said else '0 or '}from {0 if said else 1} to 100"
            )
            raise InputError(
                f"confidences must be {wanted}{', as in the fit' if of_fit and not said else ''}; found "
                f"{block[bad][0]:g}",
                rows=np.flatnonzero(bad),
                advice="Correct them." if said else "Correct them, or say what they are in.",
                remedy=None if said else Remedy("unit", UNITS[fraction:]),
            )
        return block if fraction else block / 100

    return ChangedArray(stored, stored.shape, shares, _float_type(stored)), unit


def _told_unit(stored: LazyArray, *, of_fit: bool) -> str:
    """Return the unit that confidences tell: percent if one is above 10, fraction if none is above 1.

    `of_fit`: a calibrator was fitted to confidences in a unit that it does not know.
    """
    highest = 0.0
    for block in stored.blocks(INSPECTED_ROWS * 100):
        highest = float(np.fmax.reduce(block, initial=highest))
    if highest <= 1:
        return "fraction"
    if of_fit:
        fact = f"the calibrator does not say what its confidences were in; found {highest:g}."
        raise stored.file_error(fact, Remedy("unit", ("percent",)))
    if highest <= MAX_RATING:
        raise stored.file_error(
            f"confidences must be from 0 to 1, or percentages; found {highest:g} at most, like ratings. "
            f"Divide ratings by the largest possible one, such as {MAX_RATING}. If they are percentages, say "
            "so.",
            Remedy("unit", ("percent",)),
        )
    return "percent"


def _float_type(stored: LazyArray) -> np.dtype[Any]:
    """Return the type of logits or probabilities: integers become float64."""
    return stored.dtype if stored.dtype.kind == "f" else np.dtype(np.float64)


def _find_beside(
    path: Path,
    members: dict[str, LazyArray],
    part: str | None,
    key: str,
    name: str | None,
    leading: tuple[int, ...],
) -> LazyArray | None:
    """Return an array with one value per row, by its key or by the name that the user passes."""
    wanted = key if name is None or format_of(path) in TABLES else name
    whole = f"{wanted}_{part}" if part else wanted
    found = members.get(whole)
    if found is None and name is not None:
        remedy = Remedy("group_column", ("NAME",)) if key == "groups" else Remedy("by", ("NAME",))
        raise file_error(path, f"must have an array named {whole}; found {_listed(members)}.", remedy=remedy)
    if found is not None and (not found.shape or found.shape != leading[: len(found.shape)]):
        size = f"{leading[0]} rows" if len(leading) == 1 else f"rows of shape {leading}"
        raise found.file_error(f"must have one value per row; found shape {found.shape} for {size}.")
    return found


def _refuse_doubtful(stored: LazyArray, kind: str, known: tuple[str, ...] | None) -> None:
    """Raise if a column of a table without logit or prob columns is unlikely to be a class.

    Known classes are fine. For probabilities the sums of the rows tell, so only names are checked.
    """
    rows = next(stored.blocks(INSPECTED_ROWS), np.empty(0)) if kind == "logits" else np.empty(0)
    found = doubtful_columns(stored.columns, rows)
    doubtful = [name for name in stored.columns if name in found and name not in (known or ())]
    if doubtful:
        rest = [name for name in stored.columns if name not in doubtful]
        chosen = dict.fromkeys(joined(names) for names in (rest, stored.columns) if len(names) > 1)
        raise stored.file_error(
            f"column {doubtful[0]!r} might not be the scores of a class: {found[doubtful[0]]}. Drop it, or "
            "name the columns of the classes.",
            Remedy("classes", tuple(chosen)),
        )


def _is_default_kind(members: dict[str, LazyArray], stored: LazyArray, options: ReadOptions) -> bool:
    """Say whether the file has a calibrator's classes, and the kind of scores that it was fitted on."""
    if _own_names(members, stored) != options.default_classes:
        return False
    rows = next(stored.blocks(INSPECTED_ROWS), np.empty(0))
    return bool(((rows >= 0) & (rows <= 1)).all()) == (options.default_kind == "probs")


def _own_names(members: dict[str, LazyArray], stored: LazyArray) -> tuple[str, ...] | None:
    """Return the class names in the file: the names of the columns, or an array.

    An array of another shape, such as the number of classes, holds no names.
    """
    names, n_classes = stored.class_names, stored.shape[1] if len(stored.shape) == 2 else 2
    for key in CLASS_KEYS:
        array = members.get(key)
        if names is None and array is not None and (array.dtype.kind in "UO" or array.shape == (n_classes,)):
            names = tuple(array.labels().astype(str).ravel().tolist())
    return names


def _class_names(
    path: Path, members: dict[str, LazyArray], stored: LazyArray, options: ReadOptions
) -> tuple[str, ...] | None:
    """Return the class names: from the file, from the user, or known otherwise."""
    n_classes = stored.shape[1] if len(stored.shape) == 2 else 2
    names, given = _own_names(members, stored), options.classes
    if names is not None:
        check_number_of_classes(path, n_classes, names)
    elif given is None and len(options.default_classes or ()) == n_classes and not are_samples(members):
        return options.default_classes
    if given is None or given == names:
        return names
    check_number_of_classes(path, n_classes, given)
    if names is not None:
        raise file_error(
            path, f"classes must match the file, which has {listed(names)}; found {listed(given)}.",
            remedy=Remedy("classes"),
        )  # fmt: skip
    return given


def _find_labels(
    path: Path, members: dict[str, LazyArray], part: str | None, options: ReadOptions, *, required: bool
) -> LazyArray | None:
    """Return the array of the labels, in the file of the scores or in another; None if there is none.

    In a table, only the label column holds labels; the error for a table without one lists all columns.
    Numbers in a table have no type, so a single column holds labels only if it has the name of a label
    column.
    """
    key = f"labels_{part}" if part else "labels"
    if options.labels is not None:
        path = options.labels
        options = ReadOptions(label_column=options.label_column, classes=options.classes)
        if format_of(path) in ARRAYS:
            members = open_members(path, options)
            named = [members[one] for one in (key, "labels") if one in members]
            if not named and len(members) > 1:
                raise file_error(
                    path, f"must have an array named labels; found {_listed(members)}. Rename it."
                )
            return named[0] if named else next(iter(members.values()))
    elif key in members or not required:
        return members.get(key)
    elif format_of(path) in ARRAYS:
        raise file_error(
            path, f"must have {key}; found {_listed(members)}.", remedy=Remedy("labels", ("FILE",))
        )
    return open_members(path, replace(options, labels_only=True))["labels"]


def _listed(members: dict[str, LazyArray]) -> str:
    return ", ".join(key or "an array without a name" for key in members)
