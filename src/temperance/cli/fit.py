"""`temperance fit`: a file of logits and labels -> a calibrator file."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from temperance.cli.options import (
    FILE,
    check_output_file,
    complete_methods,
    force_option,
    read_options,
)
from temperance.cli.output import Output, output_options
from temperance.cli.rows import file_for_json, record_rows, refuse_calibrated, say_columns, with_floor
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, excerpt, on_one_line

EXAMPLES = """\b
Examples:
  temperance fit val.npz -o cal.json
  temperance fit val.npz -m hts -o cal.json
  temperance fit val.npy --labels labels.npy --input logits -o cal.json
  temperance fit val.npz -m bayes --set class_bias=true -o cal.json
  temperance fit val.npz -o cal.json --metadata classifier=resnet50
"""


@click.command(epilog=EXAMPLES, short_help="Fit a calibrator and save it.")
@click.argument("val", type=FILE)
@click.option(
    "-m",
    "--method",
    default="bayes",
    shell_complete=complete_methods,
    metavar="METHOD",
    help="Key of the method.",
)
@click.option("-o", "--out", type=FILE, required=True, help="The calibrator file to write, JSON.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeatable."
)
@click.option(
    "--metadata", "notes", multiple=True, metavar="KEY=VALUE", help="A note to keep in the file; repeatable."
)
@read_options(without=["from_probs"], default_part="val")
@force_option
@output_options("fit")
def fit(
    val: Path,
    method: str,
    out: Path,
    settings: tuple[str, ...],
    notes: tuple[str, ...],
    options: ReadOptions,
    force: bool,
    output: Output,
) -> None:
    """Fit a calibrator to the labelled rows of VAL and save it.

    VAL must hold rows that the classifier was not trained on.
    """
    from temperance.calibrators import make_calibrator
    from temperance.data import RowFile
    from temperance.files import sha256

    known = make_calibrator(method).get_params()
    names = f"one of these names for {method}: {', '.join(known) or 'none'}"
    chosen = _read_pairs(settings, f"--set must be NAME=VALUE, with {names}", known)
    chosen = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    calibrator = make_calibrator(method, **chosen)
    calibrator._check_options()  # before a large file is read
    metadata = _read_pairs(notes, "--metadata must be KEY=VALUE") or None
    check_output_file(out, val, options.labels, overwrite=force)
    rows = with_floor(RowFile.open(val, options), output)
    assert rows.labels is not None  # labels are required here
    refuse_calibrated(rows)
    logits = rows.logits()
    with output.telling_warnings() as told, output.progress(f"Fitting {method}") as report:
        report("", 0.1)
        with rows.stored.naming_file():
            calibrator.fit(logits, rows.labels)
    record_rows(calibrator, rows, rows.class_names)
    calibrator.save(out, metadata=metadata, overwrite=force)
    say_columns(output, rows)
    output.say(f"{calibrator.summary()}\n")
    output.say(f"Saved to {on_one_line(out)}")
    output.result(
        file=file_for_json(rows, sha256=sha256(val)),
        method=method,
        out=str(out),
        parameters={name: value.tolist() for name, value in calibrator.parameters().items()},
        summary=calibrator.summary(),
        warnings=told,
    )


def _read_pairs(words: Sequence[str], wanted: str, known: Collection[str] | None = None) -> dict[str, Any]:
    """Read NAME=VALUE: values as JSON, else as text. `wanted` says what must hold."""
    pairs: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or (known is not None and name not in known):
            raise InputError(f"{wanted}; found {excerpt(word)}.")
        try:
            pairs[name] = json.loads(text)
        except (ValueError, RecursionError):
            pairs[name] = text
    return pairs
