"""`temperance study figure`: a folder of results -> a figure of the study or of a task, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from temperance.cli.options import FILE, force_option, method_names_option
from temperance.cli.output import Output, output_options
from temperance.errors import InputError, on_one_line

EXAMPLES = """\b
Examples:
  temperance study figure study avg_NLL
  temperance study figure study avg_ECE -o avg_ECE.pdf --force
  temperance study figure study h_HTS --task cifar10__resnet50 -o h_HTS.svg
  temperance study figure study cd_NLL --n 1000 --over datasets
  temperance study figure study reliability -m ts,bayes --n 200

\b
Of the whole study:
  avg_ECE    ECE of each method and size relative to TS, mean over tasks
      avg_NLL    the same for the NLL
  cd_ECE     mean ranks by ECE, with Nemenyi's critical difference
      cd_NLL     the same for the NLL
Of one task:
  class_LTS  temperature of LTS, and the best one, by true class
  h_HTS      temperature of HTS, and the best one, by entropy
  h_PTS      temperature of PTS, and the best one, by entropy
  PTSvHTS    temperature of PTS against that of HTS
  reliability  accuracy by confidence, before and after calibration
"""

NAMES = (
    "class_LTS", "h_HTS", "h_PTS", "PTSvHTS", "reliability", "avg_ECE", "avg_NLL", "cd_ECE", "cd_NLL",
)  # fmt: skip


@click.command(epilog=EXAMPLES, short_help="Draw a figure of the study or of a task.")
@click.argument("folder", metavar="DIR", type=FILE)
@click.argument("name", metavar="NAME", type=click.Choice(NAMES))
@click.option("--task", metavar="TASK", help="Task of the figure.  [default: the paper's, or the first]")
@method_names_option("all; reliability: ts,bayes")
@click.option(
    "--n", type=int, help="Rows fitted to, for cd_... and reliability.  [default: fewest; all of the task]"
)
@click.option("--over", type=click.Choice(["tasks", "datasets"]), help="What mean ranks are averaged over.")
@click.option("-o", "--out", type=FILE, help="A .png, .svg or .pdf file.  [default: NAME.png in DIR]")
@force_option
@output_options("study figure", has_json=False)
def figure(folder: Path, name: str, out: Path | None, force: bool, output: Output, **choices: Any) -> None:
    """Draw figure NAME of the study in DIR."""
    from temperance.study import Results
    from temperance.study.figures import ON_A_TASK, OPTIONS, figure_task, save_figure

    results = Results(folder)
    given = {option: value for option, value in choices.items() if value is not None}
    for option in given:
        if name not in OPTIONS[option]:
            raise InputError(
                f"--{option} is for the figures {', '.join(OPTIONS[option])}; found {name}. Leave it out."
            )
    path = save_figure(results, name, out or folder / f"{name}.png", overwrite=force, **given)
    if "task" not in given and name in ON_A_TASK:
        output.tell(f"the task is {on_one_line(figure_task(results).name)}; --task chooses another")
    output.say(f"Saved to {on_one_line(path)}")
