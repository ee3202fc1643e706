"""`temperance apply`: a calibrator file and a file of logits -> a file of probabilities, block by block."""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli.inputs import FILE, RowOptions, force_option, input_options
from temperance.cli.output import Output, on_one_line, output_options

EXAMPLES = """\b
Examples:
  temperance apply cal.json new.npz -o probs.npz
  temperance apply cal.json new.csv -o probs.csv
  temperance apply cal.json logits.npy --input logits -o probs.npy

\b
The output may be .npz, .npy, .csv or .parquet. Labels, where there are any,
go along, so that `temperance evaluate probs.npz` works. Files larger than
memory are no trouble.
"""


@click.command(epilog=EXAMPLES, short_help="Write the calibrated probabilities of a file of logits.")
@click.argument("calibrator", type=FILE)
@click.argument("logits", type=FILE)
@click.option("-o", "--out", type=FILE, required=True, help="The file of probabilities to write.")
@input_options("test")
@force_option
@output_options("apply")
def apply(
    calibrator: Path,
    logits: Path,
    out: Path,
    row_options: RowOptions,
    force: bool,
    output: Output,
) -> None:
    """Calibrate LOGITS with the calibrator file CALIBRATOR and write the probabilities."""
    import numpy as np

    from temperance.data.writing import check_output, open_writer
    from temperance.persistence import load
    from temperance.streaming import predict_file, probability_dtype, probability_shape

    fitted = load(calibrator)
    check_output(out, overwrite=force)
    rows = row_options.open_with_any_labels(logits)
    shape, dtype, done, total = probability_shape(rows), probability_dtype(rows), 0, 0.0
    carried = None if out.suffix.lower() == ".npy" else rows.labels  # one array is all that it holds
    with (
        output.telling_warnings(),
        output.progress("Calibrating") as report,
        open_writer(out, shape=shape, dtype=dtype, labels=carried, overwrite=force) as writer,
    ):
        for probs in predict_file(fitted, rows):
            writer.write(probs)
            done += len(probs)
            total += float(probs.max(axis=1).sum(dtype=np.float64))
            report("", done / shape[0])
    output.say(f"{shape[0]} rows, {shape[1]} classes, mean confidence {100 * total / shape[0]:.2f} %")
    output.say(f"Saved to {on_one_line(out)}")
    output.result(
        file={"path": str(logits), "key": rows.key, "rows": shape[0]},
        calibrator={"path": str(calibrator), "method": fitted.key},
        out=str(out),
        classes=shape[1],
        mean_confidence=total / shape[0],
    )
