"""`temperance fit`: a file of logits and labels -> a calibrator file."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import click

from temperance.cli import inputs, matching
from temperance.cli.floor import source_of, with_own_floor
from temperance.cli.output import Output, output_options
from temperance.cli.spelling import in_words
from temperance.errors import on_one_line

EXAMPLES = """\b
Examples:
  temperance fit val.npz -o cal.json
  temperance fit val.npz -m hts -o cal.json
  temperance fit val.npy --labels labels.npy --input logits -o cal.json
  temperance fit val.npz -m bayes --set class_bias=true -o cal.json
  temperance fit val.npz -o cal.json --metadata classifier=resnet50
"""


@click.command(epilog=EXAMPLES, short_help="Fit a calibrator and save it.")
@click.argument("val", type=inputs.FILE)
@inputs.methods_option("--method", type=str, default="bayes", metavar="METHOD", help="Key of the method.")
@click.option("-o", "--out", type=inputs.FILE, required=True, help="The calibrator file to write, JSON.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeatable."
)
@click.option(
    "--metadata", "notes", multiple=True, metavar="KEY=VALUE", help="A note to keep in the file; repeatable."
)
@inputs.input_options("val")
@inputs.force_option
@output_options("fit")
def fit(
    val: Path,
    method: str,
    out: Path,
    settings: tuple[str, ...],
    notes: tuple[str, ...],
    row_options: inputs.RowOptions,
    force: bool,
    output: Output,
) -> None:
    """Fit a calibrator to the labelled rows of VAL and save it.

    VAL must hold rows that the classifier was not trained on.
    """
    from temperance.calibrators import make_calibrator
    from temperance.calibrators.recording import record_source
    from temperance.files import check_writable, sha256

    calibrator = make_calibrator(method, **_options(method, settings))
    calibrator._check_options()  # before a large file is read
    metadata = _metadata(notes)
    inputs.check_apart(out, val, row_options.labels)
    check_writable(out, overwrite=force)
    rows = with_own_floor(row_options.open(val), output)
    assert rows.labels is not None  # labels are required here
    matching.refuse_calibrated(rows)
    logits = rows.logits()
    with output.progress(f"Fitting {method}") as report, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report("", 0.1)
        with rows.stored.naming_file():
            calibrator.fit(logits, rows.labels)
    calibrator.model_ = record_source(calibrator.model_, source_of(rows), rows.class_names)
    calibrator.save(out, metadata=metadata, overwrite=force)
    told = in_words(caught)
    matching.say_columns(output, rows)
    output.say(f"{calibrator.summary()}\n")
    for warning in told:
        output.warn(warning)
    output.say(f"Saved to {on_one_line(out)}")
    output.result(
        file={"path": str(val), "key": rows.key, "rows": rows.shape[0], "sha256": sha256(val)}
        | matching.columns_for_json(rows),
        method=method,
        out=str(out),
        parameters={name: value.tolist() for name, value in calibrator.parameters().items()},
        summary=calibrator.summary(),
        warnings=told,
    )


def _options(method: str, settings: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE: values as JSON, else as text."""
    from temperance.calibrators import make_calibrator
    from temperance.errors import InputError, excerpt

    known = make_calibrator(method).get_params()
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in known:
            names = ", ".join(known) or "none"
            raise InputError(
                f"--set must be NAME=VALUE, with one of these names for {method}: {names}; "
                f"found {excerpt(setting)}."
            )
        options[name] = _value(value)
        if isinstance(options[name], list):
            options[name] = tuple(options[name])
    return options


def _metadata(notes: tuple[str, ...]) -> dict[str, Any] | None:
    """Read KEY=VALUE: values as JSON, else as text."""
    from temperance.errors import InputError, excerpt

    metadata = {}
    for note in notes:
        key, equals, value = note.partition("=")
        if not equals or not key:
            raise InputError(f"--metadata must be KEY=VALUE; found {excerpt(note)}.")
        metadata[key] = _value(value)
    return metadata or None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
