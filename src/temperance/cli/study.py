"""`temperance study`: the paper's study on a folder of tasks: run it, then make tables and figures of it.

run      task files -> a folder of results
table    a folder of results -> a table of scores, ranks or improvements
figure   a folder of results -> a figure of the study or of a task, as a file
export   a folder of results -> one CSV file
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from temperance.cli import options
from temperance.cli.output import Output, count, new_table, tell_user
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, on_one_line

EXAMPLES = """\b
Examples:
  temperance study run tasks/ --out study
  temperance study table study --metric nll --n 200
  temperance study figure study avg_NLL
  temperance study export study -o results.csv.gz
"""


@click.group(epilog=EXAMPLES, short_help="All methods, few rows and many, on a folder of tasks.")
def study() -> None:
    """Evaluate every method on a folder of tasks, fitted to few rows and to many."""


RUN_EXAMPLES = """\b
Examples:
  temperance study run tasks/ --out study
  temperance study run a__resnet.npz b__vgg.npz --out study --sizes 50,200
  temperance study run tasks/ --out study --scheduler tcp://10.0.0.1:8786

\b
A task file is an .npz (.safetensors, .pt, .h5) with logits_val, labels_val,
logits_test and labels_test, named DATASET__MODEL. Samples of
lm-evaluation-harness, samples_*.jsonl, are tasks too: questions 1, 3, 5 and
so on are used to fit, the others to test. Stop the study whenever you like:
the same command continues where it stopped.
"""

_EVERY = 60.0  # seconds between progress lines without a terminal


@study.command(
    cls=options.Command, epilog=RUN_EXAMPLES, short_help="Fit and evaluate; continues where it stopped."
)
@click.argument("tasks", type=options.INPUT, nargs=-1, required=True)
@click.option(
    "-o", "--out", type=options.FOLDER, required=True, help="Folder of the study; created if missing."
)
@options.methods("all but pts-plain and ...-sgd")
@options.metrics
@options.read_options("length_normalised", "renormalise")
@click.option(
    "--sizes",
    callback=options.separated(int, "whole numbers"),
    default="200,500,1000,5000",
    help="Numbers of rows to fit to.",
)
@click.option("--draws", type=click.IntRange(min=1), default=50, help="Subsamples of each size.")
@options.seed
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes.  [default: all cores]")
@click.option("--scheduler", metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
@options.output_options
def run(
    tasks: tuple[Path, ...],
    out: Path,
    reading: ReadOptions,
    jobs: int | None,
    output: Output,
    **settings: Any,
) -> None:
    """Fit every method to subsamples of each task in TASKS, and evaluate it on the task's test rows.

    TASKS are task files, or folders of them. All methods are fitted to the same subsamples.
    """
    from temperance.core.blocks import number_of_threads
    from temperance.study import find_tasks, run_study

    with output.progress("Reading tasks"):
        files = find_tasks(tasks, **reading.given())
    began = time.monotonic()
    with _countdown(output) as progress:
        results = run_study(files, out, jobs=jobs or number_of_threads(), progress=progress, **settings)
    output.say(f"Done in {timedelta(seconds=round(time.monotonic() - began))}.")
    times = results.times()
    table = new_table("method", "fits", "failed", "not converged", "fit ms", "apply ms", "all, min")
    for method in times.itertuples():
        table.add_row(
            method.Index,
            str(method.fits),
            str(method.failed),
            str(method.unconverged),
            f"{1000 * method.fit_seconds / method.fits:.1f}",
            f"{1000 * method.apply_seconds / method.fits:.1f}",
            f"{(method.fit_seconds + method.apply_seconds) / 60:.1f}",
        )
    sizes = ", ".join(map(str, results.sizes))
    output.show(f"{count(len(results.tasks), 'task')}, N = {sizes}, seed {results.seed}")
    output.show(table)
    failures = results.failures()[["task", "n", "draw", "method", "message"]].to_dict("records")
    if failures:
        first = failures[0]
        tell_user(
            "warning",
            f"{len(failures)} fits failed. The first: {first['method']} on {first['task']} with "
            f"{first['n']} rows: {first['message']}",
        )
    output.say(
        f"Next: temperance study table {on_one_line(results.folder)} --metric nll --n {results.sizes[0]}"
    )
    output.result(
        folder=str(results.folder),
        tasks=[task.name for task in results.tasks],
        sizes=results.sizes,
        seed=results.seed,
        methods=times.reset_index(names="method").to_dict("records"),
        failures=failures,
    )


@contextmanager
def _countdown(output: Output) -> Iterator[Callable[[int, int], None]]:
    """Show progress and the time left: a bar on a terminal, otherwise a line each minute."""
    told = began = time.monotonic()

    with output.progress("Studying") as bar:

        def progress(made: int, to_make: int) -> None:
            nonlocal told
            now, words = time.monotonic(), f"{to_make} fits to do"
            if made:
                left = (now - began) * (to_make - made) / made
                words = f"{made} of {to_make} fits, {timedelta(seconds=round(left))} left"
            bar(words, made / to_make if to_make else 1.0)
            if not output.is_live and (not made or now - told > _EVERY):
                told = now
                output.tell(words)

        yield progress


TABLE_EXAMPLES = """\b
Examples:
  temperance study table study --metric nll --n 200
  temperance study table study --metric ece --n 1000 --errors --paper
  temperance study table study -m ts,hts,bayes --format latex > table.tex
  temperance study table study --kind ranks --over datasets
  temperance study table study --kind improvements --to none --format csv

