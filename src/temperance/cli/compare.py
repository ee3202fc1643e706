"""`temperance compare`: which calibrator to use, how much it improves, and a report to share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temperance.cli import inputs, matching
from temperance.cli.floor import raised_floor, source_of, with_given_floor, with_own_floor
from temperance.cli.output import Output, on_one_line, output_options
from temperance.cli.shipping import ComparedFiles

if TYPE_CHECKING:
    from temperance.comparison import Comparison
    from temperance.data import RowFile
    from temperance.report.sections import Source

EXAMPLES = """\b
Examples:
  temperance compare val.npz test.npz
  temperance compare val.npz test.npz -m ts,hts,bayes --report report.html
  temperance compare val.npz                    uses cross-validation
  temperance compare task.npz                   a task file has both parts
  temperance compare val.npz test.npz --json | jq .recommended
"""


@click.command(epilog=EXAMPLES, short_help="Recommend a method, and write a report.")
@click.argument("val", type=inputs.FILE)
@click.argument("test", type=inputs.FILE, required=False)
@inputs.method_names_option("ts,bayes,bayes-bias")
@click.option("--report", type=inputs.FILE, help="Write the whole comparison as one HTML page.")
@inputs.bins_option
@click.option("--folds", type=click.IntRange(min=2), default=5, help="Without a test file.")
@inputs.confidence_option
@inputs.seed_option
@inputs.kind_option
@click.option("--labels", type=inputs.FILE, help="A file with the labels of VAL, if they are not in it.")
@click.option(
    "--test-labels", type=inputs.FILE, help="A file with the labels of TEST, if they are not in it."
)
@inputs.table_options
@inputs.length_option
@inputs.force_option
@output_options("compare")
def compare(
    val: Path,
    test: Path | None,
    methods: list[str] | None,
    report: Path | None,
    bins: int,
    folds: int,
    confidence: float,
    seed: int,
    kind: str | None,
    labels: Path | None,
    test_labels: Path | None,
    table: inputs.TableOptions,
    length_normalised: bool,
    force: bool,
    output: Output,
) -> None:
    """Fit methods to VAL, evaluate each on TEST, and recommend one.

    Without TEST, methods are evaluated by cross-validation on VAL. With -m all, all methods are tried, but
    only the default ones can be recommended.
    """
    from temperance import comparison
    from temperance.data import parts
    from temperance.files import check_writable

    if report is not None:
        inputs.check_apart(report, val, test, labels, test_labels)
        check_writable(report, overwrite=force)
    options = inputs.RowOptions("val", None, kind, labels, table, length_normalised)
    files = {"validation": with_own_floor(options.open(val), output)}
    if test is not None or "test" in parts(val):
        opened = _open_test(test or val, replace(options, usual_part="test", labels=test_labels))
        matching.check_same_kind(opened, files["validation"])
        files["test"] = _with_floor_of(files["validation"], opened, output)
    settings: dict[str, Any] = {"bins": bins, "folds": folds, "confidence": confidence, "random_state": seed}
    names = _class_names(files)
    val_rows = _checked(files["validation"])
    test_rows: tuple[Any, Any] = _checked(files["test"]) if "test" in files else (None, None)
    with output.telling_warnings(), output.progress("Comparing") as progress:
        result = comparison.compare(*val_rows, *test_rows, methods, progress=progress, **settings)
    result = _with_source(result, files["validation"], raised_floor(files.values()), names)
    sources = sources_of(files) if report is not None or output.as_json else []
    for file in files.values():
        matching.say_columns(output, file)
    columns = [matching.columns_for_json(file) for file in files.values()]
    classes = click.get_current_context().meta.get(inputs.CLASSES_AS_GIVEN)
    tested = None if "test" not in files else test or val
    from_probs = files["validation"].kind == "probs"
    named = ComparedFiles(val, tested, options, test_labels, classes, from_probs)
    about = {"title": _title(files), "sources": sources, "snippets": named.shipping(result.recommended)}
    show_comparison(output, result, report, about, force=force, columns=columns)


def _with_source(
    comparison: Comparison, val: RowFile, floor: float | None, names: tuple[str, ...] | None
) -> Comparison:
    """Return the comparison with what only the files tell: kind of numbers, floor and class names."""
    from temperance.calibrators import Calibrator
    from temperance.calibrators.recording import record_source

    for result in comparison.results.values():
        if isinstance(result.calibrator, Calibrator):
            model = result.calibrator.model_
            result.calibrator.model_ = record_source(model, source_of(val), names)
    return replace(comparison, floor=floor, class_names=names)


def _title(files: dict[str, RowFile]) -> str:
    names = dict.fromkeys(on_one_line(file.path.name) for file in files.values())
    return f"Calibration report: {' and '.join(names)}"


def _open_test(path: Path, row_options: inputs.RowOptions) -> RowFile:
    """Open the test rows, whose labels have a separate option."""
    from temperance.errors import InputError, Remedy

    try:
        return row_options.open(path)
    except InputError as error:
        if error.remedy == Remedy("labels", ("FILE",)):
            error.remedy = Remedy("test_labels", ("FILE",))
        raise


def _with_floor_of(val: RowFile, test: RowFile, output: Output) -> RowFile:
    """Return the test rows with the floor of the validation rows: 0 means the same in both."""
    if val.floor is None:
        return with_own_floor(test, output)
    return with_given_floor(test, val.floor, output, "in the validation rows")


def _class_names(files: dict[str, RowFile]) -> tuple[str, ...] | None:
    """Return the class names, which must be the same in all files. No file may be calibrated already."""
    names = None
    for file in files.values():
        matching.refuse_calibrated(file)
        matching.check_same_classes(file, names, "the validation file")
        names = names or file.class_names
    return names


def _checked(file: RowFile) -> tuple[Any, Any]:
    """Return logits and labels; errors name their file."""
    from temperance.comparison import LabelledRows

    assert file.labels is not None  # labels are required here
    logits = file.logits()
    with file.stored.naming_file():
        LabelledRows.open(logits, file.labels).has_masks()
    return logits, file.labels  # column indices, whatever the names of the classes


def sources_of(files: dict[str, RowFile]) -> list[Source]:
    """Name the files and their digests."""
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


def show_comparison(
    output: Output, comparison: Comparison, report: Path | None, about: dict[str, Any], *, force: bool,
    columns: Sequence[dict[str, Any]] = (),
) -> None:  # fmt: skip
    """Print the table and the verdict, and write the report; `about` describes its data."""
    from temperance.cli.tables import comparison_table

    output.show(*comparison_table(comparison))
    if comparison.decision_changes:
        output.say("\n".join(comparison.decision_changes) + "\n")
    output.say(f"Recommended: {comparison.recommended}. {comparison.reason}\n")
    output.say("\n".join(comparison.verdict.sentences))
    for name, result in comparison.results.items():
        for warning in result.warnings:
            output.warn(f"{name}: {warning}")
    for name, reason in comparison.failures.items():
        output.warn(f"{name} failed: {reason}")
    if report is not None:
        from temperance.comparison import learning_curve
        from temperance.report.page import write_report

        with output.progress("Writing the report") as progress:
            seed = comparison.settings["random_state"]
            curve = learning_curve(comparison, random_state=seed, progress=progress)
            write_report(comparison, report, curve, overwrite=force, **about)
        output.say(f"\nReport: {on_one_line(report)}")
    output.result(
        files=[vars(source) | read for source, read in zip(about["sources"], columns, strict=False)],
        report=None if report is None else str(report),
        **comparison.to_dict(),
    )
