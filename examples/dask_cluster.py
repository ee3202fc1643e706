"""Calibrate more logits than one machine can hold, on a Dask cluster; here it has two local processes.

The logits are made on the workers whenever they are needed, as files would be read. A fit sends parameters
to them and gets sums back; the logits never leave their worker.
"""

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from temperance import BayesianTemperatureScaling

ROWS, CLASSES, IN_A_PART = 100_000, 50, 12_500


def make_logits(block_info):
    """Return one part of the logits of a classifier that is twice too sure."""
    ((start, stop), _) = block_info[None]["array-location"]
    return np.random.default_rng(start).normal(scale=3, size=(stop - start, CLASSES)).astype(np.float32)


def draw_labels(logits, block_info):
    """Return a label for each row, from softmax(z / 2)."""
    start = block_info[0]["array-location"][0][0]
    noise = np.random.default_rng([start, 1]).gumbel(size=logits.shape)
    return np.argmax(logits / 2 + noise, axis=1)


def main():
    """Fit on the cluster, then compare confidence and accuracy there."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        # From files: da.from_zarr("logits.zarr"), or the columns of dask.dataframe.read_parquet("rows")
        chunks = ((IN_A_PART,) * (ROWS // IN_A_PART), (CLASSES,))
        logits = da.map_blocks(
            make_logits, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32)
        )
        labels = da.map_blocks(draw_labels, logits, drop_axis=1, dtype=np.intp, meta=np.empty(0, np.intp))
        labels = labels.persist()  # small, so they may stay in memory

        cal = BayesianTemperatureScaling().fit(logits, labels)
        print(cal.summary().splitlines()[2])
        print(f"T of a typical row: {np.exp(cal.coefficients_[0]):.3f}")

        probs = cal.predict_proba(logits)  # nothing is computed yet
        confidence, right = probs.max(axis=1).mean(), (probs.argmax(axis=1) == labels).mean()
        confidence, right = da.compute(confidence, right)
        print(f"mean confidence {100 * confidence:.2f} %, right {100 * right:.2f} %")


if __name__ == "__main__":
    main()
