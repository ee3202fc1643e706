"""The content of a table or a figure of a study: the size, the methods, and which scores are better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from temperance.errors import InputError, guess
from temperance.inputs.validation import check_choice
from temperance.study.methods import METHODS, in_order
from temperance.study.results import METRICS, Results

Better = Literal["lower", "higher"]


def choose_size(results: Results, n: int | None) -> int:
    """Return the number of rows fitted to, by default the fewest of the study; raise if it has no results."""
    if not results.tasks or not results.sizes:
        raise InputError(f"the study in {results.folder} must have tasks; found none. Run it first.")
    return results.sizes[0] if n is None else n


def choose_methods(results: Results, metric: str, n: int, methods: Sequence[str] | None) -> tuple[str, ...]:
    """Return methods in the order of tables, by default all that have a result with this number of rows."""
    studied = results.methods
    if methods is None:
        return tuple(
            key for key in studied if any(results.summary(task, key, n, metric) for task in results.tasks)
        )
    chosen = tuple(in_order(methods))
    for key in chosen:
        if key not in studied:
            raise InputError(
                f"the methods must be some of the study, {', '.join(studied) or 'which has none yet'}; "
                f"found {key!r}.",
                advice="Run the study with it first." if key in METHODS else guess(key, studied),
            )
    return chosen


def better_scores(metric: str, better: str | None) -> Better | None:
    """Return whether lower or higher scores are better; None if unknown, for a metric from outside.

    Examples
    --------
    >>> better_scores("nll", None), better_scores("accuracy", None), better_scores("accuracy", "higher")
    ('lower', None, 'higher')
    """
    if better is not None:
        check_choice("better", better, ("lower", "higher"))
    if metric in METRICS:
        if better == "higher":
            raise InputError(f"better must be 'lower' for {metric}; found 'higher'. Leave it out.")
        return "lower"
    return "lower" if better == "lower" else "higher" if better == "higher" else None
