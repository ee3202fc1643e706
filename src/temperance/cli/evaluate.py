"""`temperance evaluate`: a file of logits or probabilities with labels -> metrics with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temperance.cli import options as cli_options
from temperance.cli.output import Output, new_table, output_options
from temperance.cli.rows import calibrator_for_json, file_for_json, open_for_calibrator, say_columns
from temperance.cli.words import confidence_in_words, count, gap_in_words
from temperance.data.read_options import ReadOptions
from temperance.errors import on_one_line

if TYPE_CHECKING:
    from temperance.decisions import CostEvaluation
    from temperance.metrics import Evaluation

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


@click.command(epilog=EXAMPLES, short_help="Score outputs, calibrated or not, with intervals.")
@click.argument("logits", type=cli_options.FILE)
@click.option("-c", "--calibrator", type=cli_options.FILE, help="Calibrator file to apply first.")
@click.option("--all", "show_all", is_flag=True, help="Print every metric, and tests of calibration.")
@click.option(
    "--costs",
    type=cli_options.FILE,
    help="Costs of decisions, .csv or .npy: a row per true class, a column per decision, the classes first.",
)
@cli_options.bins_option
@cli_options.confidence_option
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=1000,  # metrics.bootstrap.DRAWS, which would be slow to import here
    help="Bootstrap resamples.",
)
@cli_options.seed_option
@cli_options.read_options(default_part="test")
@output_options("evaluate")
def evaluate(
    logits: Path,
    calibrator: Path | None,
    show_all: bool,
    costs: Path | None,
    bins: int,
    confidence: float,
    draws: int,
    seed: int,
    options: ReadOptions,
    output: Output,
) -> None:
    """Score the outputs in LOGITS, calibrated or not, with intervals."""
    from temperance import decisions, metrics
    from temperance.calibrator_file import load
    from temperance.data import RowFile
    from temperance.formulas.automation import check_costs
    from temperance.streaming import probabilities_of_file

    if calibrator is None:
        fitted, rows = None, RowFile.open(logits, options)
    else:
        fitted = load(calibrator)
        rows = open_for_calibrator(logits, options, fitted, output, need_labels=True)
    assert rows.labels is not None  # labels are required here
    matrix = None if costs is None else check_costs(_read_costs(costs), rows.n_classes)
    with output.telling_warnings(), output.progress("Evaluating") as report:
        probs = probabilities_of_file(fitted, rows, lambda share: report("probabilities", 0.3 * share))
        report("intervals", 0.3)
        with rows.stored.naming_file():
            result = metrics.evaluate(
                probs, rows.labels, bins=bins, confidence=confidence, draws=draws, random_state=seed,
                groups=rows.groups, by=rows.by,
                progress=lambda share: report("intervals", 0.3 + 0.7 * share),
            )  # fmt: skip
        cost = None if matrix is None else decisions.evaluate_costs(
            probs, rows.labels, matrix, confidence=confidence
        )  # fmt: skip
    say_columns(output, rows)
    if result["nll"].value == float("inf"):
        output.say(
            "The log loss is infinite, since some labels have probability 0. compare and fit raise such "
            "probabilities to a floor."
        )
    by_group = result.by_group
    output.answer(_answer(result), *([] if by_group is None else [by_group.words]))
    if result.base_rate is not None and not rows.positions:
        output.say(
            on_one_line(result.positive_in_words("1" if rows.class_names is None else rows.class_names[1]))
        )
    names = result if show_all else MAIN_METRICS
    scores = [
        (_label(name), result.shown(name, result[name].value), _interval(result, name)) for name in names
    ]
    output.say(f"{count(result.n_rows, 'prediction')}, {result.n_classes:,} classes, ECE with {bins:,} bins")
    if result.n_groups is not None:
        output.say(result.groups_in_words)
    output.say(new_table("metric", "value", f"{100 * confidence:g}% interval", rows=scores))
    if cost is not None:
        output.say(_cost_in_words(cost))
    if show_all:
        output.say(new_table("test of calibration", "statistic", "p-value", rows=result.shown_tests()))
        output.say(f"Cox: {result.tests['cox'].words}")
    else:
        output.say("--all prints every metric, and tests of calibration.")
    output.say_by_group(options.by, by_group)
    output.result(
        file=file_for_json(rows),
        calibrator=None if fitted is None or calibrator is None else calibrator_for_json(calibrator, fitted),
        classes=result.n_classes,
        mean_positive=result.mean_positive,
        base_rate=result.base_rate,
        bins=bins,
        confidence=confidence,
        draws=draws,
        seed=seed,
        metrics=result.to_dict(),
        tests=result.tests_to_dict(),
        costs=None if cost is None else cost.to_dict(),
        groups=result.n_groups,
        by_group=None if by_group is None else {"by": options.by} | by_group.to_dict(),
    )


def _answer(result: Evaluation) -> str:
    """Say whether the probabilities are calibrated, as far as these rows can tell."""
    from temperance.metrics.calibration_tests import LEVEL

    accuracy, gap, ece = (result[name] for name in ("accuracy", "overconfidence", "ece"))
    if not (verdict := gap_in_words(gap)):
        # The test that compare reports, or one of the others: the smallest of several p-values is small by
        # chance more often than one.
        smallest = len(result.tests) * min(test.p_value for test in result.tests.values())
        detected = ece.low > 0 or min(smallest, result.tests["cox"].p_value) < LEVEL
        verdict = "miscalibrated, but not on average" if detected else "no miscalibration detectable"
    return f"{verdict.capitalize()}: {confidence_in_words(accuracy.value, gap)}."


def _read_costs(path: Path) -> Any:
    """Return the numbers of a file of costs."""
    import numpy as np

    from temperance.errors import file_error, reason_of

    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, ndmin=2)
    except (ValueError, EOFError) as error:
        fact = f"must hold a matrix of numbers without names ({reason_of(error)})."
        raise file_error(path, fact) from None


def _cost_in_words(cost: CostEvaluation) -> str:
    """Say what decisions of least expected cost have cost."""
    realised, expected = cost.realised, cost.expected
    return (
        f"Mean cost of the cheapest decisions: {realised.value:.4g} ({realised.low:.4g} to "
        f"{realised.high:.4g}); the probabilities expect {expected.value:.4g}."
    )


def _label(name: str) -> str:
    from temperance.metrics.table import METRICS

    return METRICS[name].label.replace("NLL", "log loss")  # as commands call it


def _interval(result: Evaluation, name: str) -> str:
    low, high = (result.shown(name, end) for end in (result[name].low, result[name].high))
    return "-" if "-" in (low, high) else f"{low} to {high}"
