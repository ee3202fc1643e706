"""Is a calibrator still valid? One check, combined with earlier ones: what it finds, and what to do."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray

from temperance.calibrators.estimator import check_headers, model_of
from temperance.calibrators.fit_record import warn_if_fitted_on
from temperance.core.arrays import Indices, Vector
from temperance.core.blocks import read_blocks
from temperance.core.logit_rows import LogitRows
from temperance.errors import InputError, InputWarning, Remedy, warn_user
from temperance.files import utc_now
from temperance.formulas.model import (
    Model,
    apply_to_rows,
    axis_of_classes,
    check_columns,
    check_kind,
    logits_for,
)
from temperance.inputs.containers import Beside, open_logits
from temperance.inputs.labels import check_labels
from temperance.inputs.names import Names, check_class, class_in_words, names_of
from temperance.inputs.validation import check_number
from temperance.metrics.by_group import CalibrationByGroup, calibration_by_group
from temperance.metrics.finding import Finding
from temperance.metrics.predictions import Predictions, judged_class
from temperance.monitoring import words
from temperance.monitoring.change import (
    ADAPT,
    INSPECT,
    KEEP,
    LABEL,
    LAST,
    REFIT,
    WATCH,
    Change,
    Gap,
    Labels,
    estimate_change,
    expected_accuracy,
    gap_of,
    is_other_data,
    labels_needed,
    labels_to_alarm,
    labels_to_refit,
    recent_gaps,
)
from temperance.monitoring.evidence import cumulate, evidence_of
from temperance.monitoring.history import Record, open_history
from temperance.monitoring.repairs import Repairs, compare_repairs
from temperance.monitoring.shift import Shift, compare_with_baseline
from temperance.monitoring.sums import (
    EDITION,
    TOLERANCE,
    Limits,
    PredictionSums,
    allowed,
    share_of_rows,
    sum_labelled,
    sum_predictions,
)

ALPHA = 0.05
"""Probability of a false alarm over all checks."""

MIN_RECOGNISED = 20  # distinct rows: fewer might equal earlier ones by chance


@dataclass(frozen=True, eq=False)
class Check:
    """The result of `temperance.monitoring.check`.

    Attributes
    ----------
    action : {"keep", "watch", "adapt", "refit", "inspect", "label"}
        What to do: nothing, check more labels, adapt to other class frequencies, fit again, inspect the rows
        (their columns or labels have probably changed), or label rows.
    groups : bool
        Whether groups are counted instead of rows: a group counts as one row, with the means of its rows.
        All numbers of rows are then numbers of groups.
    rows : float
        Number of rows of this check; weighted ones count as their share.
    labelled : bool
        Whether they have labels.
    labelled_rows : float
        Number of labelled rows behind the evidence, including these; weighted ones count as their share.
    labelled_checks : int
        Number of checks behind the evidence, including this one.
    log_e, highest_log_e : float
        Logarithm of the e-value now, and the highest of all checks, which raises the alarm.
    alpha, tolerance : float
        Probability of a false alarm over all checks, and tolerated difference.
    gap_limits : tuple of two floats
        The allowed prediction minus observation: of the probability of the class that people act on, with two
        classes, otherwise of the confidence.
    edition : int
        Of the limits: 1 in a history that the first version began, else 2.
    gaps : tuple of Gap
        The last labelled check, the last three together, and all.
    finding : Finding or None
        What these rows show without the history, as `metrics.evaluate` says it; None without labels.
    recheck : Gap or None
        The gap of these rows, if they were counted before and are not among `gaps`.
    expected_accuracy : tuple of three floats or None
        Mean confidence of rows without labels, with a 95% interval of their accuracy if the calibrator
        still holds; None with labels.
    repairs : Repairs or None
        What adapting and fitting again would do, on these rows; None unless they have labels and one of the
        two is advised.
    change : Change or None
        How the calibration of labelled rows changed, since the check at which the change is most visible;
        None without labels.
    since : str or None
        Date of the check at which these rows begin.
    frequencies : (K,) array or None
        Label frequencies in these rows, none of them 0.
    labels : Labels or None
        How many labels are needed, if any: for a new fit, or to tell chance from a change.
    shift : Shift or None
        Comparison of predictions with those at the fit; None for a calibrator that was adapted since.
    counted_before : str or None
        Date at which the same rows were checked before: they are not counted again.
    equal_logits : str or None
        Date of an earlier check of the same logits under another name or with other labels: both count.
    torn_lines : tuple of int
        Incomplete lines of the history, which are skipped.
    class_names : tuple of str
        Names of the classes.
    by_group : CalibrationByGroup or None
        Calibration per value of `by`, in the rows of this check only.
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
    >>> found.state, found.action, found.alarm, found.acts
    ('keep', 'keep', False, False)
    >>> found.sentences[0]
    'Keep. Confidence fits: 80.0% on average, 79.8% correct in 2,000 rows (gap +0.2 points, -1.3 to +1.8; allowed -2.9 to +2.8). No change beyond the tolerance.'
    """  # noqa: E501  the sentence is on one line

    action: str
    groups: bool
    rows: float
    labelled: bool
    labelled_rows: float
    labelled_checks: int
    log_e: float
    highest_log_e: float
    alpha: float
    tolerance: float
    gap_limits: tuple[float, float]
    edition: int
    gaps: tuple[Gap, ...]
    finding: Finding | None
    expected_accuracy: tuple[float, float, float] | None
    since: str | None
    change: Change | None
    repairs: Repairs | None
    frequencies: Vector | None
    labels: Labels | None
    shift: Shift | None
    class_names: tuple[str, ...]
    limits: Limits = field(repr=False)
    records: tuple[Record, ...] = field(repr=False)
    recheck: Gap | None = None
    counted_before: str | None = None
    equal_logits: str | None = None
    torn_lines: tuple[int, ...] = ()
    by_group: CalibrationByGroup | None = None

    @property
    def alarm(self) -> bool:
        """Whether labelled rows have shown a change: once raised, an alarm stays."""
        return bool(self.highest_log_e >= np.log(1 / self.alpha))

    @property
    def state(self) -> str:
        """The answer: "keep", "watch" or "act"."""
        return self.action if self.action in (KEEP, WATCH) else "act"

    @property
    def acts(self) -> bool:
        """Whether the calibrator, or its rows, must change."""
        return self.state == "act"

    @property
    def within(self) -> bool:
        """Whether every gap of the last checks and of all is within its allowed range."""
        return all(gap.within for gap in self.gaps)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the result, the verdict first."""
        return words.sentences(self)

    @property
    def words(self) -> str:
        """The result as text."""
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
        plain = {"state": self.state, "action": self.action, "alarm": self.alarm, "words": self.sentences}
        for name, value in vars(self).items():
            if name not in ("frequencies", "class_names", "limits", "records"):
                is_plain = isinstance(value, (Change, Gap, Labels, Repairs, Shift))
                plain[name] = asdict(value) if is_plain else value
        plain["gaps"] = [asdict(gap) for gap in self.gaps]
        plain["finding"] = None if self.finding is None else self.finding.to_dict()
        plain["by_group"] = None if self.by_group is None else self.by_group.to_dict()
        return plain


