"""`temperance study run`: task files -> a folder of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from temperance.cli.options import FILE, method_names_option, read_options, seed_option, split_names
from temperance.cli.output import Output, new_table, output_options
from temperance.data.read_options import ReadOptions
from temperance.errors import on_one_line

EXAMPLES = """\b
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


def _numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    try:
        return [int(word) for word in value.split(",") if word.strip()]
    except ValueError:
        raise click.BadParameter(
            f"must be whole numbers separated by commas, as 200,500; found {value!r}"
        ) from None


@click.command(epilog=EXAMPLES, short_help="Fit and evaluate; continues where it stopped.")
@click.argument("tasks", type=FILE, nargs=-1, required=True)
@click.option("-o", "--out", type=FILE, required=True, help="Folder of the study; created if missing.")
@method_names_option("all but pts-plain and ...-sgd")
@click.option(
    "--metrics",
    callback=split_names,
    help="Additional metrics: functions of (probs, labels) as package.module:name, separated by commas.",
)
@read_options("length_normalised")
@click.option("--sizes", callback=_numbers, default="200,500,1000,5000", help="Numbers of rows to fit to.")
@click.option("--draws", type=click.IntRange(min=1), default=50, help="Subsamples of each size.")
@seed_option
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes.  [default: all cores]")
@click.option("--scheduler", metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
@output_options("study run")
def run(
    tasks: tuple[Path, ...],
    out: Path,
    methods: list[str] | None,
    metrics: list[str] | None,
    options: ReadOptions,
    sizes: list[int],
    draws: int,
    seed: int,
    jobs: int | None,
    scheduler: str | None,
    output: Output,
) -> None:
    """Fit every method to subsamples of each task in TASKS, and evaluate it on the task's test rows.

    TASKS are task files, or folders of them. All methods are fitted to the same subsamples.
    """
    from temperance.core.blocks import number_of_threads
    from temperance.study import find_tasks, run_study

    with output.telling_warnings():
        files = find_tasks(tasks, length_normalised=options.length_normalised)
    began = time.monotonic()
    with _countdown(output) as progress:
        results = run_study(
            files, out, methods=methods, metrics=metrics, sizes=sizes, draws=draws, seed=seed,
            jobs=jobs or number_of_threads(), scheduler=scheduler, progress=progress,
        )  # fmt: skip
    output.say(f"Done in {_duration(time.monotonic() - began)}.")
    times = results.times()
    spent = [
        (
            method.Index,
            str(method.fits),
            str(method.failed),
            str(method.unconverged),
            f"{1000 * method.fit_seconds / method.fits:.1f}",
            f"{1000 * method.apply_seconds / method.fits:.1f}",
            f"{(method.fit_seconds + method.apply_seconds) / 60:.1f}",
        )
        for method in times.itertuples()
    ]
    output.show(
        f"{len(results.tasks)} task{'' if len(results.tasks) == 1 else 's'}, "
        f"N = {', '.join(map(str, results.sizes))}, seed {results.seed}",
        new_table("method", "fits", "failed", "not converged", "fit ms", "apply ms", "all, min", rows=spent),
    )
    failures = results.failures()[["task", "n", "draw", "method", "message"]].to_dict("records")
    if failures:
        first = failures[0]
        output.warn(
            f"{len(failures)} fits failed. The first: {first['method']} on {first['task']} with "
            f"{first['n']} rows: {first['message']}"
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
                words = f"{made} of {to_make} fits, {_duration(left)} left"
            bar(words, made / to_make if to_make else 1.0)
            if not output.is_live and (not made or now - told > _EVERY):
                told = now
                output.tell(words)

        yield progress


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
