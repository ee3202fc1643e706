"""The operations of `core.ops`, on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from temperance.core.ops import TensorOps

NO_DOUBLES = {"mps"}  # devices without float64

# Beyond it softplus(x) = x in float64; PyTorch's own limit of 20 has an error of 1e-10.
SOFTPLUS_LIMIT = 40.0


def working_dtype(logits: Tensor) -> torch.dtype:
    """Return the type that logits are computed in."""
    small = (torch.float32, torch.float16, torch.bfloat16)
    return torch.float32 if logits.dtype in small else torch.float64


class TorchOps:
    """Operations on tensors."""

    exp: Any = staticmethod(torch.exp)
    log: Any = staticmethod(torch.log)
    log1p: Any = staticmethod(torch.log1p)
    sqrt: Any = staticmethod(torch.sqrt)
    relu: Any = staticmethod(torch.relu)
    where: Any = staticmethod(torch.where)
    isfinite: Any = staticmethod(torch.isfinite)
    greater: Any = staticmethod(torch.gt)
    transpose: Any = staticmethod(torch.t)

    def softplus(self, x: Tensor) -> Tensor:
        """Return log(1 + exp x)."""
        return torch.nn.functional.softplus(x, threshold=SOFTPLUS_LIMIT)

    def clip(self, x: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
        """Return x within the limits."""
        if isinstance(low, Tensor) and isinstance(high, Tensor):
            return torch.clamp(x, low, high)
        if isinstance(low, Tensor) or isinstance(high, Tensor):
            # Not float(high): a number of the meta device, or of an export, has no value yet.
            return torch.clamp(torch.clamp(x, min=low), max=high)
        return torch.clamp(x, float(low), float(high))

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over the last axis."""
        return torch.sum(x, dim=-1, keepdim=True)

    def dot(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum of x y over the last axis."""
        return self.sum(x * y)

    def concat(self, arrays: Sequence[Tensor]) -> Tensor:
        """Return the arrays side by side."""
        return torch.cat(list(arrays), dim=-1)

    def split(self, x: Tensor, at: int) -> tuple[Tensor, Tensor]:
        """Return the first columns, and the others."""
        return x[..., :at], x[..., at:]

    def outer(self, x: Tensor, numbers: Sequence[float]) -> Tensor:
        """Return x times each of the numbers."""
        return self.concat([x * number for number in numbers])

    def columns(self, x: Tensor, number: int) -> list[Tensor]:
        """Return each of the columns of x."""
        return [x[..., i : i + 1] for i in range(number)]

    def matmul(self, x: Tensor, matrix: Tensor) -> Tensor:
        """Return x @ matrix."""
        # In float64, which autocast and TF32 do not reduce to half of the digits.
        if x.device.type in NO_DOUBLES:
            return torch.sum(x.unsqueeze(-1) * matrix, dim=-2)
        return torch.matmul(x.double(), matrix.double()).to(x.dtype)

    def argmax(self, x: Tensor) -> Tensor:
        """Return where the largest is."""
        return torch.argmax(x, dim=-1, keepdim=True)

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        """Return x at the index of its row."""
        return torch.gather(x, -1, index)

    def one_hot(self, index: Tensor, size: int) -> Tensor:
        """Say which of `size` places the index is."""
        return torch.arange(size, device=index.device) == index

    def topk(self, x: Tensor, k: int) -> Tensor:
        """Return the `k` largest in descending order."""
        return torch.topk(x, k, dim=-1).values

    def take(self, table: Tensor, index: Tensor) -> Tensor:
        """Return the row of a table at each index."""
        return table[index] if table.ndim == 1 else table[index.squeeze(-1)]

    def searchsorted(self, edges: Tensor, x: Tensor) -> Tensor:
        """Return how many of the edges are below each x."""
        return torch.searchsorted(edges, x.contiguous())


TORCH: TensorOps = TorchOps()
