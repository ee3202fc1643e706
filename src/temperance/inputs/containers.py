"""Containers of logits, and how they become an (N, K) array without a copy.

NumPy arrays and memory maps are used directly; bfloat16 as its bits; a tensor through its shared memory; a
DataFrame through its array. (N,) logits of a binary classifier are the columns [0, z]. Results for a tensor
are a tensor again, otherwise an array. Dask collections stay where they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance import loaders
from temperance.core.blocks import BFloat16
from temperance.core.logit_rows import LogitRows
from temperance.inputs.axes import ClassAxis, class_axis
from temperance.inputs.frames import column_names, numbers_of
from temperance.inputs.labels import Names, check_classes, check_labels
from temperance.inputs.probabilities import LowEnd, raised_logarithms
from temperance.inputs.validation import (
    InputError,
    check_labelled_rows,
    check_logits_shape,
    check_number,
    check_probabilities,
    check_sample_weight,
)


@dataclass(frozen=True)
class Logits:
    """Opened logits: the (N, K) values, whether they came as (N,), and how to restore their container."""

    values: NDArray[Any] | BFloat16
    binary: bool
    axis: ClassAxis
    wrap: Callable[[NDArray[Any]], Any]

    def close(self, result: NDArray[Any]) -> Any:
        """Return results for the rows in the shape and the container of the logits."""
        return self.wrap(self.axis.restored(result))


@dataclass(frozen=True, eq=False)
class Labelled:
    """Opened logits with the label of each row as a column index; weights and class names if given."""

    values: NDArray[Any] | BFloat16
    columns: NDArray[np.intp]
    weights: NDArray[np.float64] | None
    names: tuple[str, ...] | None

    def rows(self) -> LogitRows:
        """Return the rows, checked in one pass over the logits."""
        rows = LogitRows(self.values, self.columns)
        check_labelled_rows(rows)
        return rows


def framework_of(logits: Any) -> str | None:
    """Return the subpackage that must compute with these logits, or None if NumPy can."""
    if _is_dask(logits):
        return "dask"
    if _is_tensor(logits):
        differentiated = logits.requires_grad and sys.modules["torch"].is_grad_enabled()
        if differentiated or logits.device.type != "cpu" or logits.ndim > 2:
            return "torch"
    return None


def _is_dask(values: Any) -> bool:
    package = type(values).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(values, "__dask_graph__")


def is_matrix(logits: Any, n_classes: int) -> bool:
    """Say whether logits are already an (N, K) array of floating point numbers."""
    plain = type(logits) is np.ndarray and logits.dtype.kind == "f"
    return plain and logits.ndim == 2 and logits.shape[1] == n_classes


def open_logits(logits: Any, dim: int = -1) -> Logits:
    """Open any supported container as an (N, K) array of logits, without reading them.

    Arrays may have more axes; `dim` is that of the classes.
    """
    given, wrap = _unwrap(logits), partial(_wrap_like, logits)
    axis = class_axis(given.shape, dim)
    values = axis.rows(given)
    check_logits_shape(values)
    if len(values.shape) == 2:
        return Logits(values, False, axis, wrap)
    if isinstance(values, BFloat16):
        columns = BFloat16(np.column_stack([np.zeros_like(values.bits), values.bits]))
        return Logits(columns, True, axis, wrap)
    return Logits(np.column_stack([np.zeros_like(values), values]), True, axis, wrap)


def open_labelled(
    logits: Any,
    labels: Any,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> Labelled:
    """Open logits with the labels and weights of their rows, checked, without rows to be ignored."""
    opened = open_logits(logits, dim)
    values, names = opened.values, names_of(logits, classes, opened.values.shape[1])
    if len(values) == 0:
        raise InputError("fit needs labelled rows; found none. Pass the logits of a validation set.")
    given = opened.axis.flat(as_numpy(labels), "labels")
    weights = None if sample_weight is None else opened.axis.flat(as_numpy(sample_weight), "sample_weight")
    if ignore_index is not None and len(given) == len(values):
        kept = _kept(given, ignore_index)
        if kept.size < len(values):
            values, given, weights = values[kept], given[kept], None if weights is None else weights[kept]
    n_rows, n_classes = values.shape
    columns = check_labels(given, n_rows, n_classes, names)
    as_text = None if names is None else tuple(map(str, names))
    return Labelled(values, columns, check_sample_weight(weights, len(values)), as_text)


def names_of(logits: Any, classes: Any, n_classes: int) -> Names | None:
    """Return the class names: as given, or else those of a data frame's columns."""
    if classes is not None:
        return check_classes(classes, n_classes)
    names = column_names(logits)
    return None if names is None or len(names) != n_classes else tuple(names.tolist())


def _kept(labels: NDArray[Any], ignore_index: int) -> NDArray[np.intp]:
    """Return the rows that are not to be ignored."""
    check_number("ignore_index", ignore_index, "or None", lambda index: True, whole=True)
    if labels.dtype.kind not in "iu":
        raise InputError(
            f"ignore_index is for labels that are whole numbers; found {labels.dtype}. Drop the rows instead."
        )
    kept = np.flatnonzero(labels != ignore_index)
    if not kept.size:
        raise InputError(
            f"some labels must be other than ignore_index; found {ignore_index} in all {len(labels)} rows. "
            "Pass labelled rows."
        )
    return kept


