"""What a caller hands over as (N, K) logits, labels and weights, and results in the container of the logits.

NumPy arrays and memory maps are used directly, bfloat16 in float32, a tensor through its shared
memory, and a DataFrame through its array. Dask collections stay where they are. Results for a tensor
are a tensor again, otherwise an array. A list of (n, K) arrays is the batches of a loader, joined.

A calibrator sees (rows, K) whatever the shape: pixels have logits (N, K, H, W) with the classes in axis 1,
tokens (N, T, K) with the classes last, and (N,) or (N, 1) logits of a binary classifier are columns [0, z].
Frames of pandas, polars and pyarrow are recognised by their attributes; `names` reads their headers.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.logit_rows import LogitRows
from temperance.errors import InputError, excerpt, listed, rows_at
from temperance.inputs.copies import find_copies
from temperance.inputs.groups import MIN_GROUPS, check_groups, groups_of_axes
from temperance.inputs.labels import check_labels
from temperance.inputs.names import check_class, choose_columns, headers_of, names_of
from temperance.inputs.validation import (
    INSPECTED_ROWS,
    check_labelled_rows,
    check_logits_shape,
    check_number,
    check_sample_weight,
    doubtful_columns,
    is_missing,
    warn_of_small_weights,
)


@dataclass(frozen=True)
class Logits:
    """Opened logits: the (N, K) values, and what results need to look like the given ones."""

    values: NDArray[Any]
    given: Any
    """The container."""
    shape: tuple[int, ...]
    """The shape of the given logits: (N,) for a binary classifier, else the classes are in axis `dim`."""
    dim: int
    """The axis of the classes, counted from the first."""
    leading: tuple[int, ...]
    """The shape without the axis of the classes."""

    @property
    def binary(self) -> bool:
        """Whether they came as (N,) or (N, 1), the logits of the second of two classes."""
        return len(self.shape) == 1

    def close(self, result: NDArray[Any]) -> Any:
        """Return results for rows, (rows, classes) or (rows,), in the shape and container of the logits."""
        if not self.binary and result.ndim == 1:
            result = result.reshape(self.leading)
        elif not self.binary:
            result = np.moveaxis(result.reshape(*self.leading, result.shape[1]), -1, self.dim)
        return wrap_like(self.given, result)

    def flat(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        """Return labels or weights, which have the shape without the classes, as one per row."""
        if self.binary:
            return values
        if values.shape == self.leading:
            return values.reshape(-1)
        axes, shape = range(len(self.shape)), self.shape
        fitting = [dim for dim in axes if (*shape[:dim], *shape[dim + 1 :]) == values.shape]
        if len(self.leading) == 1 and not fitting:
            return values  # their own check raises the error
        raise InputError(
            f"{name} must have the shape of the logits without the axis of the classes; found shape "
            f"{values.shape} for logits of shape {self.shape} with the classes in axis {self.dim}.",
            advice=f"Pass dim={fitting[0]}." if fitting else f"Pass {name} of shape {self.leading}.",
        )


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The logits of N rows, by reference, the columns of their labels, and weights if there are any.

    Attributes
    ----------
    logits : array of shape (N, K)
        By reference, not copied.
    labels : array of shape (N,)
        Column of the true class of each row.
    weights : array of shape (N,), or None
        Weights of the rows.
    class_names : tuple of str, or None
        Names of the columns.
    positions : bool
        Whether the columns are positions of answers, which have no names.
    positive : int or None
        The column of the class whose probability people act on, if the caller names one.
    groups : array of shape (N,), or None
        The group of each row, numbered from 0: rows that belong together. The entries of the first axis of
        logits with more than two, unless the caller names others.
    by : array of shape (N,), or None
        The values by which rows are scored separately.
    copies : array of shape (N,), or None
        Without groups, the set of copies that each row belongs to, if rows are copies.
    dim : int or None
        The axis of the classes in the given logits, if it is not the last.

    Examples
    --------
    >>> rows = open_labelled([[2.0, 0.0], [0.0, 1.0]], ["no", "yes"], classes=["no", "yes"])
    >>> len(rows), rows.labels.tolist(), rows.has_masks()
    (2, [0, 1], False)
    """

    logits: NDArray[Any]
    labels: NDArray[np.intp]
    weights: NDArray[np.float64] | None = None
    class_names: tuple[str, ...] | None = None
    positions: bool = False
    groups: NDArray[np.intp] | None = None
    by: NDArray[Any] | None = None
    dim: int | None = None
    positive: int | None = None
    copies: NDArray[np.intp] | None = None
    kept: NDArray[np.intp] | None = None
    """The places of the rows among those that were handed over, if some of these do not count."""

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.intp]) -> LabelledRows:
        """Return a copy of some rows."""
        return replace(
            self,
            logits=self.logits[rows],
            labels=self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups[rows],
            by=None if self.by is None else self.by[rows],
            copies=None if self.copies is None else self.copies[rows],
            kept=None if self.kept is None else self.kept[rows],
        )

    def examined(self) -> LabelledRows:
        """Return the rows of a fit with their copies; warn of these, and of weights that sum to little."""
        if self.weights is not None:
            warn_of_small_weights(float(self.weights.sum()), len(self))
        if self.groups is not None:
            return self
        return replace(self, copies=find_copies(self.logits, self.labels, _confidence))

    @property
    def units(self) -> NDArray[np.intp] | None:
        """The groups, or else the copies: what is independent. A fit has groups, but counts each copy."""
        return self.copies if self.groups is None else self.groups

    @property
    def n_groups(self) -> int | None:
        """How many units there are; None if rows are independent."""
        return None if self.units is None else int(self.units.max()) + 1

    def checked(self) -> LogitRows:
        """Return the rows for a fit, checked in one pass over the logits."""
        rows = LogitRows(self.logits, self.labels)
        with rows_at(self.kept):
            check_labelled_rows(rows)
        return rows

    def has_masks(self) -> bool:
        """Say whether any logit is -inf; raise if one is not allowed at all."""
        return not bool(np.isfinite(self.checked().mean()).all())


