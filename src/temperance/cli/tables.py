"""Results as tables of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

if TYPE_CHECKING:
    from temperance.calibrators.label_shift import FrequencyChange
    from temperance.comparison import Comparison
    from temperance.metrics import Evaluation
    from temperance.study.results import MethodTime, Results

SHOWN_CLASSES = 15
LONGEST_NAME = 40


def comparison_table(comparison: Comparison) -> tuple[str, Table]:
    """Return a heading, and a table of methods and scores; the recommended one is highlighted."""
    heading, *_ = str(comparison).splitlines()
    table = _table("method", *comparison.shown(comparison.recommended))
    for name in comparison.results:
        mark, style = (" *", "bold green") if name == comparison.recommended else ("", None)
        table.add_row(f"{name}{mark}", *comparison.shown(name).values(), style=style)
    return heading, table


def metrics_table(evaluation: Evaluation) -> tuple[str, Table]:
    """Return a heading, and a table of metrics with values and intervals."""
    heading, *_ = str(evaluation).splitlines()
    table = _table("metric", "value", "low", "high")
    for name, estimate in evaluation.items():
        table.add_row(name, *(evaluation.shown(name, number) for number in vars(estimate).values()))
    return heading, table


def tests_table(evaluation: Evaluation) -> tuple[str, Table]:
    """Return the calibration slope in words, and a table of tests with statistics and p-values."""
    table = _table("test of calibration", "statistic", "p-value")
    for row in evaluation.shown_tests():
        table.add_row(*row)
    return f"Cox: {evaluation.tests['cox'].words}", table


def frequencies_table(changes: Sequence[FrequencyChange], names: Sequence[object]) -> tuple[str, Table]:
    """Return a heading, and the classes whose frequencies changed most."""
    shown = changes[:SHOWN_CLASSES]
    some = "" if len(shown) == len(changes) else f", the {len(shown)} largest changes"
    table = _table("class", "at fit", "now", "\u00b1")
    for change in shown:
        error = "" if change.error is None else f"{change.error:.4f}"
        name = str(names[change.column])[:LONGEST_NAME]
        table.add_row(name, f"{change.at_fit:.4f}", f"{change.now:.4f}", error)
    return f"frequencies of {len(changes)} classes{some}", table


def times_table(results: Results, times: Sequence[MethodTime]) -> tuple[str, Table]:
    """Return a heading, and a table of methods: fits, failures and times."""
    tasks = f"{len(results.tasks)} task{'' if len(results.tasks) == 1 else 's'}"
    heading = f"{tasks}, N = {', '.join(map(str, results.sizes))}, seed {results.seed}"
    table = _table("method", "fits", "failed", "not converged", "fit ms", "apply ms", "all, min")
    for time in times:
        table.add_row(
            time.method,
            str(time.fits),
            str(time.failed),
            str(time.unconverged),
            f"{1000 * time.fit_seconds / time.fits:.1f}",
            f"{1000 * time.apply_seconds / time.fits:.1f}",
            f"{(time.fit_seconds + time.apply_seconds) / 60:.1f}",
        )
    return heading, table


def _table(first: str, *numbers: str) -> Table:
    """Return an empty table: a column of names, and columns of numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
