"""A check in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from temperance.metrics.finding import State, p_in_words, rates, ratio_in_words
from temperance.metrics.intervals import Estimate
from temperance.monitoring.change import ADAPT, INSPECT, KEEP, LABEL, REFIT, WATCH, Gap
from temperance.monitoring.sums import MARGIN

if TYPE_CHECKING:
    from temperance.monitoring.checks import Check

MAX_E = 1e6  # larger e-values are not written as numbers
MAX_FACTOR = 1.35  # larger factors of the logits are not written as numbers


def sentences(check: Check) -> list[str]:
    """Return the verdict, then the evidence for it."""
    said = [_verdict(check)]
    if check.counted_before is not None:
        said.append(f"These rows were checked on {check.counted_before[:10]} and are not counted again.")
    said += [*_of_repairs(check), *_of_gaps(check), *_of_change(check)]
    said += [*_of_evidence(check), *_of_predictions(check)]
    if check.groups:
        said.append("A group counts as one row, with the mean of its rows.")
    if check.by_group is not None:
        said.append(f"{check.by_group.words} This is about the rows of this check alone.")
    if check.equal_logits is not None:
        said.append(
            f"The check on {check.equal_logits[:10]} had the same logits, under another name or with other "
            "labels, and both are counted. If the rows are not the same, the classifier might be stuck."
        )
    return said + [f"Line {line} of the history is incomplete and was skipped." for line in check.torn_lines]


def points(share: float) -> str:
    """Return a difference in percentage points."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # without -0.0


def e_value(log_e: float) -> str:
    """Return an e-value as a number, or that it is very large."""
    if log_e > np.log(MAX_E):
        return f"over {MAX_E:,.0f}"
    value = float(np.exp(log_e))
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _verdict(check: Check) -> str:
    if check.action == LABEL and check.labels is not None:
        number = f"about {_rows(check, check.labels.number)}"
        return f"Act: the predictions differ from those at the fit. Label {number} and check them."
    if check.action == INSPECT and check.change is not None:
        now, then = 100 * check.change.accuracy, 100 * check.limits.baseline.accuracy
        return (
            f"Act: {now:.1f}% of the predictions are correct, after {then:.1f}% at the fit. That is no "
            "matter of calibration: check that the columns have the order of the fit, that the labels belong "
            "to these rows, and that the classifier is the same."
        )
    gap = _main_gap(check)
    if gap is None:
        return f"Keep the calibrator, as far as {_rows(check, check.rows)} without labels can show."
    if check.action in (ADAPT, REFIT):
        other = None if check.repairs is None or check.action == ADAPT else check.repairs.method
        action = f"{check.action}{f' with {other}' if other else ''}"
        if check.log_e < -np.log(check.alpha):
            remains = "An earlier check raised the alarm, which remains"
            return f"Act: {action}. {remains}. Now {_subject(check, gap)} is {_numbers(check, gap)}."
        since = f" since {gap.name or gap.date[:10]}" if gap.checks > 1 else ""
        return f"Act: {action}. {_subject(check, gap)} is {_side(gap)}{since}: {_numbers(check, gap)}."
    if check.action == WATCH:
        return f"Watch. {_subject(check, gap)} is {_side(gap)}: {_numbers(check, gap)}.{_needed(check)}"
    if not check.within:
        return (
            f"Keep. {_subject(check, gap)} is outside its allowed range by no more than chance explains: "
            f"{_numbers(check, gap)}."
        )
    state = _state(check)
    what = f"{_subject(check, gap)} fits"
    if not gap.low <= 0 <= gap.high:
        verb = "may be" if state is State.MAY_BE else "is"
        what = f"{_subject(check, gap)} {verb} {_side(gap)} by less than allowed"
    elif state is State.TOO_FEW and gap.checks == 1:
        what = f"Too few rows to tell whether {what}"
    return f"Keep. {what}: {_numbers(check, gap)}. No change beyond the tolerance."


def _state(check: Check) -> State | None:
    """Return the state of the finding, if it is about the rows of the last check."""
    return None if check.finding is None or check.counted_before is not None else check.finding.state


