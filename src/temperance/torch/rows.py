"""Tensors of any shape as rows of logits."""

from __future__ import annotations

import torch
from torch import Tensor

from temperance.calibrators import Calibrator
from temperance.torch.ops import working_dtype
from temperance.validation import InputError

__all__ = ["as_rows", "is_binary"]


def is_binary(logits: Tensor, calibrator: Calibrator) -> bool:
    """Say whether these are the (N,) logits of a binary classifier."""
    return logits.ndim == 1 and calibrator.n_classes_ == 2


def as_rows(logits: Tensor, calibrator: Calibrator, dim: int) -> Tensor:
    """Return (..., K) logits in the type that is computed in."""
    if logits.ndim == 0 or not -logits.ndim <= dim < logits.ndim:
        raise InputError(
            f"logits must have an axis {dim}, that of the classes; got shape {tuple(logits.shape)}."
        )
    z = logits.to(working_dtype(logits))
    if is_binary(logits, calibrator):
        return torch.stack([torch.zeros_like(z), z], dim=-1)
    calibrator._check_columns(z.shape[dim])
    return z.movedim(dim, -1)
