"""`temperance compare`: which calibrator to use, how much it improves, and a report to share.

`temperance demo` does so on the built-in task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temperance.cli import options, rows
from temperance.cli.options import command_line
from temperance.cli.output import Output, tell_user
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy, on_one_line

if TYPE_CHECKING:
    from temperance.comparison import Comparison
    from temperance.data import RowFile
    from temperance.report.page import Source
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

DEMO_EXAMPLES = """\b
Examples:
  temperance demo
  temperance demo --report demo.html --force
"""


@click.command(cls=options.Command, epilog=EXAMPLES, short_help="Recommend a method, and write a report.")
@click.argument("val", type=options.INPUT)
@click.argument("test", type=options.INPUT, required=False)
@options.methods("ts,bayes,bayes-bias")
@options.metrics
@click.option("--report", type=options.OUTPUT, help="Write the whole comparison as one HTML page.")
@options.bins
@click.option(
    "--folds", type=click.IntRange(min=2), default=5, help="Cross-validation folds; ignored if TEST is given."
)
@click.option(
    "--learning-curve", is_flag=True, help="Show in the report whether more labels would help. Takes longer."
)
@options.confidence
@options.seed
@options.read_options(
    without=["part", "from_probs"], labels="A file with the labels of VAL, if they are not in it."
)
@click.option(
    "--test-labels", type=options.INPUT, help="A file with the labels of TEST, if they are not in it."
)
@options.force
@options.output_options
def compare(
    val: Path,
    test: Path | None,
    report: Path | None,
    seed: int,
    reading: ReadOptions,
    test_labels: Path | None,
    force: bool,
    output: Output,
    **settings: Any,
) -> None:
    """Fit methods to VAL, evaluate each on TEST, and recommend one.

    Without TEST, methods are evaluated by cross-validation on VAL. With -m all, all methods are tried, but
    only the default ones can be recommended.
    """
    from temperance import comparison
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile
    from temperance.data.rows_file import parts
    from temperance.files import sha256
    from temperance.report.page import Source

    fitted = rows.with_floor(RowFile.open(val, replace(reading, default_part="val")), output)
    files, names = {"validation": fitted}, fitted.class_names
    of_test = replace(
        reading, default_part="test", labels=test_labels, default_classes=names, default_unit=fitted.unit
    )
    if test is not None or "test" in parts(val):
        files["test"] = _open_test(test or val, of_test, fitted, output)
    for file in files.values():
        rows.refuse_calibrated(file)
        if not fitted.positions:
            rows.check_same_classes(file, names, "the validation file")
            names = names or file.class_names
    judged, classes = files.get("test", fitted), None if fitted.positions else names
    arrays = [array for file in files.values() for array in _checked(file, classes)]
    with output.progress("Comparing") as progress:
        result = comparison.compare(
            *arrays,
            groups=fitted.groups,
            test_groups=None if judged is fitted else judged.groups,
            by=judged.by,
            classes=classes,
            positive=fitted.named(fitted.positive),
            random_state=seed,
            positions=fitted.positions,
            from_probs=fitted.from_probs,
            progress=progress,
            **settings,
        )
    for tried in result.results.values():
        if isinstance(tried.calibrator, Calibrator):
            rows.record_rows(tried.calibrator, fitted, names)
    floor = next((file.floor for file in files.values() if file.raises), None)
    result = replace(result, floor=floor)
    sources = []
    for role, file in files.items():
        rows.say_columns(output, file)
        if report is not None or output.as_json:
            role = f"{role}, {file.key}" if file.key else role
            sources.append(Source(on_one_line(file.path.name), role, file.shape[0], sha256(file.path)))
    methods = [result.recommended, result.verdict.alternative]
    file_names = dict.fromkeys(on_one_line(file.path.name) for file in files.values())
    show_comparison(
        output,
        result,
        report,
        force=force,
        title=f"Calibration report: {' and '.join(file_names)}",
        snippets=_snippets(methods, fitted, reading, None if judged is fitted else test or val, of_test),
        sources=sources,
        columns=[rows.columns_for_json(file) for file in files.values()],
        by=reading.by,
    )


def _open_test(path: Path, reading: ReadOptions, val: RowFile, output: Output) -> RowFile:
    """Open the test rows, with the floor of the validation rows: 0 means the same in both files."""
    from temperance.data import RowFile

    try:
        test = RowFile.open(path, reading)
    except InputError as error:
        if error.remedy is not None and error.remedy.argument == "labels":
            error.remedy = Remedy("test_labels", error.remedy.values)
        raise
    if test.kind != val.kind:
        wanted, found = rows.KIND_IN_WORDS[val.kind], rows.KIND_IN_WORDS[test.kind]
        raise test.stored.file_error(
            f"must hold {wanted}, as {val.path.name} does; found {found}. Save the same outputs of the "
            "classifier in both."
        )
    return rows.with_floor(test, output, val.floor, "in the validation rows")


def _checked(file: RowFile, classes: Sequence[str] | None) -> tuple[Any, Any]:
    """Return logits and labels, names if classes have names; errors name their file."""
    import numpy as np

    from temperance.inputs.containers import open_labelled

    assert file.labels is not None  # labels are required here
    logits = file.logits()
    with file.stored.naming_file():
        open_labelled(logits, file.labels, groups=file.groups).checked()
    return logits, file.labels if classes is None else np.array(classes)[file.labels]


def _snippets(
    methods: Sequence[str | None],
    val: RowFile,
    reading: ReadOptions,
    test: Path | None,
    of_test: ReadOptions,
) -> Snippets:
    """Return the commands that fit each method and use it, with the files and options of the comparison.

    A method from outside cannot be fitted by a command.
    """
    from temperance.calibrators import CALIBRATORS
    from temperance.report.snippets import Snippets

    new = test or Path(f"new{val.path.suffix}")
    reading, of_test = replace(reading, by=None), of_test.for_new_rows()
    commands = {
        method: [
            "# Fit to the validation rows:",
            command_line("fit", val.path, "-m", method, "-o", "cal.json", reading=reading),
            "# Calibrate the test rows, or others:" if test else f"# Calibrate the rows of a file, {new}:",
            command_line("apply", "cal.json", new, "-o", "probs.npz", reading=of_test),
        ]
        for method in methods
        if method in CALIBRATORS
    }
    export = [command_line("export", "cal.json", model) for model in ("cal.onnx", "cal.pt2")]
    return Snippets(commands, export if commands else ())


def show_comparison(
    output: Output,
    comparison: Comparison,
    report: Path | None,
    *,
    force: bool,
    title: str,
    snippets: Snippets,
    sources: Sequence[Source] = (),
    columns: Sequence[dict[str, Any]] = (),
    by: str | None = None,
) -> None:
    """Print the answer, the table and the next step, and write the report."""
    from temperance.calibrators import CALIBRATORS, UNCALIBRATED
    from temperance.comparison.table import to_text
    from temperance.report.page import write_report

    output.show("\n".join(map(on_one_line, comparison.verdict.answer)), style="bold")
    output.say("\n".join(["", *to_text(comparison), ""]), wrap=False)
    output.say("\n".join([comparison.heading, *comparison.verdict.notes, comparison.why]))
    name = comparison.recommended
    by_group = comparison.results[name].scores.by_group
    if by_group is not None:
        output.say(by_group.words)
    output.say_by_group(by, by_group)
    warned: dict[str, list[str]] = {}
    for method, result in comparison.results.items():
        for warning in result.warnings:
            warned.setdefault(warning, []).append(method)
    for warning, methods in warned.items():
        tell_user("warning", f"{', '.join(methods)}: {warning}")
    for method, reason in comparison.failures.items():
        tell_user("warning", f"{method} failed: {reason}")
    if report is not None:
        write_report(comparison, report, overwrite=force, title=title, sources=sources, snippets=snippets)
        output.say(f"\nReport: {on_one_line(report)}")
    if name in snippets.shell:
        output.say(f"\nNext: {snippets.shell[name][1]}", wrap=False)
    elif name not in (UNCALIBRATED, *CALIBRATORS):
        output.say(
            f"\nNext: fit {name} in Python; `temperance fit` saves only methods of this package.\n"
            f"For one of these, run the comparison without {name}.",
            wrap=False,
        )
    output.result(
        files=[vars(source) | read for source, read in zip(sources, columns, strict=False)],
        report=None if report is None else str(report),
        by_group=None if by_group is None else {"by": by} | by_group.to_dict(),
        **comparison.to_dict(),
    )


@click.command(
    cls=options.Command, epilog=DEMO_EXAMPLES, short_help="Run a comparison on a built-in network."
)
@click.option(
    "--report",
    type=options.OUTPUT,
    help="Where to write the report.  [default: temperance-demo.html, or the next free name]",
)
@options.seed
@options.force
@options.output_options
def demo(report: Path | None, seed: int, force: bool, output: Output) -> None:
    """Compare the usual methods on a built-in network and write a report.

    The network was trained on CIFAR-10 by this project. It is overconfident, as networks usually are.
    """
    from temperance import comparison
    from temperance.data import demo_task

    path, number = report or Path("temperance-demo.html"), 2
    while report is None and path.exists():  # the demonstration is often run twice
        path, number = Path(f"temperance-demo-{number}.html"), number + 1
    task = demo_task()
    output.say(
        "A small convolutional network, trained on CIFAR-10 for this demonstration: each method is fitted to "
        f"{len(task.val_labels)} validation images and evaluated on {len(task.test_labels)} test images.\n"
        "With your own files: temperance compare val.npz test.npz --report page.html\n"
    )
    with output.progress("Comparing") as progress:
        result = comparison.compare(
            task.val_logits, task.val_labels, task.test_logits, task.test_labels,
            classes=task.class_names, random_state=seed, progress=progress,
        )  # fmt: skip
    title = "Calibration report: a small convolutional network on CIFAR-10"
    show_comparison(output, result, path, force=force, title=title, snippets=demo_snippets())


def demo_snippets() -> Snippets:
    """Return how to get the rows of the built-in task."""
    from temperance.report.snippets import Snippets

    load = "val_logits, val_labels = task.val_logits, task.val_labels"
    return Snippets(setup=["from temperance.data import demo_task", "", "task = demo_task()", load])
