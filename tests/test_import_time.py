"""`import temperance` costs little more than what it stands on."""

import subprocess
import sys

MOST_TURNS = 10

# Both in one process and in CPU time: what else the machine does falls on both alike.
TIMED = """
from time import process_time
began = process_time()
import sklearn.base, scipy.optimize
middle = process_time()
import temperance
print((process_time() - began) / (middle - began))
"""


def cost() -> float:
    """Return the time of importing the package and its dependencies, in units of the dependencies alone."""
    run = subprocess.run([sys.executable, "-c", TIMED], check=True, capture_output=True, text=True)
    return float(run.stdout)


def test_importing_the_package_costs_at_most_15_percent_more_than_its_dependencies():
    assert any(cost() <= 1.15 for _ in range(MOST_TURNS))
