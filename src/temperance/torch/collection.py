"""The usual loop: a model and a loader -> logits and labels, on the CPU."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import length_hint
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from temperance.errors import InputError
from temperance.progress import Progress, reporting

GROWTH = 1.25  # spare rows are cut off at the end, but filling them with zeros takes time


class RowBuffer:
    """A growing array that joins tensors (n, ...).

    It is a NumPy array because its `resize` is the allocator's: large arrays grow and shrink by pages,
    without a second copy if the system can move pages. bfloat16 is kept as 16-bit integers.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._dtype = torch.float32
        self._array: NDArray[Any] | None = None

    def add(self, rows: Tensor, expected: int) -> None:
        """Append rows; `expected` is the expected number of rows in total."""
        bits = (rows.view(torch.int16) if rows.dtype == torch.bfloat16 else rows).numpy()
        if self._array is None:
            self._dtype = rows.dtype
            self._array = np.empty((max(expected, len(bits)), *bits.shape[1:]), bits.dtype)
        if rows.dtype != self._dtype or bits.shape[1:] != self._array.shape[1:]:
            raise InputError(
                "all batches must give logits of one type and number of classes; found "
                f"{self._described(self._array, self._dtype)}, then {self._described(bits, rows.dtype)}."
            )
        end = self.n_rows + len(bits)
        if end > len(self._array):
            self._resize(max(end, int(GROWTH * len(self._array))))
        self._array[self.n_rows : end] = bits
        self.n_rows = end

    def _resize(self, n_rows: int) -> None:
        assert self._array is not None
        self._array.resize((n_rows, *self._array.shape[1:]), refcheck=False)  # no view of it exists

    @staticmethod
    def _described(array: NDArray[Any], dtype: torch.dtype) -> str:
        return f"{dtype} with {'x'.join(map(str, array.shape[1:])) or 1}"

    def result(self) -> Tensor:
        """Return all rows as one tensor."""
        assert self._array is not None
        self._resize(self.n_rows)
        tensor = torch.from_numpy(self._array)
        return tensor.view(torch.bfloat16) if self._dtype == torch.bfloat16 else tensor


Forward = Callable[[Any, Any], tuple[Any, Any]]


def collect_logits(
    model: Callable[..., Any],
    loader: Iterable[Any],
    device: torch.device | str | None = None,
    *,
    dim: int = -1,
    forward: Forward | None = None,
    ignore_index: int | None = -100,
    max_rows: int | None = None,
    progress: Progress = True,
) -> tuple[Tensor, Tensor]:
    """Run a model over all batches and return its logits (N, K) and the labels (N,), on the CPU.

    The model runs in evaluation mode; afterwards every submodule has its previous mode. Neither gradients nor
    batches are kept: the memory needed is the size of the result, in the model's output type.

    Parameters
    ----------
    model : module or function
        It returns logits, (B, K) or with more axes, (B,) or (B, 1) for a binary classifier, or a container of
        logits: an object with `.logits`, a dict with "logits", a tuple with the logits first.
    loader : iterable of batches
        Pairs (inputs, labels), or dicts with "labels" and the model's arguments. Labels can be floats, as for
        BCEWithLogitsLoss, if they are whole numbers.
    device : optional
        Move inputs to this device; by default the device of the model's first parameter.
    dim : int
        The axis of the classes: 1 for pixels (B, K, H, W). Every token or pixel becomes a row.
    forward : function (model, batch) -> (logits, labels), optional
        For other batches or outputs; the batch is on the device.
    ignore_index : int or None
        Rows with this label are left out.
    max_rows : int, optional
        Stop at this number of rows.
    progress : bool, or function of (what, fraction done)
        True shows a line on standard error if that is a terminal or a notebook. The fraction is NaN if the
        loader has no length.

    Examples
    --------
    >>> import torch
    >>> from temperance.torch import collect_logits
    >>> batches = [(torch.zeros(5, 4), torch.zeros(5, dtype=torch.long))] * 3
    >>> logits, labels = collect_logits(torch.nn.Linear(4, 3), batches)
    >>> logits.shape, labels.shape
    (torch.Size([15, 3]), torch.Size([15]))
    """
    if max_rows is not None and max_rows < 1:
        raise InputError(f"max_rows must be at least 1; found {max_rows}.")
    first = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    where = torch.device(device or ("cpu" if first is None else first.device))
    n_batches = length_hint(loader)  # 0 if unknown, as for an iterable data set
    logits, labels = RowBuffer(), RowBuffer()
    with _evaluating(model), torch.inference_mode(), reporting("Collecting", progress) as report:
        for number, batch in enumerate(loader, 1):
            z, y = _rows(*(forward or _run)(model, _moved(batch, where)), dim, ignore_index)
            if max_rows is not None:
                z, y = z[: max_rows - logits.n_rows], y[: max_rows - labels.n_rows]
            # Expect this many rows in every batch; memory is not used before it is written.
            expected = min(len(z) * n_batches, max_rows or sys.maxsize)
            logits.add(z, expected)
            labels.add(y, expected)
            report(f"{logits.n_rows} rows", number / n_batches if n_batches else math.nan)
            if logits.n_rows == max_rows:
                break
    if logits.n_rows == 0:
        raise InputError("the loader has no labelled rows. Pass the loader of a validation set.")
    return logits.result(), labels.result()


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Set evaluation mode, then restore the mode of each submodule."""
    modes = [(part, part.training) for part in model.modules()] if isinstance(model, nn.Module) else []
    try:
        if modes:
            model.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _moved(batch: Any, device: torch.device) -> Any:
    """Return a batch with all its tensors on the device."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {name: _moved(value, device) for name, value in batch.items()}
    if type(batch) in (list, tuple):
        return type(batch)(_moved(value, device) for value in batch)
    return batch


