"""Logits in Dask arrays and frames: a fit sends parameters out and gets sums back; predictions are lazy.

Between the passes of a fit, only a small subsample of the rows is kept, on the workers. Logits that fit into
their memory should be persisted (`logits.persist()`): then no pass reads them again.
"""

try:
    import dask.array  # noqa: F401
except ImportError as error:
    raise ImportError('lazy arrays need Dask: pip install "temperance[dask]"') from error
