"""Kill a study at random moments, let the same command go on, and compare with one left in peace.

    python benchmarks/study_killed.py TASKS [--kills 20] [--draws 6] [--seed 0]

TASKS are task files, or folders of them; a few small ones are enough. Prints how many results there were at
each kill, and in the end whether all results are the same: each there once, to the last bit, but for times.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from temperance import InputError
from temperance.study import Results


def results(folder: Path) -> list[str]:
    """Return all results but their times, so that nan equals nan; none before there is a store."""
    try:
        scores = Results(folder).scores
    except InputError:
        return []
    return [repr((s.fit, s.nll, s.brier, s.ece50, s.ece15, s.converged, s.iterations)) for s in scores]


def wait(process: subprocess.Popen[bytes], folder: Path, more: float) -> None:
    """Wait until there are so many more results, or the study is done."""
    before = len(results(folder))
    while process.poll() is None and len(results(folder)) < before + more:
        time.sleep(0.05)


def main() -> None:
    """Run the study twice and say whether it is the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        peace, trouble = Path(place) / "peace", Path(place) / "trouble"
        command = [sys.executable, "-m", "temperance", "study", "run", *options.tasks, "--quiet"]
        command += ["--draws", str(options.draws), "--out"]
        subprocess.run([*command, str(peace)], check=True, stdout=subprocess.DEVNULL)
        expected = results(peace)
        chance, kills = random.Random(options.seed), 0
        for _ in range(options.kills):
            process = subprocess.Popen([*command, str(trouble)], stdout=subprocess.DEVNULL)
            wait(process, trouble, chance.uniform(0, 1.2 * len(expected) / options.kills))
            time.sleep(chance.uniform(0, 0.5))  # anywhere between two results too
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"kill {kills:>2}: {len(results(trouble)):>6} of {len(expected)} results", flush=True)
        subprocess.run([*command, str(trouble)], check=True, stdout=subprocess.DEVNULL)
        found = results(trouble)
        print(f"{kills} kills; {len(found)} results; identical: {found == expected}")
        sys.exit(0 if found == expected and kills == options.kills else 1)


if __name__ == "__main__":
    main()
