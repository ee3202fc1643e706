"""How many mutants of the numerical core, the methods, the metrics and the file readers the tests notice.

A sample is drawn from a random seed. Each mutant is written into a copy of the project, and meets the tests
that run its line, those of its part first, up to a budget of seconds, which is smaller if it is known to
survive. A survivor must be explained in survivors.toml, and what is explained there must survive.
Results are kept in build/mutants: stop it, and go on later.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import Queue

from operators import Mutant
from sample import ROOT, SIZES, all_mutants, draw, files_of
from suite_map import PYTEST, TESTS, SuiteMap, digest, environment, test_files

KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "survived"
FOLDER = ROOT / "build" / "mutants"
EXPLAINED = Path(__file__).with_name("survivors.toml")
SEED = 1
BUDGET = 150.0  # seconds of tests for each mutant
BUDGET_IF_EXPLAINED = 20.0
MIN_KILLED = 0.95
FIRST_TESTS = 50  # most mutants are noticed by these; the files of the others need not be imported then
PATIENCE, START_SECONDS = 10, 120  # tests may take some times longer than without the mutant

Sample = dict[str, list[Mutant]]
Tests = list[tuple[str, float]]
Outcomes = dict[str, str | None]  # by the name of the mutant


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant, and the test that noticed it."""

    result: str
    test: str | None = None


def try_mutant(mutant: Mutant, tests: Tests, copy: Path) -> Outcome:
    """Run tests in a copy of the project in which one module is changed, until one of them fails."""
    path = copy / mutant.path.relative_to(ROOT)
    path.write_text(mutant.source(), encoding="utf-8")
    try:
        outcome = _run(tests[:FIRST_TESTS], copy)
        return _run(tests[FIRST_TESTS:], copy) if outcome.result == SURVIVED else outcome
    finally:
        shutil.copy(mutant.path, path)


def _run(tests: Tests, copy: Path) -> Outcome:
    if not tests:
        return Outcome(SURVIVED)
    command = [*PYTEST, "-x", "--tb=no", "-p", "no:xdist", "-p", "no:cov", *(name for name, _ in tests)]
    process = subprocess.Popen(
        command, cwd=copy, env=environment(copy), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=START_SECONDS + PATIENCE * sum(time for _, time in tests))
    except subprocess.TimeoutExpired:
        return Outcome(TIMED_OUT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode == 0:
        return Outcome(SURVIVED)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return Outcome(KILLED, failed[1] if failed else None)  # without a test: the package cannot be imported


class Results:
    """The outcome of each mutant, one line of JSON each, valid while the code and the tests are the same."""

    def __init__(self, path: Path, tests_of: Callable[[Mutant], Tests]) -> None:
        self.path, self.tests_of = path, tests_of
        self.files = test_files()
        lines = path.read_text().splitlines() if path.exists() else []
        self.found = {line["id"]: line for line in map(json.loads, lines)}

    def outcome(self, mutant: Mutant) -> str | None:
        """Return what became of a mutant, if that is known."""
        line = self.found.get(mutant.id)
        is_valid = line and line["state"] == self._state(mutant, line["test"])
        return line["result"] if is_valid else None

    def _state(self, mutant: Mutant, test: str | None) -> str:
        """Return a hash of the module and of the test that noticed its change, or of all that it met."""
        names = [test] if test else sorted(name for name, _ in self.tests_of(mutant))
        met = [(name, self.files.get(name.partition("::")[0])) for name in names]
        return hashlib.sha256(json.dumps([digest(mutant.path), met]).encode()).hexdigest()[:16]

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        """Keep one outcome."""
        line = {
            "id": mutant.id,
            "result": outcome.result,
            "test": outcome.test,
            "state": self._state(mutant, outcome.test),
        }
        self.found[mutant.id] = line
        with self.path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        by = outcome.test or f"{len(self.tests_of(mutant))} tests"
        print(f"{outcome.result:9} {mutant.id}  [{by}]", flush=True)  # noqa: T201


def try_all(mutants: Iterable[Mutant], results: Results, copies: list[Path]) -> None:
    """Find out what becomes of the mutants whose outcome is not known, one in each copy at a time."""
    free: Queue[Path] = Queue()
    for copy in copies:
        free.put(copy)

    def attempt(mutant: Mutant) -> None:
        copy = free.get()
        try:
            results.add(mutant, try_mutant(mutant, results.tests_of(mutant), copy))
        finally:
            free.put(copy)

    unknown = [mutant for mutant in mutants if results.outcome(mutant) is None]
    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(attempt, unknown))


