"""`temperance fit`: a file of logits and labels -> a calibrator file."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temperance.cli import options
from temperance.cli.options import command_line
from temperance.cli.output import Output, count, tell_user
from temperance.cli.rows import (
    KIND_IN_WORDS,
    file_for_json,
    record_rows,
    refuse_calibrated,
    say_columns,
    with_floor,
)
from temperance.cli.show import details_of
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, excerpt, on_one_line

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile
    from temperance.metrics.finding import Finding

EXAMPLES = """\b
Examples:
  temperance fit val.npz -o cal.json
  temperance fit val.npz -m hts -o cal.json
  temperance fit val.npy --labels labels.npy --input logits -o cal.json
  temperance fit val.npz -m bayes --set class_bias=true -o cal.json
  temperance fit pixels.npz --dim 1 --ignore-index 255 -o cal.json
  temperance fit val.npz -o cal.json --metadata classifier=resnet50
"""


@click.command(cls=options.Command, epilog=EXAMPLES, short_help="Fit a calibrator and save it.")
@click.argument("val", type=options.INPUT)
@click.option(
    "-m",
    "--method",
    shell_complete=options.complete_methods,
    metavar="METHOD",
    help="Key of the method.  [default: bayes-bias for two classes, bayes for more]",
)
@click.option("-o", "--out", type=options.OUTPUT, required=True, help="The calibrator file to write, JSON.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeatable."
)
@click.option(
    "--metadata", "notes", multiple=True, metavar="KEY=VALUE", help="A note to keep in the file; repeatable."
)
@click.option("--details", is_flag=True, help="Print the fitted numbers, as `temperance show` does.")
@options.read_options(without=["from_probs", "by"], default_part="val")
@options.force
@options.output_options
def fit(
    val: Path,
    method: str | None,
    out: Path,
    settings: tuple[str, ...],
    notes: tuple[str, ...],
    details: bool,
    reading: ReadOptions,
    force: bool,
    output: Output,
) -> None:
    """Fit a calibrator to the labelled rows of VAL and save it.

    VAL must hold rows held out from the classifier's training.
    """
    from temperance.calibrator_file import load
    from temperance.calibrators import make_calibrator
    from temperance.calibrators.estimator import groups_in_words
    from temperance.calibrators.registry import default_method
    from temperance.core.logit_rows import calling_at_each_pass
    from temperance.data import RowFile
    from temperance.files import sha256
    from temperance.metrics.finding import State, rates

    opened, why = None, ""
    if method is None:
        opened = RowFile.open(val, reading)
        method = default_method(opened.n_classes)
        number = "two" if opened.n_classes == 2 else "more than two"
        why = f"{method} is the default for {number} classes; -m chooses another method."
    known = make_calibrator(method).get_params()
    names = f"one of these names for {method}: {', '.join(known) or 'none'}"
    chosen = _read_pairs(settings, f"--set must be NAME=VALUE, with {names}", known)
    chosen = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    calibrator = make_calibrator(method, **chosen)
    calibrator._check_options()  # before a large file is read
    metadata = _read_pairs(notes, "--metadata must be KEY=VALUE") or None
    rows = with_floor(opened or RowFile.open(val, reading), output)
    assert rows.labels is not None  # labels are required here
    refuse_calibrated(rows)
    logits = rows.logits()
    with output.progress(f"Fitting {method}") as report:
        steps = itertools.count(1)  # how many a fit takes is not known
        with rows.stored.naming_file(), calling_at_each_pass(lambda: report(f"step {next(steps)}", math.nan)):
            calibrator.fit(
                logits, rows.labels, positions=rows.positions, groups=rows.groups, positive=rows.positive,
                from_probs=rows.from_probs,
            )  # fmt: skip
        before = _finding_of(None, rows)
        after = _finding_of(calibrator, rows) if before.of_event else None
    record_rows(calibrator, rows, rows.class_names)
    calibrator.save(out, metadata=metadata, overwrite=force)
    say_columns(output, rows)
    source = f"{on_one_line(val)}{f', {rows.key}' if rows.key not in ('', rows.kind) else ''}"
    what = f"{count(rows.shape[0], 'row')} of {KIND_IN_WORDS[rows.kind]}, {rows.n_classes:,} classes"
    if why:
        output.say(why)
    output.say(f"Fitted {method} to {what}: {source}", wrap=False)
    if together := groups_in_words(calibrator.model_):
        output.say(f"{together}.")
    output.say(on_one_line(f"Before: {before}"))
    if before.state is State.REVERSED:
        tell_user("warning", f"{before} No calibrator mends them.")
    if after is not None:
        mean, rate = rates(after.mean, after.rate)
        told = f"P({after.name}) {mean} on average, {rate} observed"
        output.say(on_one_line(f"After, on the rows of the fit: {told}."))
    if details:
        output.say(f"\n{details_of(load(out))}\n", wrap=False)
    output.say(f"Saved to {on_one_line(out)}. Details: {command_line('show', out)}", wrap=False)
    output.say(f"Next: {_next(val, out, reading)}", wrap=False)
    output.result(
        file=file_for_json(rows, sha256=sha256(val)),
        method=method,
        finding=before.to_dict(),
        out=str(out),
        parameters={name: value.tolist() for name, value in calibrator.parameters().items()},
        summary=calibrator.summary(),
        warnings=output.warnings,
    )


def _finding_of(calibrator: Calibrator | None, rows: RowFile) -> Finding:
    """Return what the rows show about the classifier's own probabilities, or about calibrated ones."""
    from temperance.metrics.finding import Finding
    from temperance.metrics.predictions import check_rows
    from temperance.streaming import probabilities_of_file

    probs = probabilities_of_file(calibrator, rows)
    columns: dict[str, Any] = {"positive": rows.named(rows.positive), "positions": rows.positions}
    labels = rows.named(rows.labels)
    columns |= {"groups": rows.groups, "examine": True}
    return Finding.of(check_rows(probs, labels, None, rows.class_names, **columns))


def _next(val: Path, out: Path, reading: ReadOptions) -> str:
    """Return the command that uses the calibrator: on the test rows of a task file, or on another file."""
    from temperance.data.formats import format_of
    from temperance.data.rows_file import parts

    read = replace(reading, labels=None, part=None)
    if reading.labels is not None:  # new rows need none
        new = f"new{format_of(val)}"
        return command_line("apply", out, new, "-o", "probs.npz", reading=read.for_new_rows())
    test = val if "test" in parts(val) else f"test{format_of(val)}"
    return command_line("evaluate", test, "-c", out, reading=read)


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
