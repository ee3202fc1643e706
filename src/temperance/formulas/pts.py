"""PTS: T(z) = softplus(MLP(largest logits of z, in descending order))."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from temperance.core.arrays import AnyArray
from temperance.core.features import RowFeatures
from temperance.core.ops import Array
from temperance.core.predictors import Softplus
from temperance.errors import InputError
from temperance.formulas.model import Shape, TemperatureFormula
from temperance.inputs.validation import check_limits

MAX_WEIGHT = 1e30


@dataclass(frozen=True, eq=False)
class NetworkFormula(TemperatureFormula):
    """T(z) = softplus(MLP(x)), x the largest logits, standardised."""

    input_mean: Array
    input_scale: Array
    temperature_limits: Array
    coefs: tuple[Array, ...]
    intercepts: tuple[Array, ...]

    @property
    def any_columns(self) -> bool:
        """Whether the number of columns can differ from the fit: no, it is the number of inputs."""
        return False

    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return T of each row."""
        ops = rows.ops
        a = (rows.topk(self.input_mean.shape[0]) - self.input_mean) / self.input_scale
        for i, (weights, biases) in enumerate(zip(self.coefs, self.intercepts, strict=True)):
            a = ops.matmul(ops.relu(a) if i else a, weights) + biases
        return Softplus(self.temperature_limits[0], self.temperature_limits[1]).temperature(a, ops)

    def check(self) -> None:
        """Raise if no fit can give these numbers."""
        check_limits(self.temperature_limits)
        if not (self.input_scale > 1e-100).all():
            raise InputError(f"input_scale must be > 0; found {self.input_scale.min():g}.")
        largest = max(np.abs(layer).max() for layer in (*self.coefs, *self.intercepts))
        if not largest <= MAX_WEIGHT:
            raise InputError(f"weights and biases must be within {MAX_WEIGHT:g}; found {largest:g}.")

    def arrays(self) -> dict[str, AnyArray]:
        """Return the fitted numbers by name; the names for a layer contain its number."""
        named = {name: getattr(self, name) for name in ("input_mean", "input_scale", "temperature_limits")}
        for i, (weights, biases) in enumerate(zip(self.coefs, self.intercepts, strict=True), start=1):
            named |= {f"layer_{i}_weights": weights, f"layer_{i}_biases": biases}
        return named

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Build from the result of `arrays`, perhaps in another framework's arrays."""
        layers = range(1, 1 + sum(name.endswith("_biases") for name in arrays))
        return cls(
            arrays["input_mean"],
            arrays["input_scale"],
            arrays["temperature_limits"],
            tuple(arrays[f"layer_{i}_weights"] for i in layers),
            tuple(arrays[f"layer_{i}_biases"] for i in layers),
        )

    @classmethod
    def shapes(cls, n_classes: int, options: Mapping[str, Any], given: Collection[str]) -> dict[str, Shape]:
        """Return the shapes of the inputs and of the layers."""
        inputs = min(options["top_k"], n_classes)
        shapes: dict[str, Shape] = {
            "input_mean": (inputs,),
            "input_scale": (inputs,),
            "temperature_limits": (2,),
        }
        for i, (size, following) in enumerate(pairwise((inputs, *options["hidden"], 1)), start=1):
            shapes |= {f"layer_{i}_weights": (size, following), f"layer_{i}_biases": (following,)}
        return shapes
