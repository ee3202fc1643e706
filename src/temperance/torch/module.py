"""A fitted calibrator on tensors: as a module, as a program in a file, or for a calibrator's own methods.

It computes with the operations of `core.ops`, here on tensors. On a CPU, where nothing is recorded, a module
leaves the work to NumPy.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from temperance.calibrators import Calibrator
from temperance.calibrators.estimator import model_of
from temperance.core.blocks import threads
from temperance.core.ops import TensorOps
from temperance.core.tensor_rows import TensorRows
from temperance.errors import InputError
from temperance.files import check_writable, write_atomically
from temperance.formulas.model import ONE_PER_ROW, Model, axis_of_classes, check_columns, check_kind, evaluate
from temperance.formulas.model import apply as apply_in_memory
from temperance.inputs.containers import framework_of, open_logits
from temperance.inputs.validation import INSPECTED_ROWS, check_choice

NO_DOUBLES = {"mps"}  # devices without float64

# Above it softplus(x) = x in float64; PyTorch's own limit of 20 has an error of 1e-10.
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
            # Not float(high): on the meta device, or during an export, a number has no value yet.
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
        """Return the columns of x."""
        return [x[..., i : i + 1] for i in range(number)]

    def matmul(self, x: Tensor, matrix: Tensor) -> Tensor:
        """Return x @ matrix."""
        # In float64, whose precision autocast and TF32 do not reduce.
        if x.device.type in NO_DOUBLES:
            return torch.sum(x.unsqueeze(-1) * matrix, dim=-2)
        return torch.matmul(x.double(), matrix.double()).to(x.dtype)

    def max(self, x: Tensor) -> Tensor:
        """Return the maximum over the last axis."""
        return torch.amax(x, dim=-1, keepdim=True)

    def argmax(self, x: Tensor) -> Tensor:
        """Return the index of the maximum."""
        if x.device.type != "cpu":
            return torch.argmax(x, dim=-1, keepdim=True)
        # The lowest index of a maximum, by vector loops: several times as fast on a CPU.
        smaller = self.number(x < self.max(x), x)
        index = smaller * x.shape[-1] + torch.arange(x.shape[-1], device=x.device)
        return torch.amin(index, dim=-1, keepdim=True).long()

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        """Return x at the index of its row."""
        return torch.gather(x, -1, index)

    def number(self, mask: Tensor, like: Tensor) -> Tensor:
        """Return 1 where the mask is true, else 0."""
        return mask.to(like.dtype)

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


METHOD_FOR = {"logits": "transform", "probabilities": "predict_proba"}
"""The method of a calibrator that gives each output of a module."""


class CalibratorModule(nn.Module):
    """The result of `Calibrator.to_torch`: `transform` for tensors of any shape, device and float type.

    The module of a calibrator that was fitted on probabilities takes these.

    The fitted numbers are float64 buffers with the names of `Calibrator.parameters`, so `state_dict` holds
    them and `.to(device)` moves them; `.half()` and the like do not change them. 16-bit and 32-bit logits are
    computed in float32, float64 in float64, even under autocast, and the result has the type of the logits.
    No value is checked: a row that the calibrator would reject (NaN, or -inf for a method that weighs every
    logit) gives NaN.

    Parameters
    ----------
    calibrator : a fitted calibrator
    dim : int, optional
        The axis of the classes, by default as in the fit. With two classes, (N,) and (N, 1) logits are the
        scores of a binary classifier.
    output : {"logits", "probabilities"}
        What it returns.

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

    def __init__(
        self, calibrator: Calibrator | Model, dim: int | None = None, output: str = "logits"
    ) -> None:
        super().__init__()
        check_choice("output", output, tuple(METHOD_FOR))
        self.method = METHOD_FOR[output]
        self._model = model_of(calibrator)
        self.dim = axis_of_classes(self._model, dim)
        for name, values in self._model.arrays().items():
            self.register_buffer(name, torch.from_numpy(np.array(values, np.float64, order="C")))

    def forward(self, logits: Tensor) -> Tensor:
        """Return calibrated logits or probabilities."""
        arrays = dict(self.named_buffers())
        if _numpy_can(logits) and all(held.device.type == "cpu" for held in arrays.values()):
            # Errors of rejected rows, and of `torch.vmap`, whose rows have no memory of their own.
            with suppress(InputError, RuntimeError), threads(torch.get_num_threads()):
                fitted = {name: held.numpy() if held.ndim else held.item() for name, held in arrays.items()}
                return apply_in_memory(
                    self._model.with_arrays(fitted), self.method, logits, self.dim, from_probs=False
                )
        return _compute(self._model, arrays, self.method, logits, self.dim)

    def extra_repr(self) -> str:
        """Describe the calibrator."""
        of = ", of probabilities" if self._model.of_probabilities else ""
        return f"{self._model.name}, n_classes={self._model.n_classes}, dim={self.dim}{of}"

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


