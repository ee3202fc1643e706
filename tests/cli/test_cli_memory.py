"""`apply` to a file that is larger than the memory it needs."""

import subprocess
import sys

import numpy as np
import pytest

from temperance import load
from temperance.data import open_rows

ROWS, CLASSES = 110_000, 1000  # 440 MB of float32
LIMIT = 400_000  # kB

# The process's own peak: what `getrusage` gives would start from that of the process it was started by.
MEASURED = """
import re, sys
from pathlib import Path
from temperance.cli import main
try:
    main(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.fixture
def large(folder, fit):
    """Make a file of 440 MB, most of it zeros that the disk need not hold, and a calibrator."""
    rng = np.random.default_rng(0)
    some = rng.standard_normal((3000, CLASSES)).astype(np.float32)
    fit("ts", some, np.where(rng.random(3000) < 0.5, some.argmax(axis=1), 0)).save("cal.json")
    rows = np.lib.format.open_memmap("new.npy", mode="w+", dtype=np.float32, shape=(ROWS, CLASSES))
    rows[:3000] = rows[-3000:] = some
    rows.flush()
    yield some
    for path in folder.glob("*.np[yz]"):
        path.unlink()


def peak(*words):
    command = [sys.executable, "-c", MEASURED, *words, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)


@pytest.mark.slow
def test_a_file_is_calibrated_in_less_memory_than_it_takes(large):
    assert peak("apply", "cal.json", "new.npy", "--input", "logits", "-o", "probs.npz") < LIMIT
    probs = open_rows("probs.npz", need_labels=False).array()
    assert probs.shape == (ROWS, CLASSES)
    wanted = load("cal.json").predict_proba(large)
    np.testing.assert_array_equal(probs[:3000].argmax(axis=1), wanted.argmax(axis=1))
    np.testing.assert_allclose(probs[-3000:], wanted, rtol=1e-5)
