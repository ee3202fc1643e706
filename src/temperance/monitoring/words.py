"""A check in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from temperance.monitoring.change import INSPECT, KEEP, LABEL, WATCH, Gap

if TYPE_CHECKING:
    from temperance.monitoring.checks import Check

CHANGED = {
    "confidence": "the confidence is no longer right",
    "both": "confidence and class frequencies have changed",
    "unclear": "it is wrong beyond the tolerance, and the rows do not show yet how",
    "class frequencies": "the class frequencies have changed",
}
MAX_E = 1e6  # larger e-values are not written as numbers
MAX_FACTOR = 1.35  # larger factors of the logits are not written as numbers


def sentences(check: Check) -> list[str]:
    """Return the verdict, then the evidence for it."""
    said = [_verdict(check)]
    if check.counted_before is not None:
        said.append(f"These rows were checked on {check.counted_before[:10]} and are not counted again.")
    said += [*_of_gaps(check), *_of_change(check), *_of_evidence(check), *_of_predictions(check)]
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
    if check.action == KEEP and not check.labelled:
        return f"Keep the calibrator, as far as {_rows(check, check.rows)} without labels can show."
    if check.action in (KEEP, WATCH):
        over = f" of {check.labelled_checks} checks" if check.labelled_checks > 1 else ""
        rows = f"{_rows(check, check.labelled_rows, 'labelled ')}{over}"
        if check.action == KEEP and check.within:
            return f"Keep the calibrator: {rows} show no change beyond the tolerance."
        if check.action == KEEP:
            return (
                "Keep the calibrator: the gap is outside the allowed range by no more than chance explains."
            )
        more = (
            ""
            if check.labels is None
            else f" If it stays so, about {check.labels.number:,} more {_labels(check)} will be."
        )
        return f"Watch: the gap is outside the allowed range, but {rows} are not enough evidence.{more}"
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
    changed = "" if check.change is None else CHANGED[check.change.explanation]
    if check.labels is None:
        return f"Act: {changed}, but not the confidence. Adapt the calibrator to the new frequencies."
    if check.log_e < -np.log(check.alpha):
        changed = "an earlier check raised the alarm, which remains"
    return f"Act: {changed}. Fit the calibrator again, with about {check.labels.number:,} {_labels(check)}."


def _of_gaps(check: Check) -> Iterator[str]:
    for gap in (*([] if check.recheck is None else [check.recheck]), *check.gaps):
        yield (
            f"{_checks(check, gap)}: mean confidence {100 * gap.confidence:.1f}%, accuracy "
            f"{100 * gap.accuracy:.1f}%, a gap of {points(gap.gap)} points (95% interval "
            f"{points(gap.low)} to {points(gap.high)})."
        )
    if check.gaps:
        low, high = check.gap_limits
        yield (
            f"Allowed are {points(low)} to {points(high)}: the gap at the fit, its uncertainty "
            f"({round(check.limits.baseline.effective_rows):,} rows, two standard errors), and "
            f"{100 * check.tolerance:.3g} points of tolerance."
        )


def _checks(check: Check, gap: Gap) -> str:
    """Return which checks a gap belongs to."""
    if gap.checks == 1:
        return f"{gap.name or 'Check'} on {gap.date[:10]}, {_rows(check, gap.rows)}"
    which = "All" if gap.checks == check.labelled_checks else "The last"
    return f"{which} {gap.checks} checks since {gap.date[:10]}, {_rows(check, gap.rows)}"


def _of_change(check: Check) -> Iterator[str]:
    change = check.change
    if change is None or not check.alarm:
        return
    if check.since is not None:
        rows = _rows(check, change.rows)
        yield f"The change is clearest in the {rows} with labels since {check.since[:10]}."
    size, error = abs(change.log_temperature), change.log_temperature_error
    if check.action != INSPECT and change.explanation != "class frequencies" and size > 2 * error:
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
        if told:
            yield f"{how} frequent than predicted: {told}."
    if check.labels is not None:
        what = "the gap" if check.labels.of == "gap" else "the frequency of the class that changed most"
        yield (
            f"{check.labels.number:,} {_labels(check)} determine {what} to within "
            f"{100 * check.labels.leaves:.1f} points (two standard errors): the tolerance, or a third "
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