def check(
    calibrator: Any,
    logits: Any,
    labels: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    by: Any = None,
    history: str | Path | None = None,
    tolerance: float = TOLERANCE,
    alpha: float = ALPHA,
    dim: int | None = None,
    ignore_index: int | None = None,
    name: str = "",
    from_probs: bool | None = None,
    positive: int | str | None = None,
) -> Check:
    """Check whether a calibrator is still valid on new rows, and what to do if it is not.

    With labels, the test is an e-process: check as often as you like, and stop whenever you like; the
    probability of a false alarm over all checks is at most `alpha`. Without labels, the predictions are
    compared with the fit's, which cannot show how often they are correct.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted, or loaded from its file.
    logits : as for `Calibrator.fit`, in memory
        The classifier's logits for the new rows.
    labels : (N,) integers or names, optional
        The true classes.
    sample_weight : (N,) numbers >= 0, optional
        Weights of the rows, chosen without looking at their labels. A row counts as min(1, w / mean w) rows.
    groups : (N,) ids, optional
        The group of each row, such as its patient or document, if rows of a group are not independent. A
        group counts as one row, with the mean of its rows. By default the entries of the first axis, if the
        logits have more than two, such as images. All checks of a history have groups, or none has.
    by : (N,) values, optional
        Values for which the calibration of labelled rows is shown separately, such as the hospital, as in
        `metrics.evaluate`: `by_group` of the result. It covers only these rows, not the history.
    history : path, optional
        File of earlier checks, to which this one is appended; created if missing. The evidence continues
        from it.
    tolerance : float
        Largest change that does not matter, in the gap between confidence and accuracy and in the frequency
        of a class: 0.02 is 2 percentage points.
    alpha : float
        Probability of a false alarm over all checks.
    dim : int, optional
        The axis of the classes; by default the same as in the fit.
    ignore_index : int, optional
        Label of rows to leave out, such as pixels without a class.
    name : str
        What the history calls these rows.
    from_probs : bool, optional
        Whether the rows are probabilities, as for `Calibrator.predict_proba`.
    positive : int or str, optional
        The class whose probability people act on; by default as in the fit, and of two classes the second.
        The same in all checks of a history.

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

    Rows of 100 patients, 20 of each, some of whom the classifier does not understand:

    >>> patient = np.arange(2000) // 20
    >>> difficult = np.where(patient % 6 == 0, (task.labels[1000:] + 1) % 3, task.labels[1000:])
    >>> monitoring.check(cal, task.logits[1000:], difficult).action
    'refit'
    >>> found = monitoring.check(cal, task.logits[1000:], difficult, groups=patient)
    >>> found.action, found.rows
    ('watch', 100)
    """
    check_number("alpha", alpha, "between 0 and 0.5, such as 0.05", lambda a: 0 < a <= 0.5)
    model = model_of(calibrator)
    check_headers(calibrator, logits)
    names = model.record.class_names or names_of(logits, None, model.n_classes)
    event = model.record.positive
    if positive is not None:
        event = check_class("positive", positive, names, model.n_classes)
    event = judged_class(model.n_classes, event, positions=model.of_positions)
    allowed(model, tolerance, event)  # raises before the rows are read
    logits, from_probs = logits_for(model, logits, from_probs)
    opened = open_logits(logits, axis_of_classes(model, dim, logits))
    check_kind(model, opened.values, from_probs)
    check_columns(model, opened.shape, opened.dim)
    values = opened.values
    if not len(values):
        raise InputError("check needs rows, and there are none. Pass the logits of at least one row.")
    if by is not None and labels is None:
        raise InputError("by needs labels, which show where the calibrator is wrong. Pass labels.")
    # A check can have a single group: a history has others.
    beside = Beside.open(
        opened, len(values), labels, sample_weight, groups, by, ignore_index=ignore_index, min_groups=1
    )
    if beside.kept is not None:
        values = values[beside.kept]
    n_rows, n_classes = values.shape
    columns = None if labels is None else check_labels(beside.labels, n_rows, n_classes, names)
    weights, together, values_of = beside.weights, beside.groups, beside.by
    _warn_of_rows(model, values, columns, together)

    probs = apply_to_rows(model, "predict_proba", values)
    at_fit = None
    if model.log_prior_ratio is not None and columns is not None:
        at_fit = apply_to_rows(replace(model, log_prior_ratio=None), "predict_proba", values)
    share = share_of_rows(len(values), weights, together)
    rows = finding = by_group = None
    if columns is not None:
        weight = np.ones(len(values)) if weights is None else weights
        rows = Predictions(
            probs, columns, weight, together, values_of, names, event, positions=model.of_positions
        )
        finding = Finding.of(rows)
        by_group = None if by is None else calibration_by_group(rows)
    with open_history(history) as past:
        edition = past.records[0].edition if past.records else EDITION
        limits = allowed(model, tolerance, event, edition)
        pending = Record(
            calibrator=_digest_of_model(model),
            date=utc_now(),
            name=name,
            rows_digest=_digest_of_rows(values),
            labels_digest="" if columns is None else _digest_of_labels(columns),
            groups=together is not None,
            edition=edition,
            positive=event,
            tolerance=limits.tolerance,
            alpha=float(alpha),
            predictions=sum_predictions(probs, limits.baseline, share),
            labelled=None
            if columns is None
            else sum_labelled(probs, columns, limits, share, together, at_fit),
        )
        for record in past.records:
            _check_same(pending, record, past.path, names or range(model.n_classes))
        at_hand = AtHand(model, limits, names, finding, rows, values)
        alike = [record for record in past.records if record.rows_digest == pending.rows_digest]
        if alike and (pending.name or _differ(values)):
            same = (record for record in alike if _has_same_rows(pending, record))
            if (before := next(same, None)) is not None:
                found = _judge(at_hand, pending, past.records)
                own = gap_of([before], limits) if pending.labelled is not None else None
                return replace(
                    found,
                    recheck=None if own in found.gaps else own,
                    counted_before=before.date,
                    torn_lines=past.torn_lines,
                    by_group=by_group,
                )
        found = _judge(at_hand, pending, (*past.records, pending))
        others = [record.date for record in alike if not _has_labels_for(pending, record)]
        record = replace(
            pending,
            log_e=found.log_e,
            highest_log_e=found.highest_log_e,
            shift_alarm=found.shift is not None and found.shift.alarm,
            action=found.action,
        )
        past.add(record)
        return replace(
            found,
            equal_logits=others[0] if others and n_rows >= MIN_RECOGNISED else None,
            torn_lines=past.torn_lines,
            by_group=by_group,
            records=(*past.records, record),
        )