def figures(sample: Sample, outcomes: Outcomes, explained: dict[str, str]) -> dict[str, object]:
    """Return how many mutants were killed, timed out, or survived, and how many of each part were killed."""
    count = Counter(outcomes.values())
    known = sum(outcome == SURVIVED and name in explained for name, outcome in outcomes.items())
    killed = {part: sum(outcomes[one.id] == KILLED for one in mutants) for part, mutants in sample.items()}
    return {
        "seed": SEED,
        "sampled": len(outcomes),
        "killed": count[KILLED],
        "timed_out": count[TIMED_OUT],
        "survived_explained": known,
        "survived_unexplained": count[SURVIVED] - known,
        "share_killed": (count[KILLED] + count[TIMED_OUT]) / len(outcomes),
        "killed in": {part: f"{killed[part]} of {len(mutants)}" for part, mutants in sample.items()},
    }


def faults(outcomes: Outcomes, explained: dict[str, str], existing: set[str]) -> list[str]:
    """Return what is wrong: survivors without a reason, reasons without a survivor.

    A reason may wait for its mutant to be drawn again: the sample changes with the code.
    """
    found = [f"survived, and is not explained: {name}" for name, outcome in outcomes.items()
             if outcome == SURVIVED and name not in explained]  # fmt: skip
    found += [f"is explained, but {outcomes[name]}: {name}" for name in explained
              if outcomes.get(name, SURVIVED) != SURVIVED]  # fmt: skip
    return found + [f"is explained, but is no mutant: {name}" for name in explained if name not in existing]


def copy_project(folder: Path) -> Path:
    """Copy what the tests need into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    left_out = shutil.ignore_patterns("build", "dist", ".git", ".venv", ".*_cache", "__pycache__")
    return shutil.copytree(ROOT, folder, ignore=left_out)


def main() -> int:
    """Draw the sample, try it, compare with the list of explained survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the figures to FILE.")
    parser.add_argument("--budget", type=float, default=BUDGET, help="Seconds of tests for each mutant.")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="Trace these test files only, if new.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="Mutants that are tried at once.")
    arguments = parser.parse_args()
    everything = {part: all_mutants(part) for part in SIZES}
    sample = {part: draw(everything[part], size, SEED) for part, size in SIZES.items()}
    copies = [copy_project(FOLDER / f"copy-{i}") for i in range(arguments.jobs)]
    suite = SuiteMap(FOLDER, copies[0], [path for part in SIZES for path in files_of(part)])
    suite.update(tuple(arguments.tests))
    explained = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))

    @cache
    def tests_of(mutant: Mutant) -> Tests:
        return suite.tests_of(mutant, BUDGET_IF_EXPLAINED if mutant.id in explained else arguments.budget)

    results = Results(FOLDER / "results.jsonl", tests_of)
    drawn = [one for mutants in sample.values() for one in mutants]
    try_all(drawn, results, copies)
    outcomes = {one.id: results.outcome(one) for one in drawn}
    existing = {one.id for mutants in everything.values() for one in mutants}
    found, wrong = figures(sample, outcomes, explained), faults(outcomes, explained, existing)
    print(json.dumps(found, indent=1), *wrong, sep="\n")  # noqa: T201
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(bool(wrong) or found["share_killed"] < MIN_KILLED)


if __name__ == "__main__":
    sys.exit(main())