\b
  scores        one row per task; averages are relative to the
                uncalibrated classifier
  ranks         mean ranks, Friedman test, Nemenyi's critical difference
  improvements  geometric mean of scores relative to --to, with intervals

\b
md and latex show an ECE in percent, csv has it as a fraction, with all
digits. latex needs \\usepackage{booktabs,graphicx}.
"""

# The kind of table that an option is for.
_KINDS = {"errors": "scores", "paper": "scores", "over": "ranks", "to": "improvements"}


@study.command(epilog=TABLE_EXAMPLES, short_help="Scores, ranks, improvements.")
@click.argument("folder", metavar="DIR", type=options.INPUT)
@click.option(
    "--kind",
    type=click.Choice(["scores", "ranks", "improvements"]),
    default="scores",
    help="Content of the table, see below.",
)
@click.option(
    "--metric",
    default="nll",
    help="nll, ece (50 bins, as in the paper), ece15, brier, or one of your own.",
)
@click.option(
    "--better",
    type=click.Choice(["lower", "higher"]),
    help="Which scores are better, for a metric of your own.",
)
@click.option("--n", "size", type=int, help="Rows fitted to.  [default: the fewest of the study]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "latex", "csv"]),
    default="md",
    help="Markdown, LaTeX, or CSV for programs.",
)
@click.option("--errors", is_flag=True, help="Add standard errors of the means over draws.")
@click.option("--paper", is_flag=True, help="Add the paper's results to the tasks that it has.")
@click.option(
    "--over",
    type=click.Choice(["tasks", "datasets"]),
    help="What mean ranks are taken over.  [default: tasks]",
)
@click.option("--to", metavar="METHOD", help="Reference method of improvements.  [default: ts]")
@options.methods("all with results")
def table(
    folder: Path,
    kind: str,
    metric: str,
    better: str | None,
    size: int | None,
    form: str,
    methods: list[str] | None,
    **choices: Any,
) -> None:
    """Print a table of the study in DIR, finished or not."""
    from temperance.study import Results
    from temperance.study.comparisons import mean_improvements, rank_methods
    from temperance.study.tables import WRITERS, make_table

    given = {name: value for name, value in choices.items() if value}
    for name in given:
        if kind != _KINDS[name]:
            raise InputError(f"--{name} is for --kind {_KINDS[name]}; found --kind {kind}. Leave it out.")
    makers: dict[str, Callable[..., Any]] = {
        "scores": make_table,
        "ranks": rank_methods,
        "improvements": mean_improvements,
    }
    made = makers[kind](Results(folder), metric, size, methods=methods, better=better, **given)
    click.echo(WRITERS[form](made), nl=False)


FIGURE_EXAMPLES = """\b
Examples:
  temperance study figure study avg_NLL
  temperance study figure study avg_ECE -o avg_ECE.pdf --force
  temperance study figure study h_HTS --task cifar10__resnet50 -o h_HTS.svg
  temperance study figure study cd_NLL --n 1000 --over datasets

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
  PTSvHTS    temperature of PTS against temperature of HTS
"""


@study.command(
    cls=options.Command, epilog=FIGURE_EXAMPLES, short_help="Draw a figure of the study or of a task."
)
@click.argument("folder", metavar="DIR", type=options.INPUT)
@click.argument("name")
@click.option("--task", metavar="TASK", help="Task of the figure.  [default: the paper's, or the first]")
@options.methods("all")
@click.option("--n", type=int, help="Rows fitted to, for cd_...  [default: the fewest of the study]")
@click.option("--over", type=click.Choice(["tasks", "datasets"]), help="What mean ranks are averaged over.")
@click.option(
    "-o", "--out", type=options.OUTPUT, help="A .png, .svg or .pdf file.  [default: NAME.png in DIR]"
)
@options.force
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def figure(folder: Path, name: str, out: Path | None, force: bool, output: Output, **choices: Any) -> None:
    """Draw figure NAME of the study in DIR."""
    from temperance.study import Results
    from temperance.study.figures import ON_A_TASK, figure_task, save_figure

    results = Results(folder)
    path = save_figure(results, name, out or folder / f"{name}.png", overwrite=force, **choices)
    if choices["task"] is None and name in ON_A_TASK:
        output.tell(f"the task is {on_one_line(figure_task(results).name)}; --task chooses another")
    output.say(f"Saved to {on_one_line(path)}")


EXPORT_EXAMPLES = """\b
Examples:
  temperance study export study -o results.csv
  temperance study export study -o results.csv.gz --force
"""


@study.command(cls=options.Command, epilog=EXPORT_EXAMPLES, short_help="All results as one CSV file.")
@click.argument("folder", metavar="DIR", type=options.INPUT)
@click.option("-o", "--out", type=options.OUTPUT, required=True, help="A .csv file, or .csv.gz.")
@options.force
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def export(folder: Path, out: Path, force: bool, output: Output) -> None:
    """Write all results of the study in DIR, one line per fit."""
    from temperance.study import Results

    results = Results(folder)
    results.export(out, overwrite=force)
    output.say(f"{len(results.scores)} results saved to {on_one_line(out)}")
