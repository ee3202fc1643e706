"""What tests of the command line share."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import jsonschema
import numpy as np

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "json-output.schema.json").read_text())


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON document that is all of standard output, as the schema describes it."""
        assert self.code == 0, self
        content = json.loads(self.out, parse_constant=lambda name: 1 / 0)  # NaN is no JSON
        jsonschema.validate(content, SCHEMA)
        return content

    def succeeded(self):
        """Assert that only results were printed."""
        assert (self.code, self.err) == (0, ""), self
        return self

    def failed(self, code, *words):
        """Assert that the command ended with `code` and one sentence that has all these words."""
        assert (self.code, self.out) == (code, ""), self
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        assert "Traceback" not in self.err
        assert "this should not have happened" not in self.err
        for word in words:
            assert word in self.err, self.err


def save_task(path, val, test):
    """Write a task file of validation and test rows."""
    arrays = {"logits_val": val.logits, "labels_val": val.labels}
    np.savez(path, **arrays, logits_test=test.logits, labels_test=test.labels)


def half_written(folder):
    """Return the unfinished files in a folder."""
    return [path.name for path in Path(folder).iterdir() if path.name.endswith(".part")]


def plain_and_narrow(text):
    """Assert that text has no escape codes and at most 80 columns."""
    assert text
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
    assert max(map(len, text.splitlines())) <= 80
