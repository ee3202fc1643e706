"""Fit HTS to 20 GB of logits that are never stored, on two workers of 2 GB each; kill one on the way.

    python benchmarks/dask_memory.py [--gigabytes 20] [--classes 1000] [--kill]

Each pass generates the logits again, as it would read them from files. Prints the parameters, the passes, the
time, and the peak memory of each worker. With --kill one worker is killed during the second pass over all
rows; the parameters must not change.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import signal
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from temperance import EntropyTemperatureScaling

CHUNK_BYTES = 1 << 25
MEMORY = "2GB"


def logits_of(block_info: dict) -> np.ndarray:
    """Return the logits of one block: the same whenever and wherever it is made."""
    ((start, stop), (_, n_classes)) = block_info[None]["array-location"]
    return np.random.default_rng(start).standard_normal((stop - start, n_classes), np.float32) * 3


def labels_of(block: np.ndarray, block_info: dict) -> np.ndarray:
    """Draw labels from softmax(z / 2), as a classifier twice too sure would meet them."""
    start = block_info[0]["array-location"][0][0]
    rng = np.random.default_rng([start, 1])
    uniform = rng.random(block.shape, np.float32)
    return np.argmax(block / 2 - np.log(-np.log(np.maximum(uniform, 1e-30))), axis=1)


def peak() -> float:
    """Return the largest memory of this process, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


class Killer(logging.Handler):
    """Kill a worker once the log says that a pass over all rows has begun."""

    def __init__(self, pid: int, n_rows: int) -> None:
        super().__init__()
        self.pid, self.rows, self.done = pid, f"over {n_rows} rows", False

    def emit(self, record: logging.LogRecord) -> None:
        """Look for the pass."""
        if not self.done and self.rows in record.getMessage() and "objective" in record.getMessage():
            self.done = True
            os.system(f"(sleep 5; kill -{signal.SIGKILL} {self.pid}) &")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    rows = CHUNK_BYTES // (4 * options.classes)
    blocks = int(options.gigabytes * 1e9) // (4 * options.classes * rows) + 1
    chunks = ((rows,) * blocks, (options.classes,))
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("temperance").setLevel(logging.INFO)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=MEMORY, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        logits = da.map_blocks(logits_of, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))
        labels = da.map_blocks(labels_of, logits, drop_axis=1, dtype=np.intp, meta=np.empty(0, np.intp))
        print(
            f"{logits.shape[0]} rows, {logits.shape[1]} classes, {logits.nbytes / 1e9:.1f} GB, {blocks} parts"
        )
        labels = labels.persist()
        if options.kill:
            killer = Killer(next(iter(cluster.workers.values())).pid, logits.shape[0])
            logging.getLogger("temperance").addHandler(killer)
        before = time.time()
        cal = EntropyTemperatureScaling().fit(logits, labels)
        print(cal.summary())
        print({name: value.tolist() for name, value in cal.parameters().items()})
        print(f"{time.time() - before:.0f} s; peak memory of the client {peak():.2f} GB, of the workers:")
        print({address: f"{used:.2f} GB" for address, used in client.run(peak).items()})


if __name__ == "__main__":
    main()