def _confidence(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the largest probability of each row."""
    confidence: NDArray[Any] = 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)
    return confidence


def framework_of(logits: Any) -> str | None:
    """Return the subpackage that must compute with these logits, or None if NumPy can."""
    if _is_dask(logits):
        return "dask"
    if is_tensor(logits):
        differentiated = logits.requires_grad and sys.modules["torch"].is_grad_enabled()
        if differentiated or logits.device.type != "cpu":
            return "torch"
    return None


def _is_dask(values: Any) -> bool:
    package = type(values).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(values, "__dask_graph__")


def open_logits(logits: Any, dim: int = -1) -> Logits:
    """Open any supported container as an (N, K) array of logits, without reading them.

    Arrays can have more axes; `dim` is the axis of the classes.
    """
    logits = joined_batches(logits)
    array = _unwrap(logits)
    shape, n_axes = array.shape, max(1, array.ndim)
    if not isinstance(dim, (int, np.integer)) or not -n_axes <= dim < n_axes:
        raise InputError(
            f"dim must be the axis of the classes, from {-n_axes} to {n_axes - 1} for logits of shape "
            f"{shape}; found {dim!r}."
        )
    dim = int(dim) % n_axes
    if (shape[1:], dim) == ((1,), 1):  # the head of a binary classifier, for BCEWithLogitsLoss
        array, shape, dim = array[:, 0], shape[:1], 0
    leading = (*shape[:dim], *shape[dim + 1 :])
    if len(shape) > 1 and (len(shape), dim) != (2, 1):  # not yet (rows, classes)
        array = np.moveaxis(array, dim, -1).reshape(math.prod(leading), shape[dim])
    check_logits_shape(array)
    if array.ndim == 1:
        array = np.column_stack([np.zeros_like(array), array])
    return Logits(array, logits, shape, dim, leading)


def open_labelled(
    logits: Any,
    labels: Any,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    dim: int = -1,
    ignore_index: int | None = None,
    groups: Any = None,
    by: Any = None,
    positions: bool = False,
    positive: int | str | None = None,
) -> LabelledRows:
    """Open logits with the labels, weights and groups of their rows, checked, without rows to be ignored."""
    if positions and positive is not None:
        raise InputError("positive is for classes; found positions=True. Leave one of them out.")
    logits = choose_columns(logits, classes)
    opened = open_logits(logits, dim)
    values, names = opened.values, names_of(logits, classes, opened.values.shape[1])
    if len(values) == 0:
        raise InputError("fit needs labelled rows, and there are none. Pass the logits of a validation set.")
    if classes is None and names is not None:
        for name, why in doubtful_columns(tuple(map(str, names)), values[:INSPECTED_ROWS]).items():
            raise InputError(
                f"column {name!r} might not be the logits of a class: {why}. Drop the column, or pass "
                "classes=[...] with the names of all columns if it is one."
            )
    beside = Beside.open(opened, len(values), labels, sample_weight, groups, by, ignore_index=ignore_index)
    values = values if beside.kept is None else values[beside.kept]
    n_rows, n_classes = values.shape
    with rows_at(beside.kept):
        columns = check_labels(beside.labels, n_rows, n_classes, names)
    # Of several groups, one can be left.
    together = None if beside.groups is None or not beside.groups.any() else beside.groups
    as_text = None if names is None or positions else tuple(map(str, names))
    at = None if opened.dim == len(opened.shape) - 1 else opened.dim
    event = None if positive is None else check_class("positive", positive, names, n_classes)
    found = values, columns, beside.weights, as_text, positions, together, beside.by, at, event
    return LabelledRows(*found, kept=beside.kept)


@dataclass(frozen=True, eq=False)
class Beside:
    """What a caller hands over beside scores, one value per row that is not ignored and has a weight."""

    labels: Any
    """An array; None if rows have no labels."""
    weights: NDArray[np.float64] | None
    groups: NDArray[np.intp] | None
    by: NDArray[Any] | None
    """The values by which rows are scored separately."""
    kept: NDArray[np.intp] | None = None
    """The rows that count; None if these are all."""

    @classmethod
    def open(
        cls,
        opened: Logits | None,
        n_rows: int,
        labels: Any,
        sample_weight: Any,
        groups: Any,
        by: Any = None,
        *,
        ignore_index: int | None = None,
        min_groups: int = MIN_GROUPS,
    ) -> Beside:
        """Open what has the shape of the scores without their classes; `opened` is None for (N, K) and (N,).

        This is where rows of weight 0 and rows to be ignored are dropped. Groups and the values of `by` can
        also be given per image or text, for all of its rows. Without labels, no row is ignored.
        """

        def one_per_row(values: Any, name: str) -> Any:
            if values is None:
                return None
            of_rows = opened is None or len(opened.leading) == 1
            array = as_numpy(joined_batches(values, 1) if of_rows else values)
            if opened is None:
                return array
            missing = len(opened.leading) - array.ndim
            if name in ("groups", "by") and missing > 0 and array.shape == opened.leading[: array.ndim]:
                array = np.broadcast_to(array.reshape(array.shape + missing * (1,)), opened.leading)
            return opened.flat(array, name)

        given, weights = one_per_row(labels, "labels"), one_per_row(sample_weight, "sample_weight")
        together = None
        if groups is not None:
            together = check_groups(one_per_row(groups, "groups"), n_rows, at_least=min_groups)
        elif opened is not None and opened.dim:
            together = groups_of_axes(opened.leading, at_least=min_groups)
        beside, kept = cls(given, weights, together, one_per_row(by, "by")), np.arange(n_rows)
        if any(one is not None and np.shape(one)[:1] != (n_rows,) for one in (given, beside.by)):
            return beside  # their own checks raise the error
        if ignore_index is not None and given is not None:
            kept = rows_to_keep(given, ignore_index)
            beside = beside.take(kept)
        beside = replace(beside, weights=check_sample_weight(beside.weights, len(kept)))
        if beside.weights is not None and not beside.weights.all():
            counted = np.flatnonzero(beside.weights)
            kept, beside = kept[counted], beside.take(counted)
        return beside if len(kept) == n_rows else replace(beside, kept=kept)

    def take(self, rows: NDArray[Any]) -> Beside:
        """Return the values of some rows, with their groups numbered from 0."""
        found = (None if one is None else one[rows] for one in (self.labels, self.weights, self.by))
        labels, weights, by = found
        together = None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1]
        return Beside(labels, weights, together, by)


def rows_to_keep(labels: NDArray[Any], ignore_index: int) -> NDArray[np.intp]:
    """Return the rows that are not to be ignored."""
    check_number("ignore_index", ignore_index, "or None", lambda index: True, whole=True)
    if labels.dtype.kind not in "iuf":
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


def joined_batches(values: Any, n_axes: int = 2) -> Any:
    """Return a list of arrays with so many axes as one array, or tensor, of all rows; others as they are.

    Their rows are never groups, whatever their number; images or texts have logits with more axes.
    """
    if not isinstance(values, list | tuple) or not values:
        return values
    if _is_dask(values[0]) or not all(getattr(one, "ndim", None) == n_axes for one in values):
        return values
    if any(headers_of(one) is not None for one in values):
        raise InputError(
            "batches must be arrays or tensors; found data frames. Join them first, such as by pandas.concat."
        )
    widths = {one.shape[1:] for one in values}
    if len(widths) > 1:
        found = listed(sorted(width[0] for width in widths), str)
        raise InputError(f"all batches must have the same columns; found {found} columns.")
    if all(map(is_tensor, values)):
        return sys.modules["torch"].cat(list(values))
    return np.concatenate([as_numpy(one) for one in values])


def item_size(values: Any) -> int:
    """Return the bytes of a number in an array or a tensor; 8, as a float64 has, for other containers."""
    return int(getattr(getattr(values, "dtype", None), "itemsize", 8))


def as_numpy(values: Any, wanted: str = "labels and weights must be one per row") -> NDArray[Any]:
    """Return numbers or labels as an array; a tensor can be on any device.

    Raise for containers that NumPy would convert silently, and wrongly or slowly.
    """
    if hasattr(values, "toarray") or (is_tensor(values) and values.layout != sys.modules["torch"].strided):
        dense = ".to_dense()" if is_tensor(values) else ".toarray()"
        raise InputError(
            f"numbers must be in a dense array; found a sparse {type(values).__name__}. Pass {dense} of it."
        )
    if is_tensor(values):
        held = values.detach().cpu()
        return np.asarray((held.float() if held.dtype == sys.modules["torch"].bfloat16 else held).numpy())
    if _is_dask(values):
        raise InputError(
            "the numbers must be in memory here; found a Dask collection. Call .compute() on it, or on the "
            "part needed."
        )
    masked = sys.modules.get("numpy.ma")  # without it, there are no masks, and importing it takes long
    if masked is not None and isinstance(values, masked.MaskedArray) and masked.is_masked(values):
        raise InputError(
            "arrays must not be masked, since NumPy's mask would be lost; found "
            f"{masked.count_masked(values)} masked numbers. Drop their rows. In logits, -inf can mark an "
            "impossible class: logits.filled(-np.inf)."
        )
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{wanted}; found lists of different lengths.") from None
    if array.dtype.kind == "U" and isinstance(values, (list, tuple)) and any(map(is_missing, values)):
        return np.array(values, object)  # NumPy would write nan as text
    return array


def is_tensor(values: Any) -> bool:
    """Say whether it is a tensor of PyTorch."""
    torch = sys.modules.get("torch")  # without it, there are no tensors
    return torch is not None and isinstance(values, torch.Tensor)


def _unwrap(logits: Any) -> NDArray[Any]:
    array = as_numpy(numbers_of(logits), "logits must be an (N, K) array")
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)  # which NumPy can compute with
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        example = f" such as {excerpt(str(array.flat[0]))}" if array.size else ""
        raise InputError(
            f"logits must be floating point numbers; found {array.dtype}{example}. {_advice_on_type(array)}"
        )
    return array


def _advice_on_type(array: NDArray[Any]) -> str:
    scores = "Pass the classifier's scores, one column per class."
    if array.dtype.kind not in "OUS":
        return scores
    try:
        array.astype(np.float64)
    except (TypeError, ValueError):
        return scores
    return "They can be converted: pass logits.astype(float)."


def framed_like(given: Any, result: NDArray[Any]) -> Any:
    """Return numbers as a data frame of the same library, with the same headers, or as `wrap_like` does."""
    if (headers := headers_of(given)) is None:
        return wrap_like(given, result)
    if hasattr(given, "iloc"):
        return type(given)(result, given.index, given.columns)
    columns = dict(zip(headers, result.T, strict=True))
    return type(given).from_pydict(columns) if hasattr(given, "column_names") else type(given)(columns)


def wrap_like(given: Any, result: NDArray[Any]) -> Any:
    """Return a tensor on the same device and, if both are floating point, of the same type.

    With the same shape it also has the same order in memory.
    """
    if not is_tensor(given):
        return result
    torch = sys.modules["torch"]
    out = torch.from_numpy(result).to(given.device)
    dtype = given.dtype if out.is_floating_point() and given.is_floating_point() else out.dtype
    if out.ndim > 2 and out.shape == given.shape and not out.is_contiguous():
        return torch.empty_like(given, dtype=dtype).copy_(out)
    return out.to(dtype)


def numbers_of(frame: Any) -> Any:
    """Return an input for NumPy: for a frame of nullable or Arrow numbers, the numbers as floats.

    NumPy itself would convert these to objects. A missing number is NaN.
    """
    if not (hasattr(frame, "iloc") and hasattr(frame, "dtypes")):
        return frame
    types = list(np.atleast_1d(np.array(frame.dtypes, object)))
    if not any(hasattr(dtype, "na_value") for dtype in types):
        return frame
    all_numbers = all(dtype.kind in "fiub" for dtype in types)
    return frame.to_numpy(dtype=np.float64, na_value=np.nan) if all_numbers else frame
