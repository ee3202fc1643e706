"""The example of docs/label-shift.md gives the numbers that are printed below it."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "label-shift.md"


def numbers(text):
    """Return NLL and accuracy of each line."""
    return np.array([re.findall(r"\d\.\d\d", line) for line in text.strip().splitlines()], float)


def test_the_example_prints_what_the_page_shows(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "demo_task" in block]
    exec(example, {})
    printed = capsys.readouterr().out
    assert re.sub(r"\d\.\d\d", "", printed).split() == re.sub(r"\d\.\d\d", "", shown).split()
    np.testing.assert_allclose(numbers(printed), numbers(shown), atol=0.011)
    before, estimated, known = numbers(printed)[3:, 0]
    assert known <= estimated < 0.1 * before
