"""`temperance apply`: a calibrator file and a file of logits -> a file of probabilities, block by block."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

import temperance
from temperance.cli import options
from temperance.cli.output import Output, count
from temperance.cli.rows import calibrator_for_json, file_for_json, open_for_calibrator, say_columns
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, on_one_line, percent

EXAMPLES = """\b
Examples:
  temperance apply cal.json new.npz -o probs.npz
  temperance apply cal.json new.csv -o probs.csv
  temperance apply cal.json logits.npy --input logits -o probs.npy

\b
The output can be .npz, .npy, .csv or .parquet. Labels, class names and row
names are copied to it, so that `temperance evaluate probs.npz` works. If the
calibrator has a rule of `temperance automate`, the column `decision` has the
class of each row, or "ask a person"; in .npz, its column, or -1. Arrays keep
their shape; a table has one row per pixel or token. Files can be
larger than memory.
"""


@click.command(
    cls=options.Command,
    epilog=EXAMPLES,
    short_help="Write the calibrated probabilities of a file of logits.",
)
@click.argument("calibrator", type=options.INPUT)
@click.argument("logits", type=options.INPUT)
@click.option("-o", "--out", type=options.OUTPUT, required=True, help="The file of probabilities to write.")
@options.read_options(without=["group_column", "by", "ignore_index"], default_part="test")
@options.force
@options.output_options
def apply(
    calibrator: Path, logits: Path, out: Path, reading: ReadOptions, force: bool, output: Output
) -> None:
    """Calibrate LOGITS with the calibrator file CALIBRATOR and write the probabilities."""
    import numpy as np

    from temperance.calibrator_file import load
    from temperance.calibrators.registry import key_of
    from temperance.data.formats.columns import LABEL_NAMES
    from temperance.data.writer import DECISION, check_output, open_writer
    from temperance.inputs.names import class_in_words
    from temperance.metrics.predictions import judged_class
    from temperance.streaming import in_shape_of_file, predict_file, probability_dtype

    fitted = load(calibrator)
    check_output(out)
    rows = open_for_calibrator(logits, reading, fitted, output)
    if rows.has_labels and rows.labels is None:
        with suppress(InputError):  # invalid labels, such as -1 for unknown, are not copied
            rows = rows.with_labels()
    shape, done, total = (rows.shape[0], rows.n_classes), 0, 0.0
    positive = judged_class(rows.n_classes, rows.positive, positions=rows.positions)
    written: tuple[int, ...] = shape
    labels, axis, parts = rows.labels, 1, predict_file(fitted, rows)
    if rows.dim is not None and out.suffix.lower() in (".npz", ".npy"):  # a table has one row per pixel
        written, axis, parts = rows.array_shape, rows.dim, in_shape_of_file(rows, parts)
        labels = None if labels is None else labels.reshape(rows.leading)
    beside: dict[str, Any] = {}
    rule, n_decided, taken = fitted.model_.automation, 0, (*LABEL_NAMES, DECISION)
    if out.suffix.lower() != ".npy":  # which holds one array only
        beside = {
            "labels": labels,
            "class_names": getattr(fitted, "class_names_", None) or rows.class_names,
            "ids": rows.ids,
            # An id column named like a label column would be read back as labels.
            "id_column": "id" if (rows.id_column or "").lower() in taken else rows.id_column,
            "mark": f"{key_of(fitted)} (temperance {temperance.__version__})",
        }
    with (
        output.progress("Calibrating") as report,
        open_writer(out, shape=written, dtype=probability_dtype(rows), overwrite=force, **beside) as writer,
    ):
        for probs in parts:
            decisions = None
            if rule is not None:
                decisions = rule.decide(np.moveaxis(probs, axis, -1).astype(np.float64))
                n_decided += int((decisions >= 0).sum())
            writer.write(probs, decisions)
            judged = probs.max(axis=axis) if positive is None else probs.take(positive, axis)
            done += judged.size
            total += float(judged.sum(dtype=np.float64))
            report("", done / shape[0])
    say_columns(output, rows)
    names, mean = rows.class_names, total / shape[0]
    of = "confidence" if positive is None else f"P({class_in_words(positive, names)})"
    output.say(f"Calibrated {count(shape[0], 'row')}, {shape[1]:,} classes: mean {of} {percent(mean)}")
    share = n_decided / shape[0]
    if rule is not None:
        output.say(f"The rule decides on {percent(share)} of the rows; the others are for a person.")
        output.say(rule.missed_in_words)
    output.say(f"Saved to {on_one_line(out)}", wrap=False)
    output.result(
        file=file_for_json(rows),
        calibrator=calibrator_for_json(calibrator, fitted),
        out=str(out),
        classes=shape[1],
        mean_confidence=mean if positive is None else None,
        mean_positive=None if positive is None else mean,
        decided=None if rule is None else share,
    )
