"""A check in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from temperance.monitoring.change import KEEP, LABEL, Change

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
    said = [_verdict(check), *_of_labels(check), *_of_predictions(check)]
    if check.counted_before is not None:
        said.append(f"These rows were checked on {check.counted_before[:10]} and are not counted again.")
    if check.equal_logits is not None:
        said.append(
            f"The check on {check.equal_logits[:10]} had the same logits, under another name or with other "
            "labels, and both are counted. If the rows are not the same, the classifier may be stuck."
        )
    return said + [f"Line {line} of the history is incomplete and was skipped." for line in check.torn_lines]


def points(share: float) -> str:
    """Return a difference in percentage points."""
    return f"{100 * share:+.1f}"


def e_value(log_e: float) -> str:
    """Return an e-value as a number, or that it is very large."""
    if log_e > np.log(MAX_E):
        return f"over {MAX_E:,.0f}"
    value = float(np.exp(log_e))
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _verdict(check: Check) -> str:
    if check.action == KEEP and not check.labelled:
        return f"Keep the calibrator, as far as {_rows(check.rows)} without labels can show."
    if check.action == KEEP:
        over = f" of {check.labelled_checks} checks" if check.labelled_checks > 1 else ""
        rows = f"{check.labelled_rows:,.0f} labelled row{'s' * (check.labelled_rows != 1)}"
        return f"Keep the calibrator: {rows}{over} show no change beyond the tolerance."
    changed = "" if check.change is None else CHANGED[check.change.explanation]
    if check.labels is None:
        return f"Act: {changed}, but not the confidence. Adapt the calibrator to the new frequencies."
    number = f"about {check.labels.number:,}"
    if check.action == LABEL:
        return f"Act: the predictions differ from those at the fit. Label {number} rows and check them."
    if check.log_e < -np.log(check.alpha):
        changed = "an earlier check raised the alarm, which remains"
    return f"Act: {changed}. Fit the calibrator again, with {number} labels."


def _of_labels(check: Check) -> Iterator[str]:
    change = check.change
    if change is None:
        return
    if check.alarm and check.since is not None:
        yield f"The change is clearest in the labelled rows since {check.since[:10]}."
    low, high = check.gap_limits
    where = _rows(change.rows)
    if not check.alarm and check.since is not None and change.rows < check.labelled_rows:
        where = f"the {where} since {check.since[:10]}, which differ most,"
    yield (
        f"In {where} it says {100 * change.said:.1f} % and is right {100 * change.right:.1f} % "
        f"of the time: a gap of {points(change.gap)} points (95 % interval {points(change.gap_low)} to "
        f"{points(change.gap_high)}, allowed {points(low)} to {points(high)})."
    )
    if check.alarm and change.right <= 1 / len(check.class_names):
        yield "The prediction is right no more often than by chance: check that labels match the columns."
    if check.alarm:
        yield from _confidence(change)
        for how, rises in (("More", True), ("Less", False)):
            told = "; ".join(
                f"{check.class_names[one.column]} ({one.ratio:.2f} times, {one.low:.2f} to {one.high:.2f})"
                for one in change.classes
                if (one.ratio > 1) is rises
            )
            if told:
                yield f"{how} frequent than predicted: {told}."
    now, highest = e_value(check.log_e), e_value(check.highest_log_e)
    shown = now if not check.alarm or now == highest else f"{now} now and {highest} at its highest"
    yield (
        f"Evidence of a change: e-value {shown}, alarm at {1 / check.alpha:.3g}. The "
        f"probability of a false alarm over all checks is at most {100 * check.alpha:.3g} %."
    )
    yield (
        "The allowed range covers the gap at the fit, its uncertainty "
        f"({_rows(round(check.limits.fit_rows))}, two standard errors), and "
        f"{100 * check.tolerance:.3g} points of tolerance."
    )
    if check.labels is not None:
        what = "the gap" if check.labels.of == "gap" else "the frequency of the class that changed most"
        yield (
            f"{check.labels.number:,} labels determine {what} to within {100 * check.labels.leaves:.1f} "
            "points (two standard errors): the tolerance, or a third of the change."
        )


def _confidence(change: Change) -> Iterator[str]:
    size, error = abs(change.log_temperature), change.log_temperature_error
    if change.explanation == "class frequencies" or size <= 2 * error:
        return
    grows = change.log_temperature > 0
    how, what = ("overconfident", "dividing") if grows else ("underconfident", "multiplying")
    if (factor := float(np.exp(size))) > MAX_FACTOR:  # one step of Fisher scoring overstates a large change
        yield f"It is {how}."
        return
    yield (
        f"It is {how}: {what} its logits by {factor:.2f} would fit these rows best (standard error "
        f"{100 * error:.0f} %)."
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
        yield "Confidence, entropy and predicted classes look as they did at the fit."
    if not check.labelled:
        yield "A change in accuracy cannot be seen without labels."


def _rows(number: float) -> str:
    return f"{number:,.0f} row{'s' * (number != 1)}"
