"""Results as sentences, and how the command line writes numbers: 10,000 rows, 92.5%, 7.9 points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temperance.errors import percent

if TYPE_CHECKING:
    from temperance.metrics.intervals import Estimate


def count(number: int, noun: str) -> str:
    """Return "1 row" or "10,000 rows".

    Examples
    --------
    >>> count(1, "row"), count(10_000, "prediction")
    ('1 row', '10,000 predictions')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def gap_in_words(gap: Estimate) -> str:
    """Return "overconfident by 7.9 points" for confidence minus accuracy; nothing if its sign is not clear.

    Examples
    --------
    >>> from temperance.metrics.intervals import Estimate
    >>> gap_in_words(Estimate(0.079, 0.07, 0.088)), gap_in_words(Estimate(0.004, -0.01, 0.02))
    ('overconfident by 7.9 points', '')
    """
    if gap.low > 0 or gap.high < 0:
        return f"{'over' if gap.value > 0 else 'under'}confident by {100 * abs(gap.value):.1f} points"
    return ""


def confidence_in_words(accuracy: float, gap: Estimate) -> str:
    """Return both numbers behind the gap.

    Examples
    --------
    >>> from temperance.metrics.intervals import Estimate
    >>> confidence_in_words(0.852, Estimate(0.079, 0.07, 0.088))
    'mean confidence 93.1%, accuracy 85.2%'
    """
    return f"mean confidence {percent(accuracy + gap.value)}, accuracy {percent(accuracy)}"