def _main_gap(check: Check) -> Gap | None:
    """Return the gap that the verdict is about, if it is about one."""
    if check.action in (ADAPT, REFIT) and check.change is not None:
        return check.change.gap
    if check.action == INSPECT or (check.action in (KEEP, LABEL) and not check.labelled):
        return None
    if check.action == WATCH:
        return next(gap for gap in check.gaps if gap.outside)
    beyond = (gap for gap in check.gaps if not gap.within)
    return next(beyond, check.gaps[-1 if _state(check) is State.TOO_FEW else 0])


def _subject(check: Check, gap: Gap) -> str:
    return "Confidence" if gap.column is None else f"P({check.class_names[gap.column]})"


def _side(gap: Gap) -> str:
    return "too high" if gap.gap > 0 else "too low"


def _numbers(check: Check, gap: Gap) -> str:
    """Return what is predicted and observed, the difference with its interval, and what is allowed."""
    predicted, observed = rates(gap.predicted, gap.observed)
    rows = f"{_rows(check, gap.rows)}{f' of {gap.checks} checks' if gap.checks > 1 else ''}"
    low, high = gap.allowed
    if gap.column is None:
        difference = f"gap {points(gap.gap)} points, {points(gap.low)} to {points(gap.high)}"
        allowed = f"{points(low)} to {points(high)}"
        return f"{predicted} on average, {observed} correct in {rows} ({difference}; allowed {allowed})"
    mean = max(gap.predicted, 1e-300)
    ratio = Estimate(*(1 - end / mean for end in (gap.gap, gap.high, gap.low)))
    allowed = f"{max(1 - high / mean, 0.0):.2f} to {1 - low / mean:.2f}"
    return (
        f"{predicted} on average, {observed} observed in {rows} ({ratio_in_words(ratio)}; allowed {allowed})"
    )


def _needed(check: Check) -> str:
    if check.labels is None:
        return ""
    if check.labels.number <= check.gaps[0].rows:
        return " One more check like this would settle it."
    return f" If it stays so, about {check.labels.number:,} more {_labels(check)} will settle it."


def _of_repairs(check: Check) -> Iterator[str]:
    """Say why adapting is enough or not, and how well both repairs would do."""
    found = check.repairs
    if found is None:
        return
    if found.implied is None or found.mean is None or found.column is None:
        if not check.limits.of_positions:
            yield "Whether adapting would be enough is not known: the fit did not record it."
    else:
        implied, mean = rates(found.implied, found.mean)
        of = f"P({check.class_names[found.column]})"
        chance = ", which chance explains" if found.is_implied else ""
        implication = f"If only the frequencies had changed, {of} would average {implied}"
        yield f"{implication}; it averages {mean}{chance}."
        if found.is_implied and found.p_value is not None and not found.adapts:
            yield f"Adapted to them, the probabilities would still not fit ({p_in_words(found.p_value)})."
    losses = [f"{found.loss:.4f} as it is"]
    if found.adapted is not None:
        losses.append(f"{found.adapted:.4f} adapted")
    if found.refitted is not None:
        how = f" with {found.method}" if found.method else ""
        losses.append(f"{found.refitted:.4f} refitted{how} ({found.folds} folds)")
    rows = f"{'these ' if found.rows >= check.rows else ''}{found.rows:,} row{'s' * (found.rows != 1)}"
    yield f"Log loss on {rows}: {', '.join(losses)}."


def _of_gaps(check: Check) -> Iterator[str]:
    if check.recheck is not None:
        yield _of_checks(check, check.recheck)
    told = _main_gap(check)
    yield from (_of_checks(check, gap) for gap in check.gaps if gap != told)
    if check.finding is not None:
        yield f"These rows alone: {check.finding.words}"
    if check.gaps and check.edition == 1:
        yield (
            "This history keeps the limits that it began with, the sum of the tolerance and two standard "
            "errors of the fit. A new history has narrower ones."
        )
    elif check.gaps:
        of, fit_rows = check.limits.judged, check.limits.fit_rows
        own = float(check.limits.high[of] - max(check.limits.center[of], 0.0))
        margin = float(check.limits.margins(MARGIN)[of])
        is_noise = own <= margin * float(check.limits.errors[of])
        noise = f"{margin:.2g} standard errors of the fit to {fit_rows:,.0f} rows"
        why = noise if is_noise else "the tolerance"
        yield f"Allowed: 0 to the difference at the fit, and {100 * own:.2g} points beyond both ({why})."


