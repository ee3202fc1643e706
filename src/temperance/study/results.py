"""The results of a study as data frames: by task, method, number of rows and metric; means over draws."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from temperance.calibrators import UNCALIBRATED
from temperance.errors import InputError, guess
from temperance.files import check_writable, write_atomically
from temperance.inputs.validation import check_choice
from temperance.study.protocol import METHODS, FitKey, Score, in_order
from temperance.study.store import ResultStore
from temperance.study.tasks import TaskFile

METRICS: dict[str, str] = {"nll": "nll", "ece": "ece50", "ece15": "ece15", "brier": "brier"}
"""Names of metrics on the command line, and their columns in the store; `ece` has the paper's 50 bins."""

Better = Literal["lower", "higher"]

MIN_TASKS = 3  # a data set with fewer tasks has no group of its own


class Results:
    """The results in the folder of a study, finished or not: tasks and sizes that have results.

    A task with fewer rows than a size counts there with all its rows.

    Parameters
    ----------
    folder : path
        The folder passed to `run_study`.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> results = example_results()
    >>> results.methods, results.sizes, len(results.scores)
    (['ts'], [200], 4)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        store = ResultStore(folder)
        self.seed = store.seed
        self.scores: pd.DataFrame = store.scores()
        """One line per fit: its key, its scores, how it ended, and the user's own metrics."""
        done = set(zip(self.scores["task"], self.scores["n"], strict=True))
        names = {name for name, _ in done}
        self.tasks: list[TaskFile] = [task for task in store.tasks() if task.name in names]
        self.sizes: list[int] = [
            n for n in store.sizes() if any((task.name, min(n, task.rows)) in done for task in self.tasks)
        ]

    @cached_property
    def methods(self) -> list[str]:
        """Methods with results, in the order of tables; the uncalibrated classifier is not among them."""
        return in_order(sorted({*self.scores["method"]} - {UNCALIBRATED}))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics with results: built-in ones, and the user's own."""
        known = (*FitKey._fields, *Score.columns())
        return (*METRICS, *(name for name in self.scores if name not in known))

    def datasets(self) -> dict[str, list[TaskFile]]:
        """Return the tasks of each data set, both by name."""
        groups: dict[str, list[TaskFile]] = {}
        for task in sorted(self.tasks, key=lambda task: (task.dataset, task.model)):
            groups.setdefault(task.dataset, []).append(task)
        return groups

    def large_datasets(self) -> dict[str, list[TaskFile]]:
        """Return the tasks of each data set with three or more, and of `other` ones; `all` if none has three.

        A single other one has its own name.
        """
        datasets = self.datasets()
        large = {name: tasks for name, tasks in datasets.items() if len(tasks) >= MIN_TASKS}
        small = [name for name in datasets if name not in large]
        title = small[0] if len(small) == 1 else "other" if large else "all"
        return large | ({title: [task for name in small for task in datasets[name]]} if small else {})

    def draws(self, metric: str, n: int) -> pd.Series:
        """Return the scores of the fits that succeeded, by task, method and number of the draw."""
        check_choice("metric", metric, self.metrics)
        if n not in self.sizes:
            raise InputError(
                f"the number of rows must be one of {', '.join(map(str, self.sizes))}; found {n}."
            )
        rows = {task.name: min(n, task.rows) for task in self.tasks}
        wanted = self.scores["task"].map(rows).where(self.scores["method"] != UNCALIBRATED, 0)
        fits = self.scores[self.scores["n"] == wanted]
        return fits.set_index(["task", "method", "draw"])[METRICS.get(metric, metric)].dropna().sort_index()

    def summary(self, metric: str, n: int) -> pd.DataFrame:
        """Return the mean over draws, its standard error and the number of draws, by task and method.

        The error is nan for a single draw, or if a draw is infinite.
        """
        groups = self.draws(metric, n).groupby(level=["task", "method"])
        count = groups.size()
        with np.errstate(invalid="ignore"):  # an infinite draw
            return pd.DataFrame(
                {"mean": groups.mean(), "error": groups.std() / np.sqrt(count), "draws": count}
            )

    def means(self, metric: str, n: int) -> pd.DataFrame:
        """Return the means over draws, with one row per task and one column per method; nan if none."""
        means = self.summary(metric, n)["mean"].unstack("method")
        return means.reindex([task.name for task in self.tasks])

    def ratios(self, metric: str, n: int, to: str = "ts") -> pd.DataFrame:
        """Return the means of methods divided by the means of one method, for the tasks with such ratios."""
        means = self.means(metric, n)
        its = means.get(to, pd.Series(np.nan, means.index))
        has_ratio = (its > 0) & (its < np.inf)
        return means[has_ratio].div(its[has_ratio], axis="index")

    def times(self) -> pd.DataFrame:
        """Return the number of fits, how they ended, and their times in seconds, per method."""
        failed = self.scores["nll"].isna()
        frame = self.scores.assign(failed=failed, unconverged=~(self.scores["converged"] | failed))
        groups = frame.groupby("method")
        times = groups[["failed", "unconverged", "fit_seconds", "apply_seconds"]].sum()
        times.insert(0, "fits", groups.size())
        return times.reindex(self.methods)

    def failures(self) -> pd.DataFrame:
        """Return the fits that failed."""
        return self.scores[self.scores["nll"].isna()]

    def export(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write every result, scores with all their digits; a name that ends in .csv.gz is compressed.

        A failed fit has no scores, and a message with the reason. The ECE is a fraction. Times are in
        seconds, to four digits, since further digits are noise, which does not compress.
        """
        name = Path(path).name
        if not name.endswith((".csv", ".csv.gz")):
            raise InputError(f"{path} must end in .csv or .csv.gz; found {''.join(Path(path).suffixes)!r}.")
        check_writable(path, overwrite=overwrite)
        times = {
            column: self.scores[column].map(lambda seconds: float(f"{seconds:.4g}"))
            for column in ("fit_seconds", "apply_seconds")
        }
        frame = self.scores.assign(converged=self.scores["converged"].astype(int), **times)
        content = frame.to_csv(index=False, lineterminator="\n").encode()
        # No time in the header, so that the same results give the same bytes.
        packed = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
        write_atomically(path, packed, overwrite=overwrite)

    def choose_size(self, n: int | None) -> int:
        """Return the number of rows fitted to, by default the fewest; raise if there are no results."""
        if not self.tasks or not self.sizes:
            raise InputError(f"the study in {self.folder} has no results yet. Run it first.")
        return self.sizes[0] if n is None else n

    def choose_methods(self, metric: str, n: int, methods: Sequence[str] | None) -> tuple[str, ...]:
        """Return methods in the order of tables, by default all that have a result with this many rows."""
        if methods is None:
            shown = set(self.draws(metric, n).index.get_level_values("method"))
            return tuple(key for key in self.methods if key in shown)
        chosen = tuple(in_order(methods))
        for key in chosen:
            if key not in self.methods:
                raise InputError(
                    "the methods must be from the study, "
                    f"{', '.join(self.methods) or 'which has none yet'}; found {key!r}.",
                    advice="Run the study with it first." if key in METHODS else guess(key, self.methods),
                )
        return chosen


def better_scores(metric: str, better: Better | None) -> Better | None:
    """Return whether lower or higher scores are better; None if unknown, for the user's own metrics.

    Examples
    --------
    >>> better_scores("nll", None), better_scores("accuracy", None), better_scores("accuracy", "higher")
    ('lower', None, 'higher')
    """
    if better is not None:
        check_choice("better", better, ("lower", "higher"))
    if metric in METRICS and better == "higher":
        raise InputError(f"better must be 'lower' for {metric}; found 'higher'. Leave it out.")
    return "lower" if metric in METRICS else better


def example_results() -> Results:
    """Return the results of `ts` and of the uncalibrated classifier on two tasks, as `run_study` writes them.

    Examples
    --------
    >>> [task.name for task in example_results().tasks]
    ['cifar10__a', 'cifar10__b']
    """
    folder = Path(tempfile.mkdtemp())
    store = ResultStore.create(folder, 0)
    scores = {"cifar10__a": 0.4, "cifar10__b": 0.2}
    store.add_tasks([TaskFile(name, folder / name, "9f86", 500, 1000, 10) for name in scores], [200])
    store.add([Score(FitKey(name, 0, 0, "none"), nll=0.8) for name in scores])
    store.add([Score(FitKey(name, 200, 0, "ts"), nll=nll) for name, nll in scores.items()])
    return Results(folder)
