"""Importing the package takes almost no time, and the calibrators little more than their dependencies."""

import subprocess
import sys

MOST_TURNS = 10

# Both in one process and in CPU time: other work of the machine affects both equally.
TIMED = """
from time import process_time
began = process_time()
import sklearn.base, scipy.optimize
middle = process_time()
import temperance
temperance.CALIBRATORS
print((process_time() - began) / (middle - began))
"""


def cost() -> float:
    """Return the time of importing the package and its dependencies, in units of the dependencies alone."""
    run = subprocess.run([sys.executable, "-c", TIMED], check=True, capture_output=True, text=True)
    return float(run.stdout)


def test_the_command_line_answers_without_waiting_for_numpy():
    code = "import sys, temperance.cli; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_calibrators_cost_at_most_15_percent_more_than_its_dependencies():
    assert any(cost() <= 1.15 for _ in range(MOST_TURNS))
