"""The operations of `core.ops`, on tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

__all__ = ["NO_DOUBLES", "TorchOps", "working_dtype"]

NO_DOUBLES = {"mps"}  # devices without float64

# Beyond it softplus(x) = x in float64; PyTorch's own limit is 20, where 1e-10 are missing.
SOFTPLUS_LIMIT = 40.0


def working_dtype(logits: Tensor) -> torch.dtype:
    """Return the type that logits are computed in."""
    small = (torch.float32, torch.float16, torch.bfloat16)
    return torch.float32 if logits.dtype in small else torch.float64


class TorchOps:
    """Operations on tensors of the type `dtype`, with a calibrator's numbers."""

    def __init__(self, parameters: Mapping[str, Tensor], dtype: torch.dtype) -> None:
        self.parameters, self.dtype = parameters, dtype

    def parameter(self, name: str, item: int | None = None) -> Tensor:
        """Return fitted numbers in the working type."""
        values = self.parameters[name].to(self.dtype)
        return values if item is None else values[item]

    def exp(self, x: Tensor) -> Tensor:
        """Return exp x."""
        return torch.exp(x)

    def log(self, x: Tensor) -> Tensor:
        """Return log x."""
        return torch.log(x)

    def log1p(self, x: Tensor) -> Tensor:
        """Return log(1 + x)."""
        return torch.log1p(x)

    def sqrt(self, x: Tensor) -> Tensor:
        """Return the square root."""
        return torch.sqrt(x)

    def softplus(self, x: Tensor) -> Tensor:
        """Return log(1 + exp x)."""
        return torch.nn.functional.softplus(x, threshold=SOFTPLUS_LIMIT)

    def relu(self, x: Tensor) -> Tensor:
        """Return max(x, 0)."""
        return torch.relu(x)

    def clip(self, x: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
        """Return x within the limits."""
        if isinstance(low, Tensor) and isinstance(high, Tensor):
            return torch.clamp(x, low, high)
        return torch.clamp(x, float(low), float(high))

    def where(self, mask: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        """Return x where the mask is true, else y."""
        return torch.where(mask, x, y)

    def is_finite(self, x: Tensor) -> Tensor:
        """Say where x is neither infinite nor NaN."""
        return torch.isfinite(x)

    def greater(self, x: Tensor, y: Tensor | float) -> Tensor:
        """Say where x > y."""
        return x > y

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over the last axis."""
        return torch.sum(x, dim=-1, keepdim=True)

    def concat(self, arrays: Sequence[Tensor]) -> Tensor:
        """Return the arrays side by side."""
        return torch.cat(list(arrays), dim=-1)

    def matmul(self, x: Tensor, matrix: Tensor) -> Tensor:
        """Return x @ matrix."""
        # In float64, which autocast and TF32 leave alone: they would take half of the digits.
        if x.device.type in NO_DOUBLES:
            return torch.sum(x.unsqueeze(-1) * matrix, dim=-2)
        return torch.matmul(x.double(), matrix.double()).to(self.dtype)

    def transpose(self, matrix: Tensor) -> Tensor:
        """Return the transposed."""
        return matrix.t()

    def argmax(self, x: Tensor) -> Tensor:
        """Return where the largest is."""
        return torch.argmax(x, dim=-1, keepdim=True)

    def at(self, x: Tensor, index: Tensor) -> Tensor:
        """Return x at the index of its row."""
        return torch.gather(x, -1, index)

    def one_hot(self, index: Tensor, size: int) -> Tensor:
        """Say which of `size` places the index is."""
        return torch.arange(size, device=index.device) == index

    def largest(self, x: Tensor, count: int) -> Tensor:
        """Return the `count` largest in falling order."""
        return torch.topk(x, count, dim=-1).values

    def count(self, mask: Tensor) -> Tensor:
        """Return how many are true."""
        return torch.sum(mask, dim=-1, keepdim=True)

    def take(self, table: Tensor, index: Tensor) -> Tensor:
        """Return the row of a table at each index."""
        return table[index] if table.ndim == 1 else table[index.squeeze(-1)]
