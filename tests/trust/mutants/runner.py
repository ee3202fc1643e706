"""How many mutants of the numerical core, the methods, the metrics and the file readers the tests notice.

A sample is drawn from a random seed. Each mutant meets the tests that run its line, the fastest first, up to
a budget of seconds, which is smaller if it is known to survive. A survivor must be explained in
survivors.toml, and what is listed there must survive.
Results are kept in build/mutants: stop it, and go on later.
"""

import argparse
import hashlib
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from forking import (
    BROKEN,
    FOLDER,
    KILLED,
    QUIET,
    SURVIVED,
    TIMED_OUT,
    Forks,
    Outcome,
    Trial,
    try_in_new_process,
)
from operators import Mutant
from sample import SIZES, SOURCE, draw, files_of
from suite_map import SuiteMap, digest, test_files

SEED = 1
BUDGET = 150.0  # CPU seconds of tests for each mutant
BUDGET_IF_EXPLAINED = 20.0
LEAST_KILLED = 0.95
EXPLAINED = Path(__file__).with_name("survivors.toml")

Sample = dict[str, list[Mutant]]


class Results:
    """The outcome of each mutant, one line of JSON each, valid while the code and the test are the same."""

    def __init__(self, path: Path, tests_of: Callable[[Mutant], list[tuple[str, float]]]) -> None:
        self.path, self._tests_of = path, tests_of
        self.files = test_files()
        lines = path.read_text().splitlines() if path.exists() else []
        self.found = {line["id"]: line for line in map(json.loads, lines)}

    def trial(self, mutant: Mutant) -> Trial:
        """Return the mutant with the tests that it has to meet."""
        return Trial(mutant, self._tests_of(mutant))

    def outcome(self, mutant: Mutant) -> str | None:
        """Return what became of a mutant, if that is known."""
        line = self.found.get(mutant.id)
        if line is None or line["result"] == BROKEN or line["module"] != digest(mutant.path):
            return None
        if line["result"] == SURVIVED:
            return SURVIVED if line["met"] == self._hash(self.trial(mutant)) else None
        file = (line["test"] or "").partition("::")[0]
        return line["result"] if self.files.get(file) == line["file"] else None

    def _hash(self, trial: Trial) -> str:
        """Return a hash of the tests that a mutant meets: their names and the files that they are in."""
        met = sorted((name, self.files.get(name.partition("::")[0])) for name, _ in trial.tests)
        return hashlib.sha256(json.dumps(met).encode()).hexdigest()[:16]

    def add(self, trial: Trial, outcome: Outcome) -> None:
        """Keep one outcome."""
        file = (outcome.test or "").partition("::")[0]
        line = {
            "id": trial.mutant.id,
            "result": outcome.result,
            "test": outcome.test,
            "tests": len(trial.tests),
            "module": digest(trial.mutant.path),
            "file": self.files.get(file),
            "met": self._hash(trial),
        }
        self.found[trial.mutant.id] = line
        with self.path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        print(f"{outcome.result:9} {trial.mutant.id}  [{outcome.test or len(trial.tests)}]", flush=True)  # noqa: T201


def try_all(mutants: list[Mutant], results: Results) -> None:
    """Find out what becomes of the mutants whose outcome is not known."""
    trials = [results.trial(one) for one in mutants if results.outcome(one) is None]
    at_import = [trial for trial in trials if not trial.mutant.function]
    in_functions = [trial for trial in trials if trial.mutant.function]
    if in_functions:
        files = sorted({name.partition("::")[0] for trial in in_functions for name, _ in trial.tests})
        modules = sorted({module_name(trial.mutant.path) for trial in in_functions})
        pytest.main([*QUIET, *files], plugins=[Forks(in_functions, modules, results.add)])
    for trial in at_import:
        results.add(trial, try_in_new_process(trial))


def module_name(path: Path) -> str:
    """Return the name that a source file is imported by."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def figures(
    sample: dict[str, list[Mutant]], results: Results, explained: dict[str, str]
) -> dict[str, object]:
    """Return how many mutants of each folder were killed, timed out, or survived."""
    by_folder = {}
    for folder, mutants in sample.items():
        count = Counter(results.outcome(one) for one in mutants)
        known = sum(results.outcome(one) == SURVIVED and one.id in explained for one in mutants)
        by_folder[folder] = {
            "sampled": len(mutants),
            "killed": count[KILLED],
            "timed_out": count[TIMED_OUT],
            "survived_explained": known,
            "survived_unexplained": count[SURVIVED] - known,
            "untried": count[None],
        }
    total = {key: sum(one[key] for one in by_folder.values()) for key in next(iter(by_folder.values()))}
    noticed = total["killed"] + total["timed_out"]
    shares = {folder: f"{one['killed']} of {one['sampled']}" for folder, one in by_folder.items()}
    return {"seed": SEED, **total, "share_killed": noticed / total["sampled"], "killed in": shares}


def faults(sample: Sample, results: Results, explained: dict[str, str]) -> list[str]:
    """Return what is wrong: survivors without a reason, reasons without a survivor."""
    outcomes = {one.id: results.outcome(one) for mutants in sample.values() for one in mutants}
    found = [f"survived, and is not explained: {name}" for name, outcome in outcomes.items()
             if outcome == SURVIVED and name not in explained]  # fmt: skip
    for name in explained:
        if name not in outcomes:
            found.append(f"is explained, but not in the sample: {name}")
        elif outcomes[name] not in (SURVIVED, None):
            found.append(f"is explained, but {outcomes[name]}: {name}")
    return found


def main() -> int:
    """Draw the sample, try it, compare with the list of explained survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the figures to FILE.")
    parser.add_argument("--budget", type=float, default=BUDGET, help="CPU seconds of tests for each mutant.")
    parser.add_argument("--tests", nargs="*", help="Trace these test files alone, if they are new.")
    arguments = parser.parse_args()
    sample = draw(SEED, SIZES)
    suite = SuiteMap(FOLDER, [path for folder in SIZES for path in files_of(folder)])
    suite.update(tuple(arguments.tests or ("tests", "src")))
    explained = tomllib.loads(EXPLAINED.read_text(encoding="utf-8")) if EXPLAINED.exists() else {}

    @cache
    def tests_of(mutant: Mutant) -> list[tuple[str, float]]:
        known = mutant.id in explained
        return suite.tests_of(mutant, budget=BUDGET_IF_EXPLAINED if known else arguments.budget)

    results = Results(FOLDER / "results.jsonl", tests_of)
    try_all([one for mutants in sample.values() for one in mutants], results)
    found, wrong = figures(sample, results, explained), faults(sample, results, explained)
    print(json.dumps(found, indent=1), *wrong, sep="\n")  # noqa: T201
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(bool(wrong) or found["share_killed"] < LEAST_KILLED)


if __name__ == "__main__":
    sys.exit(main())
