"""
A million rows with Dask
========================

Logits that do not fit in memory, or that are stored on a cluster, stay where they are. A fit sends
parameters to the blocks and adds up the sums that come back.
"""

# %%
# A million rows, never all in memory
# -----------------------------------
# Each block of 50,000 rows is computed when it is needed, as if read from a file. With files, use
# ``da.from_zarr("logits.zarr")`` or ``dask.dataframe.read_parquet``.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import temperance

ROWS, CLASSES, BLOCK = 1_000_000, 10, 50_000


def make_logits(block_info):
    """Return the logits of one block, of a classifier whose log-odds are twice as large as they should be."""
    start, stop = block_info[None]["array-location"][0]
    return np.random.default_rng(start).normal(scale=3, size=(stop - start, CLASSES)).astype(np.float32)


def draw_labels(logits, block_info):
    """Draw a label for each row from softmax(z / 2)."""
    start = block_info[0]["array-location"][0][0]
    return np.argmax(logits / 2 + np.random.default_rng([start, 1]).gumbel(size=logits.shape), axis=1)


chunks = ((BLOCK,) * (ROWS // BLOCK), (CLASSES,))
logits = da.map_blocks(make_logits, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))
labels = da.map_blocks(draw_labels, logits, drop_axis=1, dtype=np.intp, meta=np.empty(0, np.intp)).persist()
print(logits)

# %%
# Fit
# ---
# The parameters are the same as those of a fit in memory. On a cluster, create a ``distributed.Client``
# first; nothing else changes.
cal = temperance.EntropyTemperatureScaling().fit(logits, labels)
print(cal.summary())

# %%
# Predict
# -------
# The result is lazy. Reductions are computed block by block.
probs = cal.predict_proba(logits)
confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
edges = np.linspace(0, 1, 16)
index = da.digitize(confidence, edges[1:-1])
counts = da.bincount(index, minlength=15)
sums = da.bincount(index, weights=confidence.astype(float), minlength=15)
hits = da.bincount(index, weights=right.astype(float), minlength=15)
counts, sums, hits = da.compute(counts, sums, hits)
used = counts > 0
ece = np.abs(sums - hits).sum() / ROWS
print(f"mean confidence {sums.sum() / ROWS:.2%}, right {hits.sum() / ROWS:.2%}, ECE {ece:.2%}")

# %%
figure, ax = plt.subplots(figsize=(5, 5))
ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
ax.plot(sums[used] / counts[used], hits[used] / counts[used], marker="o")
ax.set(xlabel="mean confidence", ylabel="accuracy", title="A million calibrated rows")
plt.show()

# %%
# Write the probabilities with ``probs.to_zarr("probs.zarr")``: one block is in memory at a time.