def open_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Open and check the weights of rows, if there are any."""
    return check_sample_weight(None if sample_weight is None else as_numpy(sample_weight), n_rows)


def probability_floor(probs: Any) -> float:
    """Return the floor to which `logits_from_probs` raises smaller probabilities of these rows.

    All classes of a row with probability 0 get, together, at most half of the smallest probability above 0,
    and each at least 2.2e-16, the precision of a float. If no probability is 0, nothing is raised. Use the
    floor of the calibration rows for all later rows, so that 0 always means the same.

    Parameters
    ----------
    probs : array, tensor, data frame or Dask collection
        Probabilities, (N, K).

    Examples
    --------
    >>> floor = probability_floor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    >>> round(floor, 4)
    0.0417
    >>> logits_from_probs([[0.8, 0.2, 0.0]], floor=floor).round(2)
    array([[-0.22, -1.61, -3.18]])
    """
    if framework_of(probs) == "dask":
        return float(loaders.load("dask floor")(probs).compute())
    array = as_numpy(numbers_of(probs))
    return LowEnd.of(check_probabilities(array)).floor


def logits_from_probs(probs: Any, floor: float | None = None) -> Any:
    """Return the logarithms of probabilities: logits whose softmax are these probabilities.

    Probabilities (N,) of class 1 of two become the (N,) logits that calibrators accept for a binary
    classifier.

    Parameters
    ----------
    probs : (N, K) or (N,) array, tensor, DataFrame, or Dask array or frame
    floor : float, optional
        Smaller probabilities are raised to this value, by default `probability_floor` of these rows. For new
        rows, pass the floor of the calibration rows. With 0, nothing is raised: 0 becomes -inf, an impossible
        class. For a Dask collection, the default floor is found when the logits are computed, in one more
        pass.

    Examples
    --------
    >>> logits_from_probs([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([[-0.6931, -0.6931],
           [ 0.    , -2.0794]])
    >>> logits_from_probs([[0.5, 0.5], [1.0, 0.0]], floor=0).round(4)
    array([[-0.6931, -0.6931],
           [ 0.    ,    -inf]])
    """
    if floor is not None:
        check_number("floor", floor, "from 0 to 1, without 1", lambda number: 0 <= number < 1)
    if framework_of(probs) == "dask":
        return loaders.load("dask probabilities")(logits_from_probs, probs, floor)
    array = as_numpy(numbers_of(probs))
    checked = check_probabilities(array)
    logs = raised_logarithms(checked, LowEnd.of(checked).floor if floor is None else float(floor))
    return _wrap_like(probs, logs[:, 1] - logs[:, 0] if array.ndim == 1 else logs)


def as_numpy(values: Any) -> NDArray[Any]:
    """Return labels or weights as an array; a tensor may be on any device."""
    if _is_tensor(values):
        held = values.detach().cpu()
        return np.asarray((held.float() if held.dtype == sys.modules["torch"].bfloat16 else held).numpy())
    _refuse(values)
    try:
        return np.asarray(values)
    except ValueError:
        found = "lists of different lengths"
        raise InputError(f"labels and weights must be one for each row; found {found}.") from None


def _refuse(values: Any) -> None:
    """Raise for containers that NumPy would convert silently, and wrongly or slowly."""
    if _is_dask(values):
        raise InputError(
            "the numbers must be in memory here; found a Dask collection. Pass its .compute(), or that of "
            "the part needed."
        )
    masked = sys.modules.get("numpy.ma")  # without it, there are no masks, and importing it takes long
    if masked is not None and isinstance(values, masked.MaskedArray) and masked.is_masked(values):
        raise InputError(
            "arrays must not be masked, since NumPy's mask would be lost; found "
            f"{masked.count_masked(values)} masked numbers. Drop their rows. In logits, -inf may mark an "
            "impossible class: logits.filled(-np.inf)."
        )


def _is_tensor(values: Any) -> bool:
    torch = sys.modules.get("torch")  # without it, there are no tensors
    return torch is not None and isinstance(values, torch.Tensor)


def _unwrap(logits: Any) -> NDArray[Any] | BFloat16:
    if _is_tensor(logits):
        return _unwrap_tensor(logits)
    if isinstance(logits, BFloat16):
        return logits
    _refuse(logits)
    if hasattr(logits, "toarray"):
        raise InputError(
            f"logits must be a dense array; found a sparse {type(logits).__name__}. Pass logits.toarray()."
        )
    try:
        array = np.asarray(numbers_of(logits))
    except ValueError:
        raise InputError("logits must be an (N, K) array; found rows of different lengths.") from None
    if array.dtype.name == "bfloat16":
        return BFloat16(array.view(np.uint16))
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        example = str(array.flat[0])[:20] if array.size else ""
        raise InputError(
            f"logits must be floating point numbers; found {array.dtype} such as {example!r}. "
            f"{_advice_on_type(array)}"
        )
    return array


def _advice_on_type(array: NDArray[Any]) -> str:
    scores = "Pass the classifier's scores, one column for each class."
    if array.dtype.kind not in "OUS":
        return scores
    try:
        array.astype(np.float64)
    except (TypeError, ValueError):
        return scores
    return "They can be converted: pass logits.astype(float)."


def _wrap_like(given: Any, result: NDArray[Any]) -> Any:
    """Return a tensor on the same device and, if both are floating point, of the same type."""
    if not _is_tensor(given):
        return result
    out = sys.modules["torch"].from_numpy(result).to(given.device)
    return out.to(given.dtype) if out.is_floating_point() and given.is_floating_point() else out


def _unwrap_tensor(tensor: Any) -> NDArray[Any] | BFloat16:
    torch = sys.modules["torch"]
    held = tensor.detach().cpu()
    if held.dtype == torch.bfloat16:
        return BFloat16(held.view(torch.int16).numpy().view(np.uint16))
    array: NDArray[Any] = (held if held.is_floating_point() else held.to(torch.float64)).numpy()
    return array
