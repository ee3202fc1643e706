"""Is a calibrator still right? One check, combined with earlier ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from temperance.calibrators.estimator import model_of
from temperance.clock import utc_now
from temperance.errors import InputError, Remedy
from temperance.formulas.model import Model
from temperance.inputs.validation import check_number
from temperance.monitoring.advice import KEEP, LABEL, Labels, action_of, labels_to_know, labels_to_refit
from temperance.monitoring.batch import Batch, groups_of, summarise
from temperance.monitoring.change import Change, estimate_change
from temperance.monitoring.evidence import CheckSums, Evidence, evidence_of
from temperance.monitoring.history import History, open_history
from temperance.monitoring.limits import TOLERANCE, Limits, allowed, baseline_of
from temperance.monitoring.predictions import PredictionSums
from temperance.monitoring.record import Record
from temperance.monitoring.residuals import LabelledSums
from temperance.monitoring.result import Check
from temperance.monitoring.shift import Shift, compare_with_baseline

FEWEST_RECOGNISED = 20  # fewer rows may equal earlier ones by chance
ALPHA = 0.05
"""Probability of a false alarm over all checks."""


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
    check_number("alpha", alpha, "between 0 and 0.5, such as 0.05", lambda a: 0 < a <= 0.5)
    limits = allowed(model, tolerance)
    batch = summarise(model, limits, logits, labels, dim)
    look = _Look(model, limits, float(alpha), batch, name)
    with nullcontext() if history is None else open_history(history) as opened:
        return look.result(opened)


def calibrator_digest(model: Model) -> str:
    """Return the digest of the numbers that a calibrator's outputs depend on."""
    digest = hashlib.sha256(f"{model.key} {model.n_classes}".encode())
    for name, value in sorted(model.arrays().items()):
        digest.update(f"{name} {np.shape(value)}".encode())
        digest.update(np.ascontiguousarray(value, "<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"


class _Look:
    """One check that is not in a history yet."""

    def __init__(self, model: Model, limits: Limits, alpha: float, batch: Batch, name: str) -> None:
        self.model, self.limits, self.alpha, self.batch, self.name = model, limits, alpha, batch, name
        self.calibrator = calibrator_digest(model)

    def result(self, history: History | None) -> Check:
        """Return the result, once the record of this check is on the disk."""
        earlier = () if history is None else history.records
        if history is not None:
            for record in earlier:
                self._check_same(record, history.path)
        before = _counted_before(earlier, self.batch, self.name)
        if before is not None:
            found = self._judge(earlier, before.date)
        else:
            records = (*earlier, self._record(earlier))
            found = self._judge(records, None)
            records = (*earlier, self._complete(records[-1], found))
            if history is not None:
                history.add(records[-1])
            found = replace(found, records=records)
        return replace(found, torn_lines=() if history is None else history.torn_lines)

    def _check_same(self, record: Record, path: Path) -> None:
        if record.calibrator != self.calibrator:
            raise InputError(
                f"{path} must be a history of this calibrator; found checks of another one (the first on "
                f"{record.date[:10]}). Begin a new history for each calibrator."
            )
        found, own = (_sizes(sums) for sums in (record.predictions, self.batch.predictions))
        if found != own:
            raise InputError(
                f"the checks in {path} must count (classes, quantiles) = {own}; found {found} in that of "
                f"{record.date[:10]}. Remove its line, or begin a new history."
            )
        for argument, value in (("tolerance", self.limits.tolerance), ("alpha", self.alpha)):
            begun = getattr(record, argument)
            if begun != value:
                raise InputError(
                    f"{argument} must be the same in all checks of a history: {path} began with "
                    f"{begun:g}; found {value:g}. Another value needs a new history.",
                    remedy=Remedy(argument, (begun,)),
                )

    def _record(self, earlier: Sequence[Record]) -> Record:
        highest = max((record.highest_log_e for record in earlier), default=0.0)
        return Record(
            self.calibrator, utc_now(), self.name, self.batch.digest, self.limits.tolerance, self.alpha,
            self.batch.predictions, self.batch.labelled, 0.0, highest, False, KEEP,
        )  # fmt: skip

    def _complete(self, record: Record, found: Check) -> Record:
        shifted = found.shift is not None and found.shift.alarm
        return replace(
            record,
            log_e=found.log_e,
            highest_log_e=found.highest_log_e,
            shift_alarm=shifted,
            action=found.action,
        )

    def _judge(self, records: Sequence[Record], counted_before: str | None) -> Check:
        labelled = [record for record in records if record.labelled is not None]
        evidence = _evidence(labelled, self.limits)
        highest = max(evidence.log_e, *(record.highest_log_e for record in records))
        window = _window(labelled, evidence)
        change = None if window is None else estimate_change(window, self.limits, groups_of(self.model))
        shift = self._shift(records)
        alarm = highest >= np.log(1 / self.alpha)
        action, labels = self._advise(alarm, window, change, shift)
        return Check(
            action=action,
            rows=self.batch.predictions.rows,
            labelled=self.batch.labelled is not None,
            labelled_rows=sum(record.labelled.rows for record in labelled if record.labelled is not None),
            labelled_checks=len(labelled),
            log_e=evidence.log_e,
            highest_log_e=highest,
            alpha=self.alpha,
            tolerance=self.limits.tolerance,
            gap_limits=(float(self.limits.low[0]), float(self.limits.high[0])),
            change=change,
            since=labelled[evidence.start].date if len(labelled) > 1 else None,
            frequencies=None if window is None else (window.labels + 0.5) / (window.labels + 0.5).sum(),
            labels=labels,
            shift=shift,
            counted_before=counted_before,
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
            action = action_of(alarm, change)
            return action, labels_to_refit(window, self.limits) if action == "refit" else None
        if self.batch.labelled is None and shift is not None and shift.alarm:
            quantiles = baseline_of(self.model).confidence_quantiles
            return LABEL, labels_to_know(float(np.mean(quantiles * (1 - quantiles))), self.limits.tolerance)
        return KEEP, None

    def _shift(self, records: Sequence[Record]) -> Shift | None:
        if self.model.log_prior_ratio is not None:
            return None
        distinct = {record.rows_digest: record.predictions for record in records}
        return compare_with_baseline(list(distinct.values()), baseline_of(self.model), self.alpha)


def _sizes(sums: PredictionSums) -> tuple[int, int]:
    return len(sums.predicted), len(sums.confidence)


def _counted_before(records: Sequence[Record], batch: Batch, name: str) -> Record | None:
    """Return the check that has the same rows. Labels that arrive later are new; changed labels are not.

    A few rows may be equal by chance, as those of a tree are; they count as the same only under the same
    name.
    """
    for record in records:
        same = record.rows_digest == batch.digest and (batch.labelled is None or record.labelled is not None)
        if same and (batch.predictions.rows >= FEWEST_RECOGNISED or (name and record.name == name)):
            return record
    return None


def _evidence(labelled: Sequence[Record], limits: Limits) -> Evidence:
    sums = [record.labelled for record in labelled if record.labelled is not None]
    if not sums:
        return Evidence(0.0, 0)
    columns = (np.array([getattr(one, item.name) for one in sums], np.float64) for item in fields(CheckSums))
    return evidence_of(CheckSums(*columns), limits.low, limits.high)


def _window(labelled: Sequence[Record], evidence: Evidence) -> LabelledSums | None:
    sums = [record.labelled for record in labelled[evidence.start :] if record.labelled is not None]
    return reduce(add, sums) if sums else None
