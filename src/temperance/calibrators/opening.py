"""The rows of a fit, read from the user's containers."""

from __future__ import annotations

from typing import Any

from temperance import loaders
from temperance.core.fit_data import FitData, InMemoryFitData
from temperance.errors import InputError
from temperance.inputs.containers import framework_of, names_of, open_labelled
from temperance.inputs.validation import warn_of_probabilities


def open_fit_data(
    logits: Any, labels: Any, sample_weight: Any, classes: Any, dim: int, ignore_index: int | None
) -> tuple[FitData, tuple[str, ...] | None]:
    """Return the rows of a fit, and the names of their classes if there are any."""
    if framework_of(logits) == "dask":
        return _open_dask(logits, labels, sample_weight, classes, dim, ignore_index)
    opened = open_labelled(logits, labels, sample_weight, classes=classes, dim=dim, ignore_index=ignore_index)
    warn_of_probabilities(opened.values)
    return InMemoryFitData(opened.rows(), opened.weights), opened.names


def _open_dask(
    logits: Any, labels: Any, sample_weight: Any, classes: Any, dim: int, ignore_index: int | None
) -> tuple[FitData, tuple[str, ...] | None]:
    if dim not in (-1, 1) or ignore_index is not None:
        raise InputError(
            "dim and ignore_index are for arrays in memory; found a Dask collection. Put the classes last "
            "and leave out the rows to be ignored before the fit."
        )
    names = names_of(logits, classes, logits.shape[1] if logits.ndim == 2 else 2)
    data: FitData = loaders.load("dask fit data")(logits, labels, sample_weight, names)
    return data, None if names is None else tuple(map(str, names))
