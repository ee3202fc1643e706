"""`temperance study figure`: a folder of results -> one of the paper's figures, as a file."""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli.inputs import FILE, force_option
from temperance.cli.output import Output, on_one_line, quiet_option

EXAMPLES = """\b
Examples:
  temperance study figure study avg_NLL
  temperance study figure study avg_ECE -o avg_ECE.pdf --force
  temperance study figure study h_HTS --task cifar10__resnet50 -o h_HTS.svg

\b
Of the whole study:
  avg_ECE    ECE of each method and size relative to TS, mean over tasks
  avg_NLL    the same of the NLL
Of one task:
  class_LTS  temperature of LTS, and the best one, by true class
  h_HTS      temperature of HTS, and the best one, by entropy
  h_PTS      temperature of PTS, and the best one, by entropy
  PTSvHTS    temperature of PTS against that of HTS
"""

NAMES = ("class_LTS", "h_HTS", "h_PTS", "PTSvHTS", "avg_ECE", "avg_NLL")


@click.command(epilog=EXAMPLES, short_help="Draw one of the paper's figures.")
@click.argument("folder", metavar="DIR", type=FILE)
@click.argument("name", metavar="NAME", type=click.Choice(NAMES))
@click.option(
    "--task", metavar="TASK", help="For a figure of one task.  [default: the paper's, or the first]"
)
@click.option("-o", "--out", type=FILE, help="A .png, .svg or .pdf file.  [default: NAME.png in DIR]")
@force_option
@quiet_option("study figure")
def figure(folder: Path, name: str, task: str | None, out: Path | None, force: bool, output: Output) -> None:
    """Draw figure NAME of the study in DIR."""
    from temperance.study import Results
    from temperance.study.figures import ON_A_TASK, figure_task, save_figure
    from temperance.validation import InputError

    results = Results(folder)
    if task is not None and name not in ON_A_TASK:
        raise InputError(
            f"--task is for figures of one task, {', '.join(ON_A_TASK)}; found {name}. Leave it out."
        )
    path = save_figure(results, name, out or folder / f"{name}.png", task=task, overwrite=force)
    if task is None and name in ON_A_TASK:
        output.tell(f"the task is {on_one_line(figure_task(results).name)}; --task chooses another")
    output.say(f"Saved to {on_one_line(path)}")
