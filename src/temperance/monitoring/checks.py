"""Is a calibrator still right? One check, combined with earlier ones: what it finds, and what to do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import escape

from temperance.calibrators.estimator import model_of
from temperance.core.arrays import Vector
from temperance.errors import InputError, Remedy
from temperance.files import utc_now
from temperance.formulas.applying import check_columns
from temperance.formulas.model import Model
from temperance.inputs.containers import as_numpy, names_of, open_logits
from temperance.inputs.labels import Names, check_labels
from temperance.inputs.validation import check_number
from temperance.monitoring import words
from temperance.monitoring.change import (
    KEEP,
    LABEL,
    REFIT,
    Change,
    Labels,
    action_for,
    estimate_change,
    labels_to_know,
    labels_to_refit,
)
from temperance.monitoring.evidence import CheckSums, evidence_of
from temperance.monitoring.history import History, Record, open_history
from temperance.monitoring.limits import TOLERANCE, Limits, allowed, baseline_of
from temperance.monitoring.shift import Shift, compare_with_baseline
from temperance.monitoring.sums import Batch, LabelledSums, sum_rows

ALPHA = 0.05
"""Probability of a false alarm over all checks."""

MIN_RECOGNISED = 20  # fewer rows may equal earlier ones by chance


@dataclass(frozen=True, eq=False)
class Check:
    """The result of `temperance.monitoring.check`.

    Attributes
    ----------
    action : {"keep", "adapt", "refit", "label"}
        What to do: nothing; adapt to other class frequencies; fit again; label rows.
    rows : int
        Number of rows of this check.
    labelled : bool
        Whether they have labels.
    labelled_rows, labelled_checks : int
        Number of labelled rows and checks behind the evidence, including this one.
    log_e, highest_log_e : float
        Logarithm of the e-value now, and the highest of all checks, which raises the alarm.
    alpha, tolerance : float
        Probability of a false alarm over all checks, and tolerated difference.
    gap_limits : tuple of two floats
        The allowed gap: tolerance, gap at the fit, and uncertainty of the fit.
    change : Change or None
        What labelled rows say, since the check at which the change is most visible; None without labels.
    since : str or None
        Date of the check at which these rows begin.
    frequencies : (K,) array or None
        Label frequencies in these rows, none of them 0.
    labels : Labels or None
        How many labels are needed, if any.
    shift : Shift or None
        Comparison of predictions with those at the fit; None for a calibrator that was adapted since.
    counted_before : str or None
        Date at which the same rows were checked before: they are not counted again.
    torn_lines : tuple of int
        Incomplete lines of the history, which are skipped.
    class_names : tuple of str
        Names of the classes.
    limits : Limits
        The allowed mean residuals, of the gap and of each class.
    records : tuple of Record
        All checks of the history, this one included.

    Examples
    --------
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> found = monitoring.check(cal, task.logits[1000:], task.labels[1000:])
    >>> found.action, found.alarm, found.acts
    ('keep', False, False)
    >>> found.sentences[0]
    'Keep the calibrator: 2,000 labelled rows show no change beyond the tolerance.'
    """

    action: str
    rows: int
    labelled: bool
    labelled_rows: int
    labelled_checks: int
    log_e: float
    highest_log_e: float
    alpha: float
    tolerance: float
    gap_limits: tuple[float, float]
    since: str | None
    change: Change | None
    frequencies: Vector | None
    labels: Labels | None
    shift: Shift | None
    counted_before: str | None
    torn_lines: tuple[int, ...]
    class_names: tuple[str, ...]
    limits: Limits = field(repr=False)
    records: tuple[Record, ...] = field(repr=False)

    @property
    def alarm(self) -> bool:
        """Whether labelled rows have shown a change: once raised, an alarm stays."""
        return bool(self.highest_log_e >= np.log(1 / self.alpha))

    @property
    def acts(self) -> bool:
        """Whether there is something to do."""
        return self.action != KEEP

    @property
    def sentences(self) -> list[str]:
        """The result in words, the verdict first."""
        return words.sentences(self)

    @property
    def words(self) -> str:
        """The result in words."""
        return " ".join(self.sentences)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        verdict, *rest = (str(escape(sentence)) for sentence in self.sentences)
        return f"<div><p><b>{verdict}</b></p><p>{'<br>'.join(rest)}</p></div>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON can hold them; an infinite standard error stays infinite.

        Examples
        --------
        >>> from temperance import TemperatureScaling, monitoring
        >>> from temperance.data import simulate
        >>> task = simulate(n_rows=900, n_classes=3, random_state=0)
        >>> cal = TemperatureScaling().fit(task.logits[:600], task.labels[:600])
        >>> monitoring.check(cal, task.logits[600:]).to_dict()["action"]
        'keep'
        """
        plain = {"action": self.action, "alarm": self.alarm, "words": self.sentences}
        for name, value in vars(self).items():
            if name not in ("frequencies", "class_names", "limits", "records"):
                plain[name] = asdict(value) if isinstance(value, (Change, Labels, Shift)) else value
        return plain


