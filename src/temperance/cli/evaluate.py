"""`temperance evaluate`: a file of logits or probabilities with labels -> all metrics with intervals."""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli import inputs, matching
from temperance.cli.output import Output, output_options
from temperance.cli.tables import metrics_table, tests_table

EXAMPLES = """\b
Examples:
  temperance evaluate test.npz
  temperance evaluate test.npz -c cal.json
  temperance evaluate probs.npz --bins 50 --json
"""


@click.command(epilog=EXAMPLES, short_help="Score outputs, calibrated or not, with intervals.")
@click.argument("logits", type=inputs.FILE)
@click.option("-c", "--calibrator", type=inputs.FILE, help="Calibrator file to apply first.")
@inputs.bins_option
@inputs.confidence_option
@inputs.draws_option
@inputs.seed_option
@inputs.input_options("test")
@inputs.from_probs_option
@output_options("evaluate")
def evaluate(
    logits: Path,
    calibrator: Path | None,
    bins: int,
    confidence: float,
    draws: int,
    seed: int,
    row_options: inputs.RowOptions,
    from_probs: bool,
    output: Output,
) -> None:
    """Score the outputs in LOGITS, calibrated or not, with intervals."""
    from temperance import metrics
    from temperance.calibrator_file.reading import load
    from temperance.streaming import probabilities_of_file

    fitted = None if calibrator is None else load(calibrator)
    if fitted is None:
        rows = matching.reading_probs(row_options, from_probs).open(logits)
    else:
        rows = matching.open_for_calibrator(
            logits, row_options, fitted, output, from_probs=from_probs, need_labels=True
        )
    assert rows.labels is not None  # labels are required here
    with output.telling_warnings(), output.progress("Evaluating") as report:
        probs = probabilities_of_file(fitted, rows, lambda share: report("probabilities", 0.3 * share))
        report("intervals", 0.3)
        with rows.stored.naming_file():
            result = metrics.evaluate(
                probs, rows.labels, bins=bins, confidence=confidence, draws=draws, random_state=seed,
                progress=lambda share: report("intervals", 0.3 + 0.7 * share),
            )  # fmt: skip
    matching.say_columns(output, rows)
    output.show(*metrics_table(result))
    output.show(*tests_table(result))
    output.result(
        file={"path": str(logits), "key": rows.key, "rows": result.n_rows} | matching.columns_for_json(rows),
        calibrator=None if fitted is None else {"path": str(calibrator), "method": fitted.key},
        classes=result.n_classes,
        bins=bins,
        confidence=confidence,
        draws=draws,
        seed=seed,
        metrics=result.to_dict(),
        tests=result.tests_to_dict(),
    )
