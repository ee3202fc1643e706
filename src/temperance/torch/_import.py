"""PyTorch, or the sentence that says how to get it."""

from __future__ import annotations

try:
    import torch
except ImportError as error:  # pragma: no cover  the tests without extras see it
    raise ImportError('this needs PyTorch: pip install "temperance[torch]"') from error

__all__ = ["torch"]
