"""A pass over a large file needs little memory."""

import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
import torch

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measures in kilobytes")

CLASSES = 1000
ROWS, ALLOWED_MB = 50_000, 120  # of 200 MB
# A table of columns is turned round in memory, and keeps a page of each of its 1000 columns there.
ROWS_OF_TABLE, ALLOWED_MB_OF_TABLE = 100_000, 300

# The most memory that the process held at any time, beyond what it held before the pass. `getrusage` does not
# tell: it begins with the memory of the process that started this one.
HELD = """
import re, sys
from pathlib import Path

def held():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
"""

READ = """
from temperance.data import open_rows
if sys.argv[1].endswith(".parquet"):
    import pyarrow.parquet
if sys.argv[1].endswith(".pt"):
    import torch
rows = open_rows(sys.argv[1], kind="logits", need_labels=False)
before = held()
count = total = 0
for block in rows.blocks(4000):
    count += len(block)
    total += float(block[:, 0].sum())
    del block
print(count, total, held() - before)
"""

WRITE = """
import numpy as np
from temperance.data.writer import open_writer
if sys.argv[1].endswith(".parquet"):
    import pyarrow.parquet
block = np.zeros((2500, 1000), np.float32)
block[:, 0] = 1
before = held()
rows = int(sys.argv[2])
with open_writer(sys.argv[1], key="logits", shape=(rows, 1000), dtype=np.float32) as out:
    for _ in range(rows // 2500):
        out.write(block)
print(held() - before)
"""


def run(code, *words):
    command = [sys.executable, "-c", HELD + code, *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [float(number) for number in result.stdout.split()]


def sparse(path, order):
    array = np.lib.format.open_memmap(
        path, "w+", np.float32, (ROWS, CLASSES), fortran_order=order == "F"
    )  # zeros that take no room on disk
    array[::1000, 0] = 1000
    array.flush()


def check_read(path, rows=ROWS, allowed=ALLOWED_MB):
    count, total, grown = run(READ, path)
    assert (count, total) == (rows, rows)
    assert grown < allowed


@pytest.mark.parametrize("order", ["C", pytest.param("F", marks=pytest.mark.slow)])
def test_reading_a_large_npy(tmp_path, order):
    sparse(tmp_path / "a.npy", order)
    check_read(tmp_path / "a.npy")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_writing_and_reading_a_large_file(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    table = suffix == ".parquet"
    rows, allowed = (ROWS_OF_TABLE, ALLOWED_MB_OF_TABLE) if table else (ROWS, ALLOWED_MB)
    (grown,) = run(WRITE, path, rows)
    assert grown < allowed
    check_read(path, rows, allowed)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".npz"])
def test_reading_a_large_file_of_others(tmp_path, suffix):
    array = np.zeros((ROWS, CLASSES), np.float32)
    array[::1000, 0] = 1000
    path = tmp_path / f"a{suffix}"
    if suffix == ".safetensors":
        safetensors.numpy.save_file({"logits": array}, path)
    elif suffix == ".pt":
        torch.save({"logits": torch.from_numpy(array)}, path)
    else:
        np.savez_compressed(path, logits=array)
    check_read(path)
