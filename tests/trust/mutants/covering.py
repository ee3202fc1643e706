"""A pytest plugin that records which lines of the mutated modules each test runs, and how long it takes.

The lines go into a file of coverage.py with one context for each test. A line that is run while a fixture of
the whole session is made counts for the first test that asked for it: other tests that see its effect are
missed, so a mutant may be counted as surviving that the suite would kill, never the other way round.
"""

import json
import sys
from pathlib import Path
from time import process_time

import coverage
import pytest

SAVED_AFTER = 100  # tests


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
        start = process_time()
        result = yield
        self.tests[item.nodeid]["seconds"] = process_time() - start
        self.coverage.switch_context("")
        if len(self.tests) % SAVED_AFTER == 0:
            self._save_tests()
        return result

    def pytest_runtest_logreport(self, report):
        """Mark a test that fails or is skipped: it tells nothing about a mutant."""
        if report.outcome != "passed":
            self.tests[report.nodeid]["passed"] = False

    def pytest_sessionfinish(self):
        """Store lines and times."""
        self.coverage.stop()
        self.coverage.save()
        self._save_tests()

    def _save_tests(self):
        self.tests_file.write_text(json.dumps(self.tests, indent=0))


def main(lines: Path, tests: Path) -> None:
    """Run the tests of the files that standard input names, and add what they run to the map."""
    asked = json.load(sys.stdin)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "--no-header", "-r", "fE"]
    pytest.main([*arguments, *asked["tests"]], plugins=[Tracer(lines, tests, asked["sources"])])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
