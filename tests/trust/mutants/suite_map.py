"""Which tests run which line: what `covering` records, kept up to date, and the tests of a mutant from it."""

import hashlib
import json
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import coverage
from operators import Mutant
from sample import ROOT, SOURCE

TESTS = ("tests", "src")
CHUNK = 5  # tests of one file that are run before one looks into the next
# Their clusters need threads that Dask starts once, and that a forked process does not have.
LEFT_OUT = ("tests/dask/test_dask_cluster.py", "tests/study/test_study_cluster.py")


def digest(path: Path) -> str:
    """Return a short hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def test_files() -> dict[str, str]:
    """Return the digest of each file that may have tests."""
    paths = sorted(path for folder in TESTS for path in (ROOT / folder).rglob("*.py"))
    chosen = [path for path in paths if path.name.startswith("test_") or path.is_relative_to(SOURCE)]
    return {str(path.relative_to(ROOT)): digest(path) for path in chosen}


class SuiteMap:
    """The map of the suite, in a folder. A changed source needs a new map, a changed test file a part."""

    def __init__(self, folder: Path, sources: list[Path]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lines, self.tests_file = folder / "lines.sqlite", folder / "tests.json"
        self._files, self._source = folder / "files.json", folder / "source.json"
        self.sources = sources

    def update(self, limited_to: tuple[str, ...] = TESTS) -> None:
        """Trace the tests of files that are new or have changed."""
        source = {str(path.relative_to(ROOT)): digest(path) for path in self.sources}
        # The list of files is written last: without it, the map was interrupted.
        if self._read(self._source) != source or not self._files.exists():
            for path in (self.lines, self.tests_file, self._files):
                path.unlink(missing_ok=True)
            self._source.write_text(json.dumps(source))
        known, now = self._read(self._files), test_files()
        new = [name for name in now if now[name] != known.get(name) and name.startswith(limited_to)]
        if new:
            command = [sys.executable, Path(__file__).with_name("covering.py"), self.lines, self.tests_file]
            listed = json.dumps({"tests": new, "sources": [str(path) for path in self.sources]})
            subprocess.run(command, input=listed, text=True, check=True, cwd=ROOT)
            self._files.write_text(json.dumps(known | {name: now[name] for name in new}, indent=0))

    @staticmethod
    def _read(path: Path) -> dict[str, str]:
        return json.loads(path.read_text()) if path.exists() else {}

    @cached_property
    def _seconds(self) -> dict[str, float]:
        """The CPU seconds of each test that passes."""
        tests = json.loads(self.tests_file.read_text())
        return {
            name: test["seconds"]
            for name, test in tests.items()
            if test["passed"] and not name.startswith(LEFT_OUT)
        }

    @cached_property
    def _contexts(self) -> dict[str, dict[int, list[str]]]:
        """The tests of each line of each file."""
        data = coverage.CoverageData(str(self.lines))
        data.read()
        return {str(path): data.contexts_by_lineno(str(path)) for path in self.sources}

    def tests_of(self, mutant: Mutant, budget: float) -> list[tuple[str, float]]:
        """Return the tests that run the lines of a mutant, the fastest first, as many as the budget allows.

        For code that runs at import: the tests that run any function of the module.
        """
        lines = self._contexts[str(mutant.path)]
        at = mutant.lines if mutant.function else lines
        found = {name for line in at for name in lines.get(line, ()) if name in self._seconds}
        return self._within(self._in_turns(found), budget)

    def _in_turns(self, names: set[str]) -> list[str]:
        """Return the tests by time, some of each file at a time: those of one file often ask the same."""
        by_file: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda name: (self._seconds[name], name)):
            by_file.setdefault(name.partition("::")[0], []).append(name)
        longest = max(map(len, by_file.values()), default=0)
        turns = range(0, longest, CHUNK)
        return [name for turn in turns for own in by_file.values() for name in own[turn : turn + CHUNK]]

    def _within(self, names: list[str], budget: float) -> list[tuple[str, float]]:
        chosen, total = [], 0.0
        for name in names:
            total += self._seconds[name]
            if total > budget and chosen:
                break
            chosen.append((name, self._seconds[name]))
        return chosen