def check(
    calibrator: Any,
    logits: Any,
    labels: Any = None,
    *,
    history: str | Path | None = None,
    tolerance: float = TOLERANCE,
    alpha: float = ALPHA,
    dim: int = -1,
    name: str = "",
) -> Check:
    """Check whether a calibrator is still right on new rows, and what to do if it is not.

    With labels, the test is an e-process: check as often as you like, and stop whenever you like; the
    probability of a false alarm over all checks is at most `alpha`. Without labels, the predictions are
    compared with those at the fit, which cannot show how often they are right.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted, or loaded from its file.
    logits : as for `Calibrator.fit`, in memory
        The classifier's logits for the new rows.
    labels : (N,) integers or names, optional
        The true classes.
    history : path, optional
        File of earlier checks, to which this one is appended; created if missing. The evidence continues
        from it.
    tolerance : float
        Largest change that does not matter, in the gap between confidence and accuracy and in the frequency
        of a class: 0.02 is 2 percentage points.
    alpha : float
        Probability of a false alarm over all checks.
    dim : int
        The axis of the classes.
    name : str
        What the history calls these rows.

    Returns
    -------
    Check
        With `action`, `words` and `to_dict()`.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> monitoring.check(cal, task.logits[1000:], task.labels[1000:]).action
    'keep'
    >>> wrong = np.where(np.arange(2000) % 5 == 0, (task.labels[1000:] + 1) % 3, task.labels[1000:])
    >>> monitoring.check(cal, task.logits[1000:], wrong).action
    'refit'
    """
    model = model_of(calibrator)
    names = names_of(logits, None, model.n_classes) or model.record.class_names
    return check_labelled(model, logits, labels, names, history, tolerance, alpha, dim, name)


def check_labelled(
    model: Model,
    logits: Any,
    labels: Any,
    names: Names | None,
    history: str | Path | None,
    tolerance: float,
    alpha: float,
    dim: int = -1,
    name: str = "",
) -> Check:
    """Check rows whose labels are among these class names; without names, labels are column indices.

    Labels that a file reader has turned into columns must not be looked up among the names of the
    calibrator's classes: these may be whole numbers, too.
    """
    check_number("alpha", alpha, "between 0 and 0.5, such as 0.05", lambda a: 0 < a <= 0.5)
    limits = allowed(model, tolerance)
    opened = open_logits(logits, dim)
    check_columns(model, opened.shape, opened.dim)
    if not len(opened.values):
        raise InputError("check needs rows; found none. Pass the logits of at least one row.")
    columns = None
    if labels is not None:
        n_rows, n_classes = opened.values.shape
        columns = check_labels(opened.flat(as_numpy(labels), "labels"), n_rows, n_classes, names)
    batch = sum_rows(model, limits, opened.values, columns)
    pending = _PendingCheck(model, limits, float(alpha), batch, name)
    with nullcontext() if history is None else open_history(history) as opened_history:
        return pending.result(opened_history)


