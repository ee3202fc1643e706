"""`temperance evaluate`: a file of logits or probabilities with labels -> all metrics with intervals."""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli import options as cli_options
from temperance.cli.output import Output, new_table, output_options
from temperance.cli.rows import file_for_json, open_for_calibrator, say_columns
from temperance.data.read_options import ReadOptions

EXAMPLES = """\b
Examples:
  temperance evaluate test.npz
  temperance evaluate test.npz -c cal.json
  temperance evaluate probs.npz --bins 50 --json
"""


@click.command(epilog=EXAMPLES, short_help="Score outputs, calibrated or not, with intervals.")
@click.argument("logits", type=cli_options.FILE)
@click.option("-c", "--calibrator", type=cli_options.FILE, help="Calibrator file to apply first.")
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
    bins: int,
    confidence: float,
    draws: int,
    seed: int,
    options: ReadOptions,
    output: Output,
) -> None:
    """Score the outputs in LOGITS, calibrated or not, with intervals."""
    from temperance import metrics
    from temperance.calibrator_file import load
    from temperance.data import RowFile
    from temperance.streaming import probabilities_of_file

    if calibrator is None:
        fitted, rows = None, RowFile.open(logits, options)
    else:
        fitted = load(calibrator)
        rows = open_for_calibrator(logits, options, fitted, output, need_labels=True)
    assert rows.labels is not None  # labels are required here
    with output.telling_warnings(), output.progress("Evaluating") as report:
        probs = probabilities_of_file(fitted, rows, lambda share: report("probabilities", 0.3 * share))
        report("intervals", 0.3)
        with rows.stored.naming_file():
            result = metrics.evaluate(
                probs, rows.labels, bins=bins, confidence=confidence, draws=draws, random_state=seed,
                progress=lambda share: report("intervals", 0.3 + 0.7 * share),
            )  # fmt: skip
    say_columns(output, rows)
    heading, *_ = str(result).splitlines()
    scores = [
        (name, *(result.shown(name, number) for number in vars(estimate).values()))
        for name, estimate in result.items()
    ]
    output.show(heading, new_table("metric", "value", "low", "high", rows=scores))
    tests = new_table("test of calibration", "statistic", "p-value", rows=result.shown_tests())
    output.show(f"Cox: {result.tests['cox'].words}", tests)
    output.result(
        file=file_for_json(rows),
        calibrator=None if fitted is None else {"path": str(calibrator), "method": fitted.key},
        classes=result.n_classes,
        bins=bins,
        confidence=confidence,
        draws=draws,
        seed=seed,
        metrics=result.to_dict(),
        tests=result.tests_to_dict(),
    )
