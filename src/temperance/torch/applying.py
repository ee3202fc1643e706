"""A calibrator's methods on tensors that NumPy cannot handle: with gradients, a device, or more axes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from temperance.core.tensor_rows import TensorRows
from temperance.formulas.applying import ONE_PER_ROW, evaluate
from temperance.formulas.applying import apply as apply_in_memory
from temperance.formulas.model import Model
from temperance.inputs.containers import open_logits
from temperance.inputs.validation import INSPECTED_ROWS, warn_of_probabilities
from temperance.torch.ops import TORCH, working_dtype
from temperance.torch.rows import as_rows, is_binary


def apply(model: Model, method: str, logits: Tensor, dim: int = -1) -> Tensor:
    """Return the result of `method` for logits with classes in `dim`, on their device, in their type.

    Gradients flow through it. The methods of a calibrator call it for tensors that NumPy cannot handle.

    Parameters
    ----------
    model : Model
        The fitted model of a calibrator, its `model_`.
    method : {"predict_proba", "transform", "temperature", "predict"}
        What to compute.
    logits : Tensor
        Of any shape.
    dim : int
        Axis of the classes.

    Examples
    --------
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = TemperatureScaling().fit(task.logits, task.labels)
    >>> z = torch.zeros(2, 3, requires_grad=True)
    >>> probs = apply(cal.model_, "predict_proba", z)
    >>> probs.shape, probs.requires_grad
    (torch.Size([2, 3]), True)
    """
    dtype = working_dtype(logits)
    arrays = {
        name: torch.from_numpy(np.array(values, np.float64)).to(dtype).to(logits.device)
        for name, values in model.arrays().items()
    }
    binary = is_binary(logits, model)
    z = given = as_rows(logits, model, dim=-1 if binary else dim)
    if method == "predict_proba":
        # Subtracting the largest logit changes no result, and z / T keeps its digits.
        z = z - torch.gather(z, -1, z.argmax(dim=-1, keepdim=True))
    if method == "predict" and model.keeps_class:
        result = z
    else:
        result = evaluate(model.with_arrays(arrays), method, TensorRows(z, model.n_classes, TORCH))
    _check(model, method, given, result)
    finished = _finish(method, z, result, binary=binary)
    if finished.ndim == z.ndim and not binary:
        finished = finished.movedim(-1, dim)
    keep = finished.is_floating_point() and logits.is_floating_point()
    return finished.to(logits.dtype) if keep else finished


def _finish(method: str, z: Tensor, result: Tensor, *, binary: bool) -> Tensor:
    if method == "predict_proba":
        return torch.softmax(result, dim=-1)
    if method == "predict":
        return torch.argmax(result, dim=-1)
    if method in ONE_PER_ROW:
        return result.expand(*z.shape[:-1], 1).squeeze(-1)  # TS has one number for all rows
    return result[..., 1] - result[..., 0] if binary else result


def _check(model: Model, method: str, z: Tensor, result: Tensor) -> None:
    """Raise for rows that the calibrator refuses, with the same message as for arrays."""
    if z.is_meta or z.numel() == 0 or torch.compiler.is_compiling():
        return
    good = torch.isfinite(z.detach().amax(dim=-1)).all() & ~torch.isnan(result.detach()).any()
    rows = z.detach().reshape(-1, z.shape[-1])
    warn_of_probabilities(open_logits(rows[:INSPECTED_ROWS]).values)
    if not bool(good):
        apply_in_memory(model, method, rows.cpu())
