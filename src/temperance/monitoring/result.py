"""What a check has found, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import escape

from temperance.core.arrays import Vector
from temperance.monitoring import words
from temperance.monitoring.advice import KEEP, Labels
from temperance.monitoring.change import Change
from temperance.monitoring.limits import Limits
from temperance.monitoring.record import Record
from temperance.monitoring.shift import Shift


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
    >>> from temperance import monitoring
    >>> from temperance.monitoring.example import example_rows
    >>> cal, logits, labels = example_rows()
    >>> found = monitoring.check(cal, logits, labels)
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
    change: Change | None
    since: str | None
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
        return {
            "action": self.action,
            "alarm": self.alarm,
            "words": self.sentences,
            "rows": self.rows,
            "labelled": self.labelled,
            "labelled_rows": self.labelled_rows,
            "labelled_checks": self.labelled_checks,
            "log_e": self.log_e,
            "highest_log_e": self.highest_log_e,
            "alpha": self.alpha,
            "tolerance": self.tolerance,
            "gap_limits": list(self.gap_limits),
            "since": self.since,
            "change": None if self.change is None else self.change.to_dict(),
            "labels": None if self.labels is None else vars(self.labels),
            "shift": None if self.shift is None else self.shift.to_dict(),
            "counted_before": self.counted_before,
            "torn_lines": list(self.torn_lines),
        }
