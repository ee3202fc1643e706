"""The rows of one check, reduced to sums in one pass over the logits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Indices
from temperance.core.blocks import BFloat16, read_blocks, row_slices
from temperance.core.row_block import kernels_of_size
from temperance.formulas.applying import apply_to_rows, check_columns
from temperance.formulas.model import Model
from temperance.inputs.containers import Logits, as_numpy, names_of, open_logits
from temperance.inputs.labels import check_labels
from temperance.inputs.validation import InputError, warn_of_probabilities
from temperance.monitoring.limits import Limits, baseline_of
from temperance.monitoring.predictions import PredictionSums, sum_predictions
from temperance.monitoring.residuals import LabelledSums, class_groups, sum_labelled

BLOCK_LOGITS = 1 << 18  # at a time: a few arrays of 2 MB in float64


@dataclass(frozen=True, eq=False)
class Batch:
    """What a check keeps of its rows: their digest, counts of predictions, and sums over labelled rows."""

    digest: str
    predictions: PredictionSums
    labelled: LabelledSums | None


def summarise(model: Model, limits: Limits, logits: Any, labels: Any, dim: int) -> Batch:
    """Calibrate the rows block by block and return their sums."""
    opened = open_logits(logits, dim)
    check_columns(model, opened.axis.shape, opened.axis.dim)
    if not len(opened.values):
        raise InputError("check needs rows; found none. Pass the logits of at least one row.")
    columns = None if labels is None else _columns(model, logits, labels, opened)
    baseline, groups = baseline_of(model), groups_of(model)
    warn_of_probabilities(opened.values)
    digest = hashlib.sha256(np.array(opened.values.shape, "<i8").tobytes())
    predictions, labelled = [], []
    for part, block, probs in _blocks(model, opened.values):
        digest.update(block)
        predictions.append(sum_predictions(probs, baseline))
        if columns is not None:
            labelled.append(sum_labelled(probs, columns[part], groups, limits))
    return Batch(
        f"sha256:{digest.hexdigest()}",
        reduce(add, predictions),
        reduce(add, labelled) if labelled else None,
    )


def groups_of(model: Model) -> Indices:
    """Return the group of each class whose joint change is estimated."""
    assert model.class_counts is not None  # checked by `baseline_of`
    return class_groups(model.class_counts)


def _columns(model: Model, logits: Any, labels: Any, opened: Logits) -> Indices:
    n_rows, n_classes = opened.values.shape
    names = names_of(logits, None, n_classes) or model.record.class_names
    return check_labels(opened.axis.flat(as_numpy(labels), "labels"), n_rows, n_classes, names)


def _blocks(model: Model, values: NDArray[Any] | BFloat16) -> Iterator[tuple[slice, bytes, Floats]]:
    """Yield rows as a slice, the bytes of their logits in float64, and their calibrated probabilities."""
    n_rows, n_classes = values.shape
    for part in row_slices(n_rows, max(1, BLOCK_LOGITS // n_classes)):
        with kernels_of_size(n_rows * n_classes):
            probs = apply_to_rows(model, "predict_proba", values[part], whole=values)
        content = b"".join((z.astype("<f8") + 0.0).tobytes() for z, *_ in read_blocks(values[part]))
        yield part, content, probs  # -0.0 + 0.0 = 0.0
