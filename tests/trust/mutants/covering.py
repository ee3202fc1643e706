"""A pytest plugin that records which lines of the mutated modules each test runs, and how long it takes.

The lines go into a file of coverage.py with one context for each test. A line that is run while a fixture of
the whole session is made counts for the first test that asked for it: other tests that see its effect are
missed, so a mutant may be counted as surviving that the suite would kill, never the other way round.
"""

import json
import time
from pathlib import Path

import coverage
import pytest


class Tracer:
    """The hooks: a context for each test, its CPU seconds and whether it passed."""

    def __init__(self, lines: Path, tests: Path, sources: list[str]):
        self.coverage = coverage.Coverage(
            data_file=lines, include=sources, config_file=False, messages=False, check_preimported=False
        )
        if lines.exists():
            self.coverage.load()
        self.tests_file = tests
        self.tests = json.loads(tests.read_text()) if tests.exists() else {}

    def pytest_sessionstart(self):
        """Trace from before the first import, whose lines belong to no test."""
        self.coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """Trace one test, with its fixtures."""
        self.coverage.switch_context(item.nodeid)
        self.tests[item.nodeid] = {"passed": True, "seconds": 0.0}
        start = time.perf_counter()
        result = yield
        self.tests[item.nodeid]["seconds"] = time.perf_counter() - start
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report):
        """Mark a test that fails or is skipped: it tells nothing about a mutant."""
        if report.outcome != "passed":
            self.tests[report.nodeid]["passed"] = False

    def pytest_sessionfinish(self):
        """Store lines and times."""
        self.coverage.stop()
        self.coverage.save()
        self.tests_file.write_text(json.dumps(self.tests, indent=0))


def trace(test_files: list[str], lines: Path, tests: Path, sources: list[str]) -> None:
    """Run the tests of these files and add what they run to the map."""
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "--no-header", "-r", "fE"]
    pytest.main([*arguments, *test_files], plugins=[Tracer(lines, tests, sources)])
