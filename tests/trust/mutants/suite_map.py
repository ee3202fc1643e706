"""Which tests run which line, and how long each takes: traced once, kept up to date.

A line that is run while a fixture of the whole session is made counts for the first test that asked for it:
other tests that see its effect are missed, so a mutant may be counted as surviving that the suite would kill,
never the other way round.
"""

import hashlib
import json
import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

import coverage
from operators import Mutant
from sample import ROOT, SOURCE

TESTS = ("tests", "src")
CHUNK = 5  # tests of one file that are run before one looks into the next
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=ci"]


def digest(path: Path) -> str:
    """Return a short hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def test_files() -> dict[str, str]:
    """Return the digest of each file that may have tests."""
    paths = sorted(path for folder in TESTS for path in (ROOT / folder).rglob("*.py"))
    chosen = [path for path in paths if path.name.startswith("test_") or path.is_relative_to(SOURCE)]
    return {str(path.relative_to(ROOT)): digest(path) for path in chosen}


def environment(copy: Path) -> dict[str, str]:
    """Return the environment of a process that imports the package from a copy of the project."""
    return os.environ | {"PYTHONPATH": str(copy / "src")}


class SuiteMap:
    """The map of the suite, in a folder. A changed source needs a new map, a changed test file a part."""

    def __init__(self, folder: Path, copy: Path, sources: list[Path]) -> None:
        self.copy, self.sources = copy, sources
        self.lines, self._stored = folder / "lines.sqlite", folder / "tests.json"
        stored = json.loads(self._stored.read_text()) if self._stored.exists() else {}
        self._source = {str(path.relative_to(ROOT)): digest(path) for path in sources}
        current = stored.get("source") == self._source
        self._files = stored["files"] if current else {}
        self._seconds = stored["seconds"] if current else {}

    def update(self, limited_to: tuple[str, ...] = TESTS) -> None:
        """Trace the tests of files that are new or have changed."""
        now = test_files()
        new = [name for name in now if now[name] != self._files.get(name) and name.startswith(limited_to)]
        if not new:
            return
        times = self.copy / "times.xml"
        options = ["-n", "auto", "--dist", "worksteal", "--cov", "--cov-context=test", "--cov-report="]
        options += [f"--junitxml={times}", "-o", "junit_family=xunit1"]
        options += ["--cov-append"] if self._files else []
        variables = environment(self.copy) | {"COVERAGE_FILE": str(self.lines)}
        subprocess.run([*PYTEST, *options, *new], cwd=self.copy, env=variables, check=False)
        kept = {name: seconds for name, seconds in self._seconds.items() if _file(name) not in new}
        self._seconds = kept | _passed(times)
        self._files |= {name: now[name] for name in new}
        stored = {"source": self._source, "files": self._files, "seconds": self._seconds}
        self._stored.write_text(json.dumps(stored, indent=0))

    @cached_property
    def _contexts(self) -> dict[Path, dict[int, set[str]]]:
        """The tests of each line of each file: a test has a context for its run, and one for its fixtures."""
        data = coverage.CoverageData(str(self.lines))
        data.read()
        found = {}
        for path in self.sources:
            by_line = data.contexts_by_lineno(str(self.copy / path.relative_to(ROOT)))
            found[path] = {line: {name.rpartition("|")[0] for name in by_line[line]} for line in by_line}
        return found

    def tests_of(self, mutant: Mutant, budget: float) -> list[tuple[str, float]]:
        """Return the tests that run the lines of a mutant, as many as the budget allows.

        Those of its own part of the package come first, of these the fastest. For code that runs at import:
        the tests that run any function of the module.
        """
        lines = self._contexts[mutant.path]
        at = lines if mutant.at_import else mutant.lines
        found = {name for line in at for name in lines.get(line, ()) if name in self._seconds}
        part = mutant.path.relative_to(SOURCE).with_suffix("").parts[1]
        own = {name for name in found if name.startswith(f"tests/{part}/")}
        chosen, total = [], 0.0
        for name in [*self._in_turns(own), *self._in_turns(found - own)]:
            total += self._seconds[name]
            if total > budget and chosen:
                break
            chosen.append((name, self._seconds[name]))
        return chosen

    def _in_turns(self, names: set[str]) -> list[str]:
        """Return the tests by time, some of each file at a time: those of one file often ask the same."""
        by_file: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda name: (self._seconds[name], name)):
            by_file.setdefault(_file(name), []).append(name)
        longest = max(map(len, by_file.values()), default=0)
        turns = range(0, longest, CHUNK)
        return [name for turn in turns for own in by_file.values() for name in own[turn : turn + CHUNK]]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _passed(times: Path) -> dict[str, float]:
    """Return the seconds of each test that passed, from a file in the format of JUnit."""
    cases = ElementTree.parse(times).iter("testcase")
    return {f"{one.get('file')}::{one.get('name')}": float(one.get("time")) for one in cases if not len(one)}