@dataclass(frozen=True, eq=False)
class AtHand:
    """The calibrator, its limits, and the rows of a check, of which a history has only the sums."""

    model: Model
    limits: Limits
    names: Names | None
    finding: Finding | None
    rows: Predictions | None
    """None without labels."""
    values: NDArray[Any]


def _warn_of_rows(
    model: Model, values: NDArray[Any], columns: Indices | None, groups: Indices | None
) -> None:
    """Warn if the rows lack groups and the fit had them, and if they are the rows of the fit."""
    if model.n_groups is not None and groups is None:
        fact = f"the rows of the fit were in {model.n_groups:,} groups; found rows without groups."
        advice = "If these rows belong together too, chance is larger than the check assumes: pass groups."
        warn_user(InputWarning(fact, advice, Remedy("groups", (None,))))
    if columns is not None:
        rows = LogitRows(values, columns)
        warn_if_fitted_on(model, rows, "check", "A fit describes its own rows best")


def _digest_of_rows(values: NDArray[Any]) -> str:
    digest = hashlib.sha256(np.array(values.shape, "<i8").tobytes())
    for z, *_ in read_blocks(values):
        digest.update((z.astype("<f8") + 0.0).tobytes())  # -0.0 + 0.0 = 0.0
    return f"sha256:{digest.hexdigest()}"