def _digest(model: Model) -> str:
    """Return the digest of the numbers that a calibrator's outputs depend on."""
    digest = hashlib.sha256(f"{model.key} {model.n_classes}".encode())
    for name, value in sorted(model.arrays().items()):
        digest.update(f"{name} {np.shape(value)}".encode())
        digest.update(np.ascontiguousarray(value, "<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"


@dataclass(frozen=True, eq=False)
class _PendingCheck:
    """A check whose rows are summed, and which is not in a history yet."""

    model: Model
    limits: Limits
    alpha: float
    batch: Batch
    name: str

    def result(self, history: History | None) -> Check:
        """Return the result, once the record of this check is on the disk."""
        earlier = () if history is None else history.records
        torn_lines = () if history is None else history.torn_lines
        digest = _digest(self.model)
        if history is not None:
            self._check_same(history, digest)
        for record in earlier:
            if self._has_same_rows(record):
                return replace(self._judge(earlier), counted_before=record.date, torn_lines=torn_lines)
        # The evidence of the record is known once it has been judged with the others.
        pending = Record(
            calibrator=digest,
            date=utc_now(),
            name=self.name,
            rows_digest=self.batch.digest,
            tolerance=self.limits.tolerance,
            alpha=self.alpha,
            log_e=0.0,
            highest_log_e=0.0,
            shift_alarm=False,
            action=KEEP,
            predictions=self.batch.predictions,
            labelled=self.batch.labelled,
        )
        found = self._judge((*earlier, pending))
        record = replace(
            pending,
            log_e=found.log_e,
            highest_log_e=found.highest_log_e,
            shift_alarm=found.shift is not None and found.shift.alarm,
            action=found.action,
        )
        if history is not None:
            history.add(record)
        return replace(found, records=(*earlier, record), torn_lines=torn_lines)

    def _check_same(self, history: History, digest: str) -> None:
        """Raise unless all records are of the same calibrator, sizes and settings."""
        sums, path = self.batch.predictions, history.path
        own = len(sums.predicted), len(sums.confidence)
        for record in history.records:
            date = record.date[:10]
            if record.calibrator != digest:
                raise InputError(
                    f"{path} must be a history of this calibrator; found checks of another one (the first on "
                    f"{date}). Begin a new history for each calibrator."
                )
            found = len(record.predictions.predicted), len(record.predictions.confidence)
            if found != own:
                raise InputError(
                    f"the checks in {path} must count (classes, quantiles) = {own}; found {found} in that of "
                    f"{date}. Remove its line, or begin a new history."
                )
            for argument, value in (("tolerance", self.limits.tolerance), ("alpha", self.alpha)):
                begun = getattr(record, argument)
                if begun != value:
                    raise InputError(
                        f"{argument} must be the same in all checks of a history: {path} began with "
                        f"{begun:g}; found {value:g}. Another value needs a new history.",
                        remedy=Remedy(argument, (begun,)),
                    )

    def _has_same_rows(self, record: Record) -> bool:
        """Say whether a check has counted these rows.

        Labels that arrive later are new; changed labels are not. A few rows may be equal by chance, as those
        of a tree are; they count as the same only under the same name.
        """
        batch = self.batch
        same = record.rows_digest == batch.digest and (batch.labelled is None or record.labelled is not None)
        named = self.name != "" and record.name == self.name
        return same and (batch.predictions.rows >= MIN_RECOGNISED or named)

    def _judge(self, records: Sequence[Record]) -> Check:
        """Return what all checks show together."""
        dated = [(record.date, record.labelled) for record in records if record.labelled is not None]
        sums = [labelled for _, labelled in dated]
        log_e, start, window, change = 0.0, 0, None, None
        if sums:
            columns = (np.array([getattr(one, item.name) for one in sums], np.float64)
                       for item in fields(CheckSums))  # fmt: skip
            log_e, start = evidence_of(CheckSums(*columns), self.limits.low, self.limits.high)
            window = reduce(add, sums[start:])
            change = estimate_change(window, self.limits)
        highest = max(log_e, *(record.highest_log_e for record in records))
        shift = None
        if self.model.log_prior_ratio is None:
            distinct = {record.rows_digest: record.predictions for record in records}
            shift = compare_with_baseline(list(distinct.values()), baseline_of(self.model), self.alpha)
        action, labels = self._advise(highest >= np.log(1 / self.alpha), window, change, shift)
        return Check(
            action=action,
            rows=self.batch.predictions.rows,
            labelled=self.batch.labelled is not None,
            labelled_rows=sum(one.rows for one in sums),
            labelled_checks=len(sums),
            log_e=log_e,
            highest_log_e=highest,
            alpha=self.alpha,
            tolerance=self.limits.tolerance,
            gap_limits=(float(self.limits.low[0]), float(self.limits.high[0])),
            since=dated[start][0] if len(dated) > 1 else None,
            change=change,
            frequencies=None if window is None else (window.labels + 0.5) / (window.labels + 0.5).sum(),
            labels=labels,
            shift=shift,
            counted_before=None,
            torn_lines=(),
            class_names=self.model.record.class_names or tuple(map(str, range(self.model.n_classes))),
            limits=self.limits,
            records=tuple(records),
        )

    def _advise(
        self, alarm: bool, window: LabelledSums | None, change: Change | None, shift: Shift | None
    ) -> tuple[str, Labels | None]:
        """Return what to do, and how many labels it needs."""
        if change is not None and window is not None and alarm:
            action = action_for(change)
            return action, labels_to_refit(window, self.limits) if action == REFIT else None
        if self.batch.labelled is None and shift is not None and shift.alarm:
            quantiles = baseline_of(self.model).confidence_quantiles
            return LABEL, labels_to_know(float(np.mean(quantiles * (1 - quantiles))), self.limits.tolerance)
        return KEEP, None