def _run(model: Any, batch: Any) -> tuple[Any, Any]:
    """Return the logits and labels of a pair (inputs, labels) or a dict."""
    if isinstance(batch, Mapping) and "labels" in batch:
        return model(**{name: value for name, value in batch.items() if name != "labels"}), batch["labels"]
    if isinstance(batch, (list, tuple)) and len(batch) == 2:
        return model(batch[0]), batch[1]
    names = f" with {', '.join(map(str, batch))}" if isinstance(batch, Mapping) else ""
    size = f" of {len(batch)}" if isinstance(batch, (list, tuple)) else ""
    raise InputError(
        "a batch must be a pair (inputs, labels) or a dict with 'labels'; found a "
        f"{type(batch).__name__}{size}{names}. Pass forward=, a function (model, batch) -> (logits, labels)."
    )


def _logits_in(output: Any) -> Tensor:
    """Return the logits in the output of a model."""
    if isinstance(output, Mapping) and "logits" in output:
        output = output["logits"]
    elif hasattr(output, "logits"):
        output = output.logits
    elif isinstance(output, (list, tuple)) and output:
        output = output[0]
    if not isinstance(output, Tensor) or not output.is_floating_point():
        kind = f"tensor of {output.dtype}" if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            "the model must give logits: a tensor of floats, or an object, dict or tuple that holds them; "
            f"found a {kind}. Pass forward=, a function (model, batch) -> (logits, labels)."
        )
    return output


def _rows(output: Any, labels: Any, dim: int, ignore_index: int | None) -> tuple[Tensor, Tensor]:
    """Return logits (N, K) or (N,) and labels (N,), without the rows to ignore, on the CPU."""
    z, y = _logits_in(output), torch.as_tensor(labels)
    if y.is_floating_point() and not bool((y == y.trunc()).all()):
        found = f"{y.dtype} such as {float(y[y != y.trunc()][0]):.4g}"
        raise InputError(
            f"labels must be whole numbers, the column of each class; found {found}. Pass forward=, a "
            "function (model, batch) -> (logits, labels)."
        )
    if z.ndim == 2 and z.shape[1] == 1 and y.shape in (z.shape, z.shape[:1]):
        z, y = z[:, 0], y.reshape(-1)  # the head of a binary classifier, for BCEWithLogitsLoss
    binary = z.ndim == 1
    if not binary and -z.ndim <= dim < z.ndim:
        z = z.movedim(dim, -1)
    if (z.shape if binary else z.shape[:-1]) != y.shape:
        raise InputError(
            "logits must have the shape of the labels plus one axis for the classes; found "
            f"{tuple(_logits_in(output).shape)} for labels {tuple(y.shape)}, with dim={dim}. Set dim, or "
            "pass forward=, a function (model, batch) -> (logits, labels)."
        )
    z, y = z.reshape(-1) if binary else z.reshape(-1, z.shape[-1]), y.reshape(-1).long().to(z.device)
    if ignore_index is not None:
        kept = y != ignore_index
        if not bool(kept.all()):
            z, y = z[kept], y[kept]
    return z.cpu(), y.cpu()
