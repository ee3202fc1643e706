"""A calibrator's methods on tensors that NumPy cannot take: with gradients, on a device, or of more axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from temperance.calibrators import Calibrator
from temperance.core.ops import Array, Ops
from temperance.torch.ops import TorchOps, working_dtype
from temperance.torch.rows import as_rows, is_binary

__all__ = ["apply"]

Formula = Callable[[Array, Ops], Array]

# The formula behind each method.
_FORMULAS = {
    "transform": "_formula",
    "predict_proba": "_formula",
    "predict": "_decision_formula",
    "temperature": "_temperature_formula",
    "log_temperature_std": "_log_temperature_std_formula",
}


def apply(calibrator: Calibrator, method: str, logits: Tensor) -> Tensor:
    """Return what `method` gives for logits (..., K), on their device, in their type, with gradients."""
    formula = _formula_of(calibrator, method)
    dtype = working_dtype(logits)
    parameters = {
        name: torch.from_numpy(np.array(values, np.float64)).to(dtype).to(logits.device)
        for name, values in calibrator.parameters().items()
    }
    z = given = as_rows(logits, calibrator, dim=-1)
    if method == "predict_proba":
        # No constant added to a row changes it; without the largest logit, z / T loses no digits.
        z = z - torch.gather(z, -1, z.argmax(dim=-1, keepdim=True))
    result: Tensor = formula(z, TorchOps(parameters, dtype))
    _check(calibrator, method, given, result)
    finished = _finish(method, z, result, binary=is_binary(logits, calibrator))
    keep = finished.is_floating_point() and logits.is_floating_point()
    return finished.to(logits.dtype) if keep else finished


def _formula_of(calibrator: Calibrator, method: str) -> Formula:
    formula: Formula | None = getattr(calibrator, _FORMULAS.get(method, ""), None)
    if formula is None:
        raise NotImplementedError(
            f"{method} of {type(calibrator).__name__} has no PyTorch counterpart: it takes (N, K) on the "
            "CPU without gradients. Pass logits.detach().cpu().reshape(-1, K)."
        )
    return formula


def _finish(method: str, z: Tensor, result: Tensor, *, binary: bool) -> Tensor:
    if method == "predict_proba":
        return torch.softmax(result, dim=-1)
    if method == "predict":
        return torch.argmax(result, dim=-1)
    if method == "transform":
        return result[..., 1] - result[..., 0] if binary else result
    return result.expand(*z.shape[:-1], 1).squeeze(-1)  # TS has one number for all rows


def _check(calibrator: Calibrator, method: str, z: Tensor, result: Tensor) -> None:
    """Raise for rows that the calibrator refuses, in the words that it has for arrays."""
    if z.is_meta or z.numel() == 0 or torch.compiler.is_compiling():
        return
    good = torch.isfinite(z.detach().amax(dim=-1)).all() & ~torch.isnan(result.detach()).any()
    if not bool(good):
        getattr(calibrator, method)(z.detach().cpu().reshape(-1, z.shape[-1]))
