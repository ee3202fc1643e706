"""Fixtures of the tests with hostile input: commands run in this process, in a new folder."""

import signal
from typing import NamedTuple

import numpy as np
import pytest


class Ended(NamedTuple):
    """The exit code of a command, and its standard error."""

    code: int
    sentence: str

    def refused(self, *words):
        """Assert that the command refused its input with one short sentence that has these words."""
        assert self.code == 2, self
        assert len(self.sentence.splitlines()) == 1, self
        assert len(self.sentence) < 1000
        assert "should not have happened" not in self.sentence
        for word in words:
            assert word in self.sentence, self


@pytest.fixture
def command(tmp_path, monkeypatch, run_command, task):
    """Return a function that runs a command in a folder with rows.npz, 300 rows of 4 classes."""
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", logits=task.logits, labels=task.labels)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words):
        code, _, err = run_command(*words)
        return Ended(code, err)

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)
