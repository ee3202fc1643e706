"""`temperance compare`: which calibrator to use, how much it improves, and a report to share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temperance.cli import options as cli_options
from temperance.cli import rows
from temperance.cli.output import Output, output_options
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy, on_one_line

if TYPE_CHECKING:
    from temperance.comparison import Comparison
    from temperance.data import RowFile
    from temperance.report.sections import Source
    from temperance.report.snippets import Snippets

EXAMPLES = """\b
Examples:
  temperance compare val.npz test.npz
  temperance compare val.npz test.npz -m ts,hts,bayes --report report.html
  temperance compare val.npz                    uses cross-validation
  temperance compare task.npz                   a task file has both parts
  temperance compare visits.csv --group-column patient
  temperance compare val.npz test.npz --json | jq .recommended
"""


@click.command(epilog=EXAMPLES, short_help="Recommend a method, and write a report.")
@click.argument("val", type=cli_options.FILE)
@click.argument("test", type=cli_options.FILE, required=False)
@cli_options.method_names_option("ts,bayes,bayes-bias")
@cli_options.metric_names_option
@click.option("--report", type=cli_options.FILE, help="Write the whole comparison as one HTML page.")
@cli_options.bins_option
@click.option(
    "--folds", type=click.IntRange(min=2), default=5, help="Cross-validation folds; ignored if TEST is given."
)
@click.option(
    "--learning-curve", is_flag=True, help="Show in the report whether more labels would help. Takes longer."
)
@cli_options.confidence_option
@cli_options.seed_option
@cli_options.read_options(
    without=["part", "from_probs"],
    default_part="val",
    labels="A file with the labels of VAL, if they are not in it.",
)
@click.option(
    "--test-labels", type=cli_options.FILE, help="A file with the labels of TEST, if they are not in it."
)
@cli_options.force_option
@output_options("compare")
def compare(
    val: Path,
    test: Path | None,
    methods: list[str] | None,
    metrics: list[str] | None,
    report: Path | None,
    bins: int,
    folds: int,
    learning_curve: bool,
    confidence: float,
    seed: int,
    options: ReadOptions,
    test_labels: Path | None,
    force: bool,
    output: Output,
) -> None:
    """Fit methods to VAL, evaluate each on TEST, and recommend one.

    Without TEST, methods are evaluated by cross-validation on VAL. With -m all, all methods are tried, but
    only the default ones can be recommended.
    """
    from temperance import comparison
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile
    from temperance.data.rows_file import parts

    if report is not None:
        cli_options.check_output_file(report, val, test, options.labels, test_labels, overwrite=force)
    files = {"validation": rows.with_floor(RowFile.open(val, options), output)}
    names = files["validation"].class_names
    of_test = replace(options, default_part="test", labels=test_labels, default_classes=names)
    if test is not None or "test" in parts(val):
        try:
            opened = RowFile.open(test or val, of_test)
        except InputError as error:
            if error.remedy is not None and error.remedy.argument == "labels":
                error.remedy = Remedy("test_labels", error.remedy.values)
            raise
        files["test"] = _with_floor_of(files["validation"], opened, output)
    positions = files["validation"].positions
    for file in files.values():
        rows.refuse_calibrated(file)
        if not positions:
            rows.check_same_classes(file, names, "the validation file")
            names = names or file.class_names
    val_rows = _checked(files["validation"])
    test_rows: tuple[Any, Any] = _checked(files["test"]) if "test" in files else (None, None)
    with output.telling_warnings(), output.progress("Comparing") as progress:
        result = comparison.compare(
            *val_rows,
            *test_rows,
            methods,
            metrics,
            groups=files["validation"].groups,
            test_groups=files["test"].groups if "test" in files else None,
            by=files.get("test", files["validation"]).by,
            bins=bins,
            folds=folds,
            confidence=confidence,
            random_state=seed,
            positions=positions,
            learning_curve=learning_curve,
            progress=progress,
        )
    for tried in result.results.values():
        if isinstance(tried.calibrator, Calibrator):
            rows.record_rows(tried.calibrator, files["validation"], names)
    floor = next((file.floor for file in files.values() if file.raises), None)
    result = replace(result, floor=floor, class_names=None if positions else names)
    for file in files.values():
        rows.say_columns(output, file)
    tested = test or val if "test" in files else None
    from_probs = files["validation"].kind == "probs"
    names_of_files = [on_one_line(file.path.name) for file in files.values()]
    about = {
        "title": f"Calibration report: {' and '.join(dict.fromkeys(names_of_files))}",
        "sources": _sources(files) if report is not None or output.as_json else [],
        "snippets": _snippets(
            (result.recommended, result.verdict.alternative),
            *(val, options, tested, of_test),
            from_probs=from_probs,
        ),
    }
    columns = [rows.columns_for_json(file) for file in files.values()]
    show_comparison(output, result, report, about, force=force, columns=columns, by=options.by)


def _with_floor_of(val: RowFile, test: RowFile, output: Output) -> RowFile:
    """Return the test rows with the floor of the validation rows: 0 means the same in both files."""
    if test.kind != val.kind:
        wanted, found = rows.KIND_IN_WORDS[val.kind], rows.KIND_IN_WORDS[test.kind]
        raise test.stored.file_error(
            f"must hold {wanted}, as {val.path.name} does; found {found}. Save the same outputs of the "
            "classifier in both."
        )
    return rows.with_floor(test, output, val.floor, "in the validation rows")


def _checked(file: RowFile) -> tuple[Any, Any]:
    """Return logits and labels; errors name their file."""
    from temperance.inputs.containers import open_labelled

    assert file.labels is not None  # labels are required here
    logits = file.logits()
    with file.stored.naming_file():
        open_labelled(logits, file.labels, groups=file.groups).rows()
    return logits, file.labels  # column indices, whatever the names of the classes


def _snippets(
    methods: Sequence[str | None],
    val: Path,
    options: ReadOptions,
    test: Path | None,
    of_test: ReadOptions,
    *,
    from_probs: bool,
) -> Snippets:
    """Return the commands that fit each method and use it, with the files and options of the comparison.

    A method from outside cannot be fitted by a command.
    """
    from temperance.calibrators import CALIBRATORS
    from temperance.report.snippets import Snippets

    new = test or Path(f"new{val.suffix}")
    options, of_test = replace(options, by=None), of_test.for_new_rows()
    commands = {
        method: [
            "# Fit to the validation rows:",
            _command("fit", val, "-m", method, "-o", "cal.json", options=options),
            "# Calibrate the test rows, or others:" if test else f"# Calibrate the rows of a file, {new}:",
            _command("apply", "cal.json", new, "-o", "probs.npz", options=of_test),
        ]
        for method in methods
        if method in CALIBRATORS
    }
    takes = ["# They take the logarithms of the probabilities."] if from_probs else []
    export = [*takes, *(_command("export", "cal.json", model) for model in ("cal.onnx", "cal.pt2"))]
    return Snippets(commands, export if commands else (), from_probs)


def _command(*words: object, options: ReadOptions | None = None) -> str:
    read = [] if options is None else cli_options.as_words(options)
    return on_one_line(" ".join([shlex.join(["temperance", *map(str, words)]), *read]))


def _sources(files: dict[str, RowFile]) -> list[Source]:
    """Return the files with their digests, as the report names them."""
    from temperance.files import sha256
    from temperance.report.sections import Source

    return [
        Source(
            on_one_line(file.path.name),
            f"{role}, {file.key}" if file.key else role,
            file.shape[0],
            sha256(file.path),
        )
        for role, file in files.items()
    ]


def _next_step(comparison: Comparison, snippets: Snippets) -> str:
    """Return the command that fits the recommended method, or how to fit one that `fit` cannot save."""
    from temperance.calibrators import CALIBRATORS, UNCALIBRATED

    name = comparison.recommended
    if name == UNCALIBRATED:
        return ""
    if name in snippets.shell:
        return f"\nNext: {snippets.shell[name][1]}"
    if name in CALIBRATORS:
        return ""
    return (
        f"\nNext: fit {name} in Python; `temperance fit` saves only methods of this package.\n"
        f"For one of these, run the comparison without {name}."
    )


def show_comparison(
    output: Output, comparison: Comparison, report: Path | None, about: dict[str, Any], *, force: bool,
    columns: Sequence[dict[str, Any]] = (), by: str | None = None,
) -> None:  # fmt: skip
    """Print the answer, the table and the next step, and write the report; `about` describes its data."""
    from temperance.comparison.table import to_text

    output.answer(*comparison.verdict.answer)
    if not output.quiet:
        output.text("\n".join(["", *to_text(comparison), ""]))
    output.say("\n".join([comparison.heading, *comparison.verdict.notes, comparison.why]))
    by_group = comparison.results[comparison.recommended].scores.by_group
    if by_group is not None:
        output.say(by_group.words)
    output.say_by_group(by, by_group)
    warned: dict[str, list[str]] = {}
    for name, result in comparison.results.items():
        for warning in result.warnings:
            warned.setdefault(warning, []).append(name)
    for warning, names in warned.items():
        output.warn(f"{', '.join(names)}: {warning}")
    for name, reason in comparison.failures.items():
        output.warn(f"{name} failed: {reason}")
    if report is not None:
        from temperance.report.page import write_report

        write_report(comparison, report, overwrite=force, **about)
        output.say(f"\nReport: {on_one_line(report)}")
    if not output.quiet:
        output.text(_next_step(comparison, about["snippets"]))
    output.result(
        files=[vars(source) | read for source, read in zip(about["sources"], columns, strict=False)],
        report=None if report is None else str(report),
        by_group=None if by_group is None else {"by": by} | by_group.to_dict(),
        **comparison.to_dict(),
    )
