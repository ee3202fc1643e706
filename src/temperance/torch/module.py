"""A fitted calibrator as a module: logits in, calibrated logits out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from temperance.calibrators import Calibrator
from temperance.calibrators.estimator import model_of
from temperance.core.tensor_rows import TensorRows
from temperance.formulas.model import Model
from temperance.torch.ops import NO_DOUBLES, TORCH
from temperance.torch.rows import as_rows, is_binary


class CalibratorModule(nn.Module):
    """The result of `Calibrator.to_torch`: `transform` for tensors of any shape, device and float type.

    The fitted numbers are float64 buffers with the names of `Calibrator.parameters`, so `state_dict` holds
    them and `.to(device)` moves them; `.half()` and the like do not change them. Logits of 16 or 32
    bits are computed in float32, float64 in float64, under autocast too, and the result has the type of
    the logits. No value is checked: a row that the calibrator would refuse (NaN, or -inf for a method that
    weighs every logit) gives NaN.

    Parameters
    ----------
    calibrator : a fitted calibrator
    dim : int
        The axis of the classes. (N,) logits are those of a binary classifier if there are two classes.

    Examples
    --------
    >>> import torch
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=1000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits, task.labels)
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), cal.to_torch())
    >>> model(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, calibrator: Calibrator | Model, dim: int = -1) -> None:
        super().__init__()
        self._model = model_of(calibrator)
        self.dim = dim
        for name, values in self._model.arrays().items():
            self.register_buffer(name, torch.from_numpy(np.array(values, np.float64, order="C")))

    def forward(self, logits: Tensor) -> Tensor:
        """Return calibrated logits."""
        dim = -1 if is_binary(logits, self._model) else self.dim
        z = as_rows(logits, self._model, dim)
        arrays = {name: held.to(z.dtype) for name, held in self.named_buffers()}
        model = self._model.with_arrays(arrays)
        result: Tensor = model.calibrate(TensorRows(z, self._model.n_classes, TORCH))
        if is_binary(logits, self._model):
            result = result[..., 1] - result[..., 0]
        else:
            result = result.movedim(-1, dim)
        return result.to(logits.dtype) if logits.is_floating_point() else result

    def extra_repr(self) -> str:
        """Describe the calibrator."""
        return f"{self._model.name}, n_classes={self._model.n_classes}, dim={self.dim}"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        if fn(torch.empty(0)).device.type in NO_DOUBLES:
            self._buffers.update({name: held.float() for name, held in self.named_buffers()})
        before = dict(self.named_buffers())
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, moved in list(self.named_buffers()):
            if moved.dtype != before[name].dtype:
                # .half() is meant for the model; rounding the fitted numbers would change the calibrator.
                self._buffers[name] = before[name].to(moved.device)
        return self
