"""`import temperance` costs little more than what it stands on."""

import subprocess
import sys
import time

MOST_TURNS = 10


def seconds(statement: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - began


def test_importing_the_package_costs_at_most_15_percent_more_than_its_dependencies():
    # The best of each, in turns: on a busy machine it takes a few until both have had a quiet moment.
    floor, package = float("inf"), float("inf")
    for _ in range(MOST_TURNS):
        floor = min(floor, seconds("import sklearn.base, scipy.optimize"))
        package = min(package, seconds("import temperance"))
        if package <= 1.15 * floor:
            break
    assert package <= 1.15 * floor
