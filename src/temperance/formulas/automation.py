"""From calibrated probabilities to decisions, with only NumPy: by a confidence threshold, or by costs.

A rule (`Automation`) decides on the top class of a row if its probability is above a threshold, or on one
positive class if its probability is, and leaves the other rows to a person. `temperance.decisions` finds the
threshold; a model holds it, and its file stores it.

With costs[k, d] of decision d where the true class is k, the decision is the one of least expected cost,
sum_k p_k costs[k, d]. The first K decisions are the classes; others are the caller's own, such as "abstain".
The sum is in the order of the classes, and costs that differ by rounding are tied: a row is decided alike
whichever rows are beside it. Of tied decisions the top class is taken, else the first.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import block_rows, row_slices
from temperance.errors import InputError, percent
from temperance.inputs.containers import as_numpy
from temperance.inputs.names import Names, class_in_words

if TYPE_CHECKING:
    from temperance.formulas.model import Model

ASK_A_PERSON = -1
"""The decision on a row that a rule leaves to a person."""
_ROUNDING = 1e-12  # of an expected cost, as a share of it
_LISTED = 3  # classes in a sentence


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """The error rate of the most confident rows against their share, with exact limits.

    Each limit holds with probability 1 - delta, one at a time.

    Attributes
    ----------
    threshold, share : (M,) arrays
        Probabilities, in decreasing order, and the share of the rows above each.
    error : (M,) array
        The share of these rows that is wrong.
    low, high : (M,) arrays
        Its lower and upper confidence limits.

    Examples
    --------
    >>> import temperance
    >>> task = temperance.data.simulate(n_rows=1000, n_classes=3, random_state=0)
    >>> curve = temperance.automate(task.probabilities, task.labels, max_error=0.1).curve
    >>> bool((curve.low <= curve.error).all() and (curve.error <= curve.high).all()), float(curve.share[-1])
    (True, 1.0)
    """

    threshold: Vector
    share: Vector
    error: Vector
    low: Vector
    high: Vector


@dataclass(frozen=True, eq=False)
class Automation:
    """A rule for which predictions need no person, and what it promises.

    Attributes
    ----------
    threshold : float or None
        Rows whose probability is above it can be left to the machine; None if the rows support no threshold.
    share : float
        The share of the rows above it.
    error, bound : float or None
        The share of these that was wrong, and its upper limit with probability 1 - delta, for this threshold
        alone.
    max_error, delta : float
        The promise: of future rows above the threshold at most `max_error` are wrong, except with
        probability `delta`.
    positive : int or None
        The column of the class whose probability is meant; None for the top class of each row.
    rows : int
        How many held-out rows it was found on.
    groups : int or None
        How many groups they form, if rows of a group can depend on each other.
    rows_needed : int or None
        Without a threshold: about how many rows like these would support one. None if these rows do not show
        that more would help.
    curve : ErrorCurve or None
        The error rate against the share of the rows. None if the rule comes from a file.
    class_names : tuple or None
        The names of the classes.
    missed : array or None
        By class, the share of its rows that is above the threshold and decided as another class; 0 of a class
        without rows. None without a threshold, or if it is not recorded, as in files before version 3.

    Examples
    --------
    >>> Automation(0.912, 0.74, 0.014, 0.019, max_error=0.02, delta=0.05, rows=5000).words
    'Above 91.2% confidence: 74% of the rows, at most 2% of them wrong (95% confidence).'
    """

    threshold: float | None
    share: float
    error: float | None
    bound: float | None
    max_error: float
    delta: float
    rows: int
    positive: int | None = None
    groups: int | None = None
    rows_needed: int | None = None
    curve: ErrorCurve | None = None
    class_names: Names | None = None
    missed: Vector | None = None

    @property
    def words(self) -> str:
        """The rule and its promise in a sentence, or why there is none."""
        name = None if self.positive is None else class_in_words(self.positive, self.class_names)
        level, most = f"{100 * (1 - self.delta):g}% confidence", f"{100 * self.max_error:g}%"
        what = "wrong" if name is None else f"not {name}"
        rows = self.rows_in_words
        if self.threshold is None:
            missing = f"No threshold: {rows} do not show that at most {most} of some are {what} ({level})."
            units, counted = (self.rows, "rows") if self.groups is None else (self.groups, "groups")
            if self.rows_needed is None:
                return f"{missing} Nor do they suggest that more {counted} would."
            return (
                f"{missing} About {math.ceil(self.rows_needed * units / self.rows):,} such {counted} could."
            )
        share = f"{100 * self.share:.3g}% of the rows, at most {most} of them {what}"
        promise = f"{share} ({level}{'' if self.groups is None else f', {rows}'})."
        if self.threshold == 0:
            return f"At any confidence: {promise}"
        above = percent(self.threshold)
        if name is None:
            return f"Above {above} confidence: {promise}"
        return f"Where P({name}) is above {above}: {promise}"

    @property
    def missed_in_words(self) -> str:
        """The classes whose rows are decided against most, with their shares; nothing without a threshold.

        Examples
        --------
        >>> found = {"class_names": ("no", "yes"), "missed": np.array([0.001, 0.12])}
        >>> Automation(0.8, 0.9, 0.01, 0.02, 0.02, 0.05, 5000, **found).missed_in_words
        'Of the held-out rows, decided against their class: 12.0% of yes, 0.1% of no.'
        """
        if self.threshold is None:
            return ""
        if self.missed is None:
            told = "not recorded"
        else:
            most = [int(k) for k in np.argsort(-self.missed, kind="stable")[:_LISTED] if self.missed[k] > 0]
            of = [f"{percent(self.missed[k])} of {class_in_words(k, self.class_names)}" for k in most]
            told = ", ".join(of) or "none"
        return f"Of the held-out rows, decided against their class: {told}."

    @property
    def rows_in_words(self) -> str:
        """How many rows the rule was found on, and how many groups they form."""
        return f"{self.rows:,} rows" + ("" if self.groups is None else f" in {self.groups:,} groups")

    def decide(self, probs: NDArray[Any]) -> NDArray[np.intp]:
        """Return the column that the rule decides on for calibrated probabilities (..., K), or -1.

        Examples
        --------
        >>> rule = Automation(0.912, 0.74, 0.014, 0.019, max_error=0.02, delta=0.05, rows=5000)
        >>> rule.decide(np.array([[0.05, 0.95], [0.6, 0.4]]))
        array([ 1, -1])
        """
        columns = probs.argmax(axis=-1) if self.positive is None else np.full(probs.shape[:-1], self.positive)
        chosen = np.take_along_axis(probs, columns[..., None], axis=-1)[..., 0]
        automatic = np.zeros(chosen.shape, bool) if self.threshold is None else chosen > self.threshold
        return np.where(automatic, columns, ASK_A_PERSON)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        names, missed = plain.pop("class_names"), self.missed
        plain["positive_name"] = None if names is None or self.positive is None else str(names[self.positive])
        plain["missed"] = None if missed is None else missed.tolist()
        plain["curve"] = self.curve and {name: one.tolist() for name, one in asdict(self.curve).items()}
        return plain | {"words": self.words}


def decide(
    model: Model, probs: Any, dim: int, costs: ArrayLike | None, return_costs: bool
) -> NDArray[np.intp] | tuple[NDArray[np.intp], Vector]:
    """Return decisions on rows, by the rule or by costs; the probabilities have the classes in axis `dim`."""
    rows = np.moveaxis(as_numpy(probs), dim, -1).astype(np.float64, copy=False)
    if costs is not None:
        decisions, expected = least_cost(rows, check_costs(costs, rows.shape[-1]))
        return (decisions, expected) if return_costs else decisions
    if return_costs:
        raise InputError("return_costs needs costs. Pass costs, or leave out return_costs.")
    rule = model.automation
    if rule is None:
        raise InputError(
            "decide needs a rule or costs, and the calibrator has no rule. Find a rule with "
            "cal.automate(logits, labels), or pass costs."
        )
    return rule.decide(rows)


def check_costs(costs: ArrayLike, n_classes: int) -> Matrix:
    """Return the costs as float64: one row per class, one column per decision."""
    given = as_numpy(costs)
    wanted = (
        f"costs must be a matrix with {n_classes} rows, one per true class, and one column per decision, "
        "the classes first"
    )
    if given.dtype.kind not in "fiub":
        raise InputError(f"{wanted}; found {given.dtype}.")
    if given.ndim != 2 or given.shape[0] != n_classes or given.shape[1] < n_classes:
        raise InputError(f"{wanted}; found shape {given.shape}.")
    matrix = given.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise InputError(f"{wanted}, all finite; found {matrix[~np.isfinite(matrix)][0]}.")
    return matrix


def least_cost(probs: NDArray[Any], costs: Matrix) -> tuple[NDArray[np.intp], Vector]:
    """Return the decision of least expected cost on each row of probabilities (..., K), and that cost."""
    rows = probs.reshape(-1, len(costs))
    decisions, least = np.empty(len(rows), np.intp), np.empty(len(rows))
    for block in row_slices(len(rows), block_rows(costs.shape[1], 2 * 8)):
        expected = np.zeros((block.stop - block.start, costs.shape[1]))
        for column, of_class in zip(rows[block].T, costs, strict=True):  # a matrix product has no fixed order
            expected += column[:, None] * of_class
        lowest = expected.min(axis=1, keepdims=True)
        tied = expected <= lowest + _ROUNDING * np.abs(lowest)
        top, at = rows[block].argmax(axis=1), np.arange(len(expected))
        decisions[block] = np.where(tied[at, top], top, tied.argmax(axis=1))
        least[block] = expected[at, decisions[block]]
    return decisions.reshape(probs.shape[:-1]), least.reshape(probs.shape[:-1])
