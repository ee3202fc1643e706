"""Calibrators for PyTorch: a module to add after a model, and the loop that collects logits.

logits, labels = temperance.torch.collect_logits(model, loader, device="cuda")
cal = temperance.BayesianTemperatureScaling().fit(logits, labels)
calibrated = torch.nn.Sequential(model, cal.to_torch())
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('temperance.torch needs PyTorch: pip install "temperance[torch]"') from error

from temperance.torch.collection import collect_logits

__all__ = ["collect_logits"]
