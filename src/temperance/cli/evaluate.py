"""`temperance evaluate`: a file of logits or probabilities with labels -> metrics with intervals."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import click

from temperance.cli import options
from temperance.cli.output import Output, count, new_table
from temperance.cli.rows import calibrator_for_json, file_for_json, open_for_calibrator, say_columns
from temperance.data.read_options import ReadOptions
from temperance.errors import on_one_line

EXAMPLES = """\b
Examples:
  temperance evaluate test.npz
  temperance evaluate test.npz -c cal.json
  temperance evaluate test.npz --all
  temperance evaluate visits.csv --group-column patient --by hospital
  temperance evaluate probs.npz --bins 50 --json
  temperance evaluate test.npz -c cal.json --costs costs.csv
"""


MAIN_METRICS = ("accuracy", "nll", "brier", "ece", "overconfidence")


@click.command(
    cls=options.Command, epilog=EXAMPLES, short_help="Score outputs, calibrated or not, with intervals."
)
@click.argument("logits", type=options.INPUT)
@click.option("-c", "--calibrator", type=options.INPUT, help="Calibrator file to apply first.")
@click.option("--all", "show_all", is_flag=True, help="Print every metric, and tests of calibration.")
@click.option(
    "--costs",
    type=options.INPUT,
    help="Costs of decisions, .csv or .npy: a row per true class, a column per decision, the classes first.",
)
@options.bins
@options.confidence
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=1000,  # metrics.bootstrap.DRAWS, which would be slow to import here
    help="Bootstrap resamples.",
)
@options.seed
@options.read_options(default_part="test")
@options.output_options
def evaluate(
    logits: Path,
    calibrator: Path | None,
    show_all: bool,
    costs: Path | None,
    seed: int,
    reading: ReadOptions,
    output: Output,
    **settings: Any,
) -> None:
    """Score the outputs in LOGITS, calibrated or not, with intervals."""
    from temperance import decisions, metrics
    from temperance.calibrator_file import load
    from temperance.calibrators.fit_record import warn_if_fitted_on
    from temperance.core.logit_rows import LogitRows
    from temperance.data import RowFile
    from temperance.formulas.automation import check_costs
    from temperance.inputs.containers import open_logits
    from temperance.metrics.table import METRICS
    from temperance.streaming import probabilities_of_file

    if calibrator is None:
        fitted, rows = None, RowFile.open(logits, reading)
    else:
        fitted = load(calibrator)
        rows = open_for_calibrator(logits, reading, fitted, output, need_labels=True)
    labels = rows.named(rows.labels)
    assert rows.labels is not None  # labels are required here
    assert labels is not None
    matrix, cost = None if costs is None else check_costs(_read_costs(costs), rows.n_classes), None
    with output.progress("Evaluating") as report:
        probs = probabilities_of_file(fitted, rows, lambda share: report("probabilities", 0.3 * share))
        own = None
        if fitted is not None:
            own = probabilities_of_file(None, rows)
            seen = LogitRows(open_logits(rows.logits()).values, rows.labels)
            warn_if_fitted_on(fitted.model_, seen, "evaluate", "A fit describes its own rows best")
        report("intervals", 0.3)
        with rows.stored.naming_file():
            result = metrics.evaluate(
                probs, labels, random_state=seed, classes=rows.class_names, groups=rows.groups, by=rows.by,
                positive=rows.named(rows.positive), positions=rows.positions, before=own,
                progress=lambda share: report("intervals", 0.3 + 0.7 * share), **settings,
            )  # fmt: skip
        if matrix is not None:
            level = settings["confidence"]
            cost = decisions.evaluate_costs(probs, rows.labels, matrix, confidence=level, groups=rows.groups)
    say_columns(output, rows)
    if result["nll"].value == float("inf"):
        output.say(
            "The log loss is infinite, since some labels have probability 0. compare and fit raise such "
            "probabilities to a floor."
        )
    by_group = result.by_group
    if by_group is not None:
        output.show(by_group.words, style="bold")
        output.show("All rows together:", style="bold")
    output.show("\n".join(map(on_one_line, result.answer)), style="bold")
    rows_told, bins = count(result.n_rows, "prediction"), settings["bins"]
    output.say(f"{rows_told}, {result.n_classes:,} classes, ECE with {bins:,} bins")
    if result.n_groups is not None:
        output.say(result.groups_in_words)
    # Of an event, the finding has mean and rate; errors on both sides of 1/2 would cancel in the confidence.
    judges_event = result.finding is not None and result.finding.of_event
    table = new_table("metric", "value", f"{100 * settings['confidence']:g}% interval")
    main = [name for name in MAIN_METRICS if name != "overconfidence" or not judges_event]
    for name in result if show_all else main:
        value, low, high = (result.shown(name, number) for number in astuple(result[name]))
        label = METRICS[name].label.replace("NLL", "log loss")  # as commands call it
        table.add_row(label, value, "-" if "-" in (low, high) else f"{low} to {high}")
    output.say(table)
    if cost is not None:
        realised, expected = cost.realised, cost.expected
        output.say(
            f"Mean cost of the cheapest decisions: {realised.value:.4g} ({realised.low:.4g} to "
            f"{realised.high:.4g}); the probabilities expect {expected.value:.4g}."
        )
    if show_all:
        output.say("Other tests; no sentence uses them.")
        output.say(new_table("test of calibration", "statistic", "p-value", rows=result.shown_tests()))
        output.say(f"Cox: {result.tests['cox'].words}")
    else:
        output.say("--all prints every metric, and tests of calibration.")
    output.say_by_group(reading.by, by_group)
    output.result(
        file=file_for_json(rows),
        calibrator=None if fitted is None or calibrator is None else calibrator_for_json(calibrator, fitted),
        classes=result.n_classes,
        finding=None if result.finding is None else result.finding.to_dict(),
        before=None if result.before is None else result.before.to_dict(),
        seed=seed,
        **settings,
        metrics=result.to_dict(),
        tests=result.tests_to_dict(),
        costs=None if cost is None else cost.to_dict(),
        groups=result.n_groups,
        by_group=None if by_group is None else {"by": reading.by} | by_group.to_dict(),
    )


def _read_costs(path: Path) -> Any:
    """Return the numbers of a file of costs."""
    import numpy as np

    from temperance.errors import file_error, reason_of

    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except (ValueError, EOFError) as error:
        fact = f"must hold a matrix of numbers without names ({reason_of(error)})."
        raise file_error(path, fact) from None
