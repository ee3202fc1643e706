"""The methods that the figures show until the reader chooses others."""

from __future__ import annotations

from temperance.comparison import UNCALIBRATED, Comparison
from temperance.display.map import has_map


def shown_at_first(comparison: Comparison) -> set[str]:
    """Return the methods that the figures show at first.

    They are the recommended one (or the best one, if none is), the alternative that keeps every decision, the
    one with the lowest NLL, the one with the fewest parameters, and the best one with a map, so that the
    figure of maps is not empty.
    """
    methods = {name: result for name, result in comparison.results.items() if name != UNCALIBRATED}
    if not methods:
        return set()
    by_nll = sorted(methods, key=lambda name: methods[name].scores["nll"].value)
    with_map = [name for name in by_nll if has_map(methods[name].calibrator)]
    simplest = min(methods, key=lambda name: methods[name].n_parameters)
    others = (comparison.verdict.tried, comparison.verdict.alternative)
    return {by_nll[0], simplest, *with_map[:1], *(name for name in others if name in methods)}