class ProbabilityModule(CalibratorModule):
    """The same for a calibrator that was fitted on probabilities: `forward` takes these.

    Examples
    --------
    >>> import torch
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=1000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.probabilities, task.labels, from_probs=True)
    >>> cal.to_torch(output="probabilities")(torch.tensor([[0.5, 0.5, 0.0]])).shape
    torch.Size([1, 3])
    """

    def forward(self, probabilities: Tensor) -> Tensor:
        """Return calibrated logits or probabilities."""
        fitted_on = self._model.record.fitted_on
        assert fitted_on is not None
        p = probabilities.to(working_dtype(probabilities))
        binary = self._model.n_classes == 2 and (p.ndim == 1 or (p.ndim == 2 and p.shape[1] == 1))
        if binary:
            p = torch.stack([1 - p, p])
        elif fitted_on.renormalised:
            p = p / p.sum(dim=self.dim, keepdim=True)
        some = p != 0  # the logarithm of 0 has no derivative
        logits = torch.where(some, torch.log(torch.where(some, p, 1.0)), -torch.inf)
        if fitted_on.floor:
            logits = torch.clamp(logits, min=float(np.log(fitted_on.floor)))
        result = super().forward(logits[1] - logits[0] if binary else logits)
        return result.to(probabilities.dtype) if probabilities.is_floating_point() else result


def to_module(
    calibrator: Calibrator | Model, dim: int | None = None, output: str = "logits"
) -> CalibratorModule:
    """Return the module of a calibrator, which takes what the calibrator was fitted on.

    Examples
    --------
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> to_module(TemperatureScaling().fit(task.logits, task.labels))
    CalibratorModule(TemperatureScaling, n_classes=3, dim=-1)
    """
    model = model_of(calibrator)
    return (ProbabilityModule if model.of_probabilities else CalibratorModule)(model, dim, output)


