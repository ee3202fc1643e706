"""`import temperance` costs little more than what it stands on."""

import subprocess
import sys
import time

# Interleaved, and the best of each: a ratio that a busy machine does not disturb much.
TURNS = 3


def seconds(statement: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - began


def test_importing_the_package_costs_at_most_15_percent_more_than_its_dependencies():
    floor, package = float("inf"), float("inf")
    for _ in range(TURNS):
        floor = min(floor, seconds("import sklearn.base, scipy.optimize"))
        package = min(package, seconds("import temperance"))
    assert package <= 1.15 * floor
