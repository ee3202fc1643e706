"""Tensors of any shape as rows of logits."""

from __future__ import annotations

import torch
from torch import Tensor

from temperance.errors import InputError
from temperance.formulas.applying import check_columns
from temperance.formulas.model import Model
from temperance.torch.ops import working_dtype


def is_binary(logits: Tensor, model: Model) -> bool:
    """Say whether these are the (N,) logits of a binary classifier."""
    return logits.ndim == 1 and model.n_classes == 2


def as_rows(logits: Tensor, model: Model, dim: int) -> Tensor:
    """Return (..., K) logits in the type of the computation."""
    if logits.ndim == 0 or not -logits.ndim <= dim < logits.ndim:
        raise InputError(
            f"logits must have an axis {dim}, that of the classes; found shape {tuple(logits.shape)}."
        )
    z = logits.to(working_dtype(logits))
    if is_binary(logits, model):
        return torch.stack([torch.zeros_like(z), z], dim=-1)
    check_columns(model, tuple(z.shape) if z.ndim > 1 else (1, *z.shape), dim if z.ndim > 1 else 1)
    return z.movedim(dim, -1)