def _of_checks(check: Check, gap: Gap) -> str:
    """Return the numbers of a check, or of several together."""
    which = f"{gap.name or 'Check'} on {gap.date[:10]}"
    if gap.checks > 1:
        every = "All" if gap.checks == check.labelled_checks else "The last"
        which = f"{every} {gap.checks} checks since {gap.date[:10]}"
    return f"{which}: {_subject(check, gap)} {_numbers(check, gap)}."


def _of_change(check: Check) -> Iterator[str]:
    change = check.change
    if change is None or not check.alarm:
        return
    size, error = abs(change.log_temperature), change.log_temperature_error
    if check.action == REFIT and not check.limits.judged and size > 2 * error:
        grows = change.log_temperature > 0
        how, what = ("overconfident", "dividing") if grows else ("underconfident", "multiplying")
        if (factor := float(np.exp(size))) > MAX_FACTOR:  # one step of Fisher scoring overstates it
            yield f"It is {how}."
        else:
            yield (
                f"It is {how}: {what} its logits by {factor:.2f} would fit these rows best (standard error "
                f"{100 * error:.0f}%)."
            )
    for how, rises in (("More", True), ("Less", False)):
        told = "; ".join(
            f"{check.class_names[one.column]} ({one.ratio:.2f} times, {one.low:.2f} to {one.high:.2f})"
            for one in change.classes
            if (one.ratio > 1) is rises
        )
        if told and len(check.limits.columns) > 2:
            yield f"{how} frequent than predicted: {told}."
    if check.labels is not None:
        what = (
            "confidence minus accuracy"
            if check.labels.of == "gap"
            else "the frequency of the class that changed most"
        )
        yield (
            f"{check.labels.number:,} {_labels(check)} are enough for a new fit: they determine {what} to "
            f"within {100 * check.labels.leaves:.1f} points (two standard errors), the tolerance or a third "
            "of the change."
        )


def _of_evidence(check: Check) -> Iterator[str]:
    if check.change is None:
        return
    now, highest = e_value(check.log_e), e_value(check.highest_log_e)
    shown = now if not check.alarm or now == highest else f"{now} now and {highest} at its highest"
    yield (
        f"Evidence of a change: e-value {shown}, alarm at {1 / check.alpha:.3g}. The "
        f"probability of a false alarm over all checks is at most {100 * check.alpha:.3g}%."
    )


def _of_predictions(check: Check) -> Iterator[str]:
    if check.shift is None:
        yield (
            "The predictions are not compared with those at the fit, because the calibrator has since been "
            "adapted to other class frequencies."
        )
    elif check.shift.alarm:
        test = min(check.shift.tests, key=lambda test: test.p_value)
        if test.column is not None:
            more, size = "more" if test.difference > 0 else "less", 100 * abs(test.difference)
            what = f"{check.class_names[test.column]} is predicted {more} often, by {size:.1f} points"
        else:
            higher = "higher" if test.difference > 0 else "lower"
            by = f"{100 * abs(test.difference):.0f} points"
            what = f"{test.what} is {higher}: the share of rows below some value differs by {by}"
        yield f"Difference from the predictions at the fit: {what}."
    elif not check.labelled:
        what = (
            "Confidence and entropy"
            if check.limits.of_positions
            else "Confidence, entropy and predicted classes"
        )
        yield f"{what} look as they did at the fit."
    if check.expected_accuracy is not None:
        value, low, high = (100 * share for share in check.expected_accuracy)
        yield (
            f"If the calibrator still holds, {value:.1f}% of these predictions are correct (95% interval "
            f"{low:.1f} to {high:.1f}). A change in accuracy cannot be seen without labels."
        )


def _rows(check: Check, number: float, which: str = "") -> str:
    return f"{number:,.0f} {which}{'group' if check.groups else 'row'}{'s' * (number != 1)}"


def _labels(check: Check) -> str:
    return "labelled groups" if check.groups else "labels"