def _numpy_can(logits: Tensor) -> bool:
    """Say whether NumPy can compute, in half of the time or less: nothing is recorded or differentiated."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[no-untyped-call, attr-defined]
        return False
    if type(logits) is not Tensor or torch._C._len_torch_dispatch_stack():
        return False
    return framework_of(logits) is None


def save_program(
    calibrator: Calibrator | Model,
    path: str | Path,
    *,
    dim: int | None = None,
    output: str = "probabilities",
    overwrite: bool = False,
) -> None:
    """Write a program that takes float32 logits (batch, K), of any batch size, and returns probabilities.

    If the calibrator was fitted on probabilities, the program takes `probabilities`.
    With dim=1, the default if the fit had it, logits belong to pixels, (batch, K, H, W). With
    output="logits" it returns calibrated logits.

    Examples
    --------
    >>> import pathlib, tempfile, torch, temperance
    >>> from temperance.data import simulate
    >>> from temperance.torch.module import save_program
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.pt2"
    >>> save_program(cal, path)
    >>> torch.export.load(path).module()(torch.zeros(1, 3))
    tensor([[0.3333, 0.3333, 0.3333]])
    """
    model = model_of(calibrator)
    check_writable(path, overwrite=overwrite)
    dim = axis_of_classes(model, dim)
    if dim not in (-1, 1):
        raise InputError(f"dim must be 1 or -1 in a program; found {dim}. Move the axis before it.")
    example = torch.full((2, model.n_classes, *(() if dim == -1 else (3, 5))), 1 / model.n_classes)
    sizes = {0: torch.export.Dim("batch")}
    if dim == 1:
        sizes |= {2: torch.export.Dim("height"), 3: torch.export.Dim("width")}
    if model.n_columns is None:
        sizes[1] = torch.export.Dim("positions", min=2)
    module = to_module(model, dim, output).eval()
    program = torch.export.export(module, (example,), dynamic_shapes=(sizes,))
    content = io.BytesIO()
    torch.export.save(program, content)
    write_atomically(path, content.getvalue(), overwrite=overwrite)


def apply(model: Model, method: str, logits: Tensor, dim: int = -1, from_probs: bool | None = None) -> Tensor:
    """Return the result of `method` for logits with classes in `dim`, on their device, in their type.

    Gradients flow through it. The methods of a calibrator call it for tensors that NumPy cannot handle.

    Parameters
    ----------
    model : Model
        The fitted model of a calibrator, its `model_`.
    method : {"predict_proba", "transform", "temperature", "predict"}
        What to compute.
    logits : Tensor
        Of any shape.
    dim : int
        Axis of the classes.
    from_probs : bool, optional
        False if these are logits even if they look like probabilities.

    Examples
    --------
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = TemperatureScaling().fit(task.logits, task.labels)
    >>> z = torch.zeros(2, 3, requires_grad=True)
    >>> probs = apply(cal.model_, "predict_proba", z)
    >>> probs.shape, probs.requires_grad
    (torch.Size([2, 3]), True)
    """
    arrays = {
        name: torch.from_numpy(np.array(values, np.float64)).to(working_dtype(logits)).to(logits.device)
        for name, values in model.arrays().items()
    }
    check = partial(_check, model, method, from_probs)
    return _compute(model, arrays, method, logits, dim, check)


def _compute(
    model: Model,
    arrays: dict[str, Tensor],
    method: str,
    logits: Tensor,
    dim: int,
    check: Callable[[Tensor, Tensor], None] | None = None,
) -> Tensor:
    """Return the result of `method`, with the fitted numbers in `arrays`; `check` can raise for some rows."""
    if model.n_classes == 2 and logits.ndim == 2 and logits.shape[1] == 1:  # the head of a binary classifier
        result = _compute(model, arrays, method, logits[:, 0], -1, check)
        return result[:, None] if method == "transform" else result
    binary = logits.ndim == 1 and model.n_classes == 2  # (N,), the logits of the second class
    if logits.ndim == 0 or not (binary or -logits.ndim <= dim < logits.ndim):
        raise InputError(
            f"logits must have an axis {dim} for the classes; found shape {tuple(logits.shape)}."
        )
    z = logits.to(working_dtype(logits))
    if binary:
        z = torch.stack([torch.zeros_like(z), z], dim=-1)
    else:
        check_columns(model, tuple(z.shape) if z.ndim > 1 else (1, *z.shape), dim if z.ndim > 1 else 1)
        z = z.movedim(dim, -1)
    given = z
    if method == "predict_proba":
        # Subtracting the largest logit changes no result, and keeps the precision of z / T.
        z = z - torch.amax(z, dim=-1, keepdim=True)
    if method == "predict" and model.keeps_class:
        result = z
    else:
        fitted = model.with_arrays({name: held.to(z.dtype) for name, held in arrays.items()})
        result = evaluate(fitted, method, TensorRows(z, z.shape[-1], TORCH))
    if check is not None:
        check(given, result)
    if method in ONE_PER_ROW:
        result = result.expand(*z.shape[:-1], 1).squeeze(-1)  # TS has one number for all rows
    elif method == "predict":
        result = TORCH.argmax(result).squeeze(-1)
    elif binary:
        result = (
            torch.softmax(result, dim=-1) if method == "predict_proba" else result[..., 1] - result[..., 0]
        )
    else:
        result = result.movedim(-1, dim)  # first: a softmax is fastest along the memory order of the logits
        result = torch.softmax(result, dim=dim) if method == "predict_proba" else result
    keep = result.is_floating_point() and logits.is_floating_point()
    return result.to(logits.dtype) if keep else result


def _check(model: Model, method: str, from_probs: bool | None, z: Tensor, result: Tensor) -> None:
    """Raise for rows that the calibrator rejects, with the same message as for arrays."""
    if z.is_meta or z.numel() == 0 or torch.compiler.is_compiling():
        return
    good = torch.isfinite(z.detach().amax(dim=-1)).all() & ~torch.isnan(result.detach()).any()
    rows = z.detach().reshape(-1, z.shape[-1])
    check_kind(model, open_logits(rows[:INSPECTED_ROWS]).values, from_probs)
    if not bool(good):
        apply_in_memory(model, method, rows.cpu(), from_probs=False)
