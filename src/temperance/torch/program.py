"""A fitted calibrator as a program of `torch.export`: a .pt2 file that runs without temperance."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from torch import Tensor, nn

from temperance.calibrators import Calibrator
from temperance.calibrators.estimator import model_of
from temperance.files import check_writable, write_atomically
from temperance.formulas.model import Model
from temperance.torch.module import CalibratorModule


class _Probabilities(nn.Module):
    """Logits (batch, K) to probabilities; the largest is subtracted first, as in `temperance.onnx.model`."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.calibrator = CalibratorModule(model)

    def forward(self, logits: Tensor) -> Tensor:
        calibrated: Tensor = self.calibrator(logits - logits.amax(dim=-1, keepdim=True))
        return calibrated.softmax(dim=-1)


def save_program(calibrator: Calibrator | Model, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a program that takes float32 logits (batch, K), of any batch size, and returns probabilities.

    Examples
    --------
    >>> import pathlib, tempfile, torch, temperance
    >>> from temperance.data import simulate
    >>> from temperance.torch.program import save_program
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.pt2"
    >>> save_program(cal, path)
    >>> torch.export.load(path).module()(torch.zeros(1, 3))
    tensor([[0.3333, 0.3333, 0.3333]])
    """
    model = model_of(calibrator)
    check_writable(path, overwrite=overwrite)
    example = torch.zeros(2, model.n_classes)
    shapes = {"logits": {0: torch.export.Dim("batch")}}
    program = torch.export.export(_Probabilities(model).eval(), (example,), dynamic_shapes=shapes)
    content = io.BytesIO()
    torch.export.save(program, content)
    write_atomically(path, content.getvalue(), overwrite=overwrite)