def _digest_of_labels(columns: Indices) -> str:
    return f"sha256:{hashlib.sha256(columns.astype('<i8').tobytes()).hexdigest()}"


def _digest_of_model(model: Model) -> str:
    """Return the digest of the numbers that a calibrator's outputs depend on."""
    digest = hashlib.sha256(f"{model.key} {model.n_classes}".encode())
    for name, value in sorted(model.arrays().items()):
        digest.update(f"{name} {np.shape(value)}".encode())
        digest.update(np.ascontiguousarray(value, "<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"


def _check_same(pending: Record, record: Record, path: Path | None, names: Sequence[Any]) -> None:
    """Raise unless a record of a history is of the same calibrator and settings."""
    n_classes = len(pending.predictions.predicted)
    if record.calibrator != pending.calibrator or len(record.predictions.predicted) != n_classes:
        raise InputError(
            f"{path} must be a history of this calibrator; found checks of another one (the first on "
            f"{record.date[:10]}). Begin a new history per calibrator."
        )
    if record.groups != pending.groups:
        begun, now = ("groups" if one.groups else "rows" for one in (record, pending))
        raise InputError(
            f"all checks of a history must count groups, or all must count rows: {path} began with {begun}; "
            f"found {now}. Begin a new history, or check as before. The entries of the first axis of logits "
            "with more than two are groups.",
            remedy=Remedy("groups", (None,)) if record.groups else None,
        )
    for argument in ("tolerance", "alpha"):
        begun, value = getattr(record, argument), getattr(pending, argument)
        if begun != value:
            raise InputError(
                f"{argument} must be the same in all checks of a history: {path} began with "
                f"{begun:g}; found {value:g}. Another value needs a new history.",
                remedy=Remedy(argument, (begun,)),
            )
    if record.edition > 1 and record.positive != pending.positive:
        first, other = (
            None if column is None else names[column] for column in (record.positive, pending.positive)
        )
        raise InputError(
            f"positive must be the same in all checks of a history: {path} began with {first}; found "
            f"{other}. Another class needs a new history.",
            remedy=None if first is None else Remedy("positive", (first,)),
        )


def _differ(values: NDArray[Any]) -> bool:
    """Say whether enough rows differ that another set of rows would not equal them by chance.

    The rows of a stuck classifier, or of a tree, might.
    """
    return len({row.tobytes() for z, *_ in read_blocks(values) for row in z}) >= MIN_RECOGNISED


def _has_same_rows(pending: Record, record: Record) -> bool:
    """Say whether a check of the same logits has counted these rows: same name, and no other labels.

    Another name or other labels mean other rows, even with the same logits: a classifier can be stuck.
    """
    known = pending.labelled is None or (
        record.labelled is not None and record.labels_digest in ("", pending.labels_digest)
    )
    return record.name == pending.name and known


def _has_labels_for(pending: Record, record: Record) -> bool:
    """Say whether the labels of rows that were checked without any have arrived."""
    return record.name == pending.name and record.labelled is None and pending.labelled is not None


def _predictions_of(records: Sequence[Record]) -> list[PredictionSums]:
    """Return the predictions of all checks, once for rows whose labels came later."""
    kept, without_labels = [], Counter[tuple[str, str]]()
    for record in records:
        key = record.rows_digest, record.name
        if record.labelled is not None and without_labels[key]:
            without_labels[key] -= 1
            continue
        without_labels[key] += record.labelled is None
        kept.append(record.predictions)
    return kept


def _with_interval(gap: Gap, at_hand: AtHand) -> Gap:
    """Return the gap of rows with the interval of their finding, where both are about the same mean.

    Sums know less of the rows. With weights or groups, they are about another mean.
    """
    rows, found = at_hand.rows, at_hand.finding
    if rows is None or found is None or rows.groups is not None or np.ptp(rows.weight) > 0:
        return gap
    same = gap.column == rows.event
    return replace(gap, low=found.gap.low, high=found.gap.high) if same else gap


def _judge(at_hand: AtHand, pending: Record, records: Sequence[Record]) -> Check:
    """Return what all checks show together, and what to do after the pending one."""
    model, limits = at_hand.model, at_hand.limits
    checks = [record for record in records if record.labelled is not None]
    sums = [record.labelled for record in checks if record.labelled is not None]
    log_e, start, window, change, frequencies = 0.0, 0, None, None, None
    gaps: tuple[Gap, ...] = ()
    if sums:
        log_e, start = evidence_of(cumulate(sums), limits.low, limits.high)
        window = reduce(add, sums[start:])
        frequencies = (window.labels + 0.5) / (window.labels + 0.5).sum()
        change = estimate_change(checks[start:], limits)
        gaps = recent_gaps(checks, limits)
        if checks[-1] is pending:
            gaps = (_with_interval(gaps[0], at_hand), *gaps[1:])
        if start == len(checks) - 1:
            change = replace(change, gap=gaps[0])
    highest = max(log_e, *(record.highest_log_e for record in records))
    shift = None
    if model.log_prior_ratio is None:
        shift = compare_with_baseline(_predictions_of(records), limits.baseline, pending.alpha)
    action, labels, repairs = KEEP, None, None
    if window is not None and highest >= np.log(1 / pending.alpha):
        if is_other_data(window, limits):
            action = INSPECT
        elif at_hand.rows is not None and frequencies is not None:
            repairs = compare_repairs(model, limits, window, frequencies, at_hand.rows, at_hand.values)
            action = ADAPT if repairs.adapts else REFIT
        else:  # as the last check with labels advised
            action = ADAPT if checks[-1].action == ADAPT else REFIT
        labels = labels_to_refit(window, limits) if action == REFIT else None
    elif pending.labelled is None and shift is not None and shift.alarm:
        confidence = limits.baseline.confidence_quantiles
        variance = float(np.mean(confidence * (1 - confidence)))
        # So many that a gap of twice the tolerance shows.
        action, labels = LABEL, labels_needed("gap", variance, 2 * limits.tolerance)
    elif outside := [gap.checks for gap in gaps if gap.outside and gap.checks <= LAST]:
        enough = (labels_to_alarm(sums, number, limits, pending.alpha) for number in outside)
        action, labels = WATCH, next(filter(None, enough), None)
    has_labels = pending.labelled is not None
    return Check(
        action=action,
        groups=pending.groups,
        rows=pending.predictions.rows,
        labelled=has_labels,
        labelled_rows=sum(one.rows for one in sums),
        labelled_checks=len(sums),
        log_e=log_e,
        highest_log_e=highest,
        alpha=pending.alpha,
        tolerance=limits.tolerance,
        gap_limits=limits.gap,
        edition=limits.edition,
        gaps=gaps,
        finding=at_hand.finding,
        expected_accuracy=None if has_labels else expected_accuracy(pending.predictions, limits),
        since=checks[start].date if len(checks) > 1 else None,
        change=change,
        repairs=repairs,
        frequencies=frequencies,
        labels=labels,
        shift=shift,
        class_names=tuple(class_in_words(k, at_hand.names) for k in range(model.n_classes)),
        limits=limits,
        records=tuple(records),
    )
