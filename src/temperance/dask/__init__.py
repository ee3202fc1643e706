"""Logits in Dask arrays and frames: a fit sends parameters out and gets sums back; predictions are lazy.

Between the passes of a fit, only a small subsample of the rows is kept, on the workers. Logits that fit into
their memory should be persisted (`logits.persist()`): then no pass reads them again.
"""

try:
    import dask.array  # noqa: F401
except ImportError as error:
    raise ImportError('lazy arrays need Dask: pip install "temperance[dask]"') from error

from temperance.dask.fit_data import open_fit_data
from temperance.dask.lazy import apply, floor_of, map_probabilities
from temperance.dask.probability_rows import DaskProbabilityRows

__all__ = ["DaskProbabilityRows", "apply", "floor_of", "map_probabilities", "open_fit_data"]
