"""Run every contender on every task and every hard input, each in a process of its own.

    python run_peers.py FOLDER [--only LIBRARY ...]

FOLDER holds an environment for each library, see plan.py; tasks and results are added to it. Results
that are there are kept, so that a run can be stopped and resumed: remove a file to measure it again. A crash
or a time-out is a result.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hard_inputs import hard_inputs
from plan import CONTENDERS, LARGEST, MEASUREMENTS, Contender, name_of

HERE = Path(__file__).resolve().parent
# Of wall time: with a limit of CPU time, Linux counts CPU time in ticks, too coarse to measure with.
LIMIT_SECONDS = 600
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TEMPERANCE_THREADS",
)


class Runner:
    """Starts workers and keeps their results.

    Parameters
    ----------
    results : Path
        Folder with a folder of results for each contender.
    python_of : callable
        Maps a contender to the interpreter of its environment.
    limit : float
        Seconds that a process may take.
    """

    def __init__(
        self, results: Path, python_of: Callable[[Contender], Path], limit: float = LIMIT_SECONDS
    ) -> None:
        self.results, self.python_of, self.limit = results, python_of, limit

    def path(self, contender: Contender, job: str) -> Path:
        """Return the file of one job's results."""
        return self.results / contender.key / f"{job}.jsonl"

    def lines(self, contender: Contender, job: str) -> list[dict[str, Any]]:
        """Return the results of a job so far."""
        path = self.path(contender, job)
        return (
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            if path.exists()
            else []
        )

    def start(self, contender: Contender, job: str, arguments: Iterable[str], threads: int) -> str | None:
        """Run a worker; return what went wrong, if anything did."""
        out = self.path(contender, job)
        out.parent.mkdir(parents=True, exist_ok=True)
        command = [self.python_of(contender), HERE / "worker.py", contender.adapter, contender.method, out]
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
        try:
            done = subprocess.run(
                [*command, *arguments], env=environment, capture_output=True, text=True, timeout=self.limit
            )
        except subprocess.TimeoutExpired:
            return f"timed out after {self.limit:g} s"
        except OSError as error:
            return f"not installed: {error.strerror}"
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return f"exit code {done.returncode}: {last[:300]}" if done.returncode else None

    def once(self, contender: Contender, job: str, arguments: Iterable[str], threads: int = 1) -> None:
        """Run a job that has one result, unless there is one."""
        if not self.lines(contender, job) and (problem := self.start(contender, job, arguments, threads)):
            with self.path(contender, job).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"failed": problem}) + "\n")

    def probe(self, contender: Contender) -> bool:
        """Record the versions; return whether the library can be imported."""
        self.once(contender, "probe", ["probe"])
        return "versions" in self.lines(contender, "probe")[0]

    def measure(self, contender: Contender, size: tuple[int, int], threads: int, tasks: Path) -> None:
        """Measure speed, memory and accuracy; the largest task is fitted once."""
        arguments = ["speed", str(tasks / f"{name_of(size)}.npz"), *(["once"] if size == LARGEST else [])]
        self.once(contender, f"speed-{name_of(size)}-{threads}", arguments, threads)

    def try_inputs(self, contender: Contender, names: Iterable[str]) -> None:
        """Try the hard inputs; go on after the one that ended a process."""
        while left := self.untried(contender, names):
            problem = self.start(contender, "inputs", ["inputs", *left], 1)
            lines = self.lines(contender, "inputs")
            broken = lines[-1]["input"] if lines and lines[-1]["verdict"] == "started" else left[0]
            if problem:
                outcome = "timed out" if problem.startswith("timed out") else "crashed"
                with self.path(contender, "inputs").open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"input": broken, "verdict": outcome, "words": problem}) + "\n")

    def untried(self, contender: Contender, names: Iterable[str]) -> list[str]:
        """Return the inputs without a verdict."""
        lines = self.lines(contender, "inputs")
        tried = {line["input"] for line in lines if line["verdict"] != "started"}
        return [name for name in names if name not in tried]


def run(runner: Runner, contenders: Iterable[Contender], tasks: Path) -> None:
    """Run everything: the contenders take turns on each task."""
    able = [contender for contender in contenders if runner.probe(contender)]
    for contender in able:
        if contender.single_temperature:
            runner.try_inputs(contender, hard_inputs())
    for threads, size in MEASUREMENTS:
        for contender in able:
            if contender.n_classes in (None, size[1]):
                print(name_of(size), threads, contender.key, flush=True)
                runner.measure(contender, size, threads, tasks)


def main() -> None:
    """Make the tasks, and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", metavar="LIBRARY", help="Libraries to run; all without it.")
    options = parser.parse_args()
    folder = options.folder.resolve()
    subprocess.run([sys.executable, HERE / "grid.py", folder / "tasks"], check=True)
    chosen = [each for each in CONTENDERS if options.only is None or each.library in options.only]
    runner = Runner(folder / "results", lambda contender: folder / contender.library / "bin" / "python")
    run(runner, chosen, folder / "tasks")


if __name__ == "__main__":
    main()
