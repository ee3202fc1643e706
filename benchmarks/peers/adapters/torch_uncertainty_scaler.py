"""torch-uncertainty: TemperatureScaler with its defaults, L-BFGS; it takes a DataLoader of rows."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from adapters import Fitted


def declare_vision_operators() -> torch.library.Library:
    """Let torchvision be imported where its compiled part does not fit the installed PyTorch.

    torch-uncertainty imports all of torchvision. Package indexes offer it for PyTorch with CUDA, and beside
    the CPU build of PyTorch its import fails for these two operators, which calibration does not use.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


try:
    import torchvision  # noqa: F401
except RuntimeError:
    VISION_OPERATORS = declare_vision_operators()
from torch_uncertainty.post_processing import TemperatureScaler  # noqa: E402

PACKAGES = ("torch-uncertainty", "torch", "numpy")


def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit to batches of 1024 rows, which the library puts together again."""
    scaler = TemperatureScaler()
    rows = TensorDataset(torch.as_tensor(logits), torch.as_tensor(labels))
    scaler.fit(DataLoader(rows, batch_size=1024), progress=False)

    def predict_proba(new: np.ndarray) -> np.ndarray:
        return torch.softmax(scaler(torch.as_tensor(new)), dim=1).numpy()

    return Fitted(scaler.temperature[0].item(), predict_proba)


METHODS = {"TemperatureScaler": fit}
