"""`temperance demo`: every step, from logits to report, on the built-in task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from temperance.cli.compare import show_comparison
from temperance.cli.options import FILE, check_output_file, force_option, seed_option
from temperance.cli.output import Output, output_options

EXAMPLES = """\b
Examples:
  temperance demo
  temperance demo --report demo.html --force
"""


@click.command(epilog=EXAMPLES, short_help="Run a comparison on a built-in network.")
@click.option(
    "--report",
    type=FILE,
    help="Where to write the report.  [default: temperance-demo.html, or the next free name]",
)
@seed_option
@force_option
@output_options("demo")
def demo(report: Path | None, seed: int, force: bool, output: Output) -> None:
    """Compare the usual methods on a built-in network and write a report.

    The network was trained on CIFAR-10 by this project. It is overconfident, as networks usually are.
    """
    from temperance import comparison
    from temperance.data import demo_task

    path = report if report is not None else _free_name()
    check_output_file(path, overwrite=force)
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
    show_comparison(output, result, path, _about_the_task(), force=force)


def _about_the_task() -> dict[str, Any]:
    """Return what the report says about the built-in task, and how to fit to it."""
    from temperance.report.snippets import Snippets

    setup = (
        "from temperance.data import demo_task",
        "",
        "task = demo_task()",
        "val_logits, val_labels = task.val_logits, task.val_labels",
    )
    title = "Calibration report: a small convolutional network on CIFAR-10"
    return {"title": title, "sources": [], "snippets": Snippets(setup=setup)}


def _free_name() -> Path:
    """Return an unused file name: the demonstration is often run twice."""
    path, number = Path("temperance-demo.html"), 2
    while path.exists():
        path, number = Path(f"temperance-demo-{number}.html"), number + 1
    return path
