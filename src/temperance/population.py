"""How overconfidence depends on the shape of a prediction, over a population of classifiers.

This is the prior of `BayesianTemperatureScaling`: a small JSON file, learned from many tasks by
`temperance.learning`. One is shipped with the package; users can learn their own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.features import SHAPE_FEATURES
from temperance.core.kernels import KNOTS
from temperance.errors import InputError
from temperance.files import read_regular_file, write_atomically

FORMAT, VERSION = "temperance population", 2
HEADER: dict[str, Any] = {
    "format": FORMAT,
    "version": VERSION,
    "features": list(SHAPE_FEATURES),
    "map_knots": KNOTS.tolist(),
}
LARGEST_NUMBER = 1e6  # of logarithms of temperatures, their scales and their variances
LARGEST_FILE = 1 << 24  # bytes: the shipped prior has a few thousand
SIZE, MAP_SIZE = len(SHAPE_FEATURES), len(KNOTS) - 1


@dataclass(frozen=True)
class Population:
    """A prior of the coefficients of log T, the log temperature of a row.

    The intercept is about `intercept[0] + intercept[1] * (mean log entropy of the rows)`. The map of
    log-probabilities (`core.maps`) has a normal prior on the steps between the logs of its slopes.
    """

    intercept: Vector
    intercept_scale: float
    mean: Vector
    covariance: Matrix
    map_mean: Vector
    map_covariance: Matrix
    class_scale: float
    freedom: float = 4.0
    class_freedom: float = 2.0
    provenance: dict[str, Any] = field(default_factory=dict)


def weak_population() -> Population:
    """Return a weak prior: log T about 0, a scale of a half for each feature, a straight map."""
    return Population(
        intercept=np.array([0.0, 0.0]),
        intercept_scale=1.0,
        mean=np.zeros(SIZE),
        covariance=np.eye(SIZE) / 4,
        map_mean=np.zeros(MAP_SIZE),
        map_covariance=np.eye(MAP_SIZE) / 12,
        class_scale=0.1,
    )


@cache
def shipped_population() -> Population:
    """Return the shipped prior."""
    return _parse(resources.files("temperance").joinpath("population.json").read_bytes(), "the package")


def read_population(path: str | Path) -> Population:
    """Read a prior that `write_population` wrote."""
    return _parse(read_regular_file(path, most=LARGEST_FILE), str(path))


def write_population(population: Population, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a prior as JSON."""
    data = dict(HEADER)
    for item in fields(Population):
        value = getattr(population, item.name)
        data[item.name] = value.tolist() if isinstance(value, np.ndarray) else value
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), overwrite=overwrite)


def _parse(content: bytes, where: str) -> Population:
    def fail(message: str) -> InputError:
        return InputError(f"holds no prior that can be read: {message}. Learn it again.", where=where)

    try:
        data = json.loads(content.decode())
    except (ValueError, RecursionError) as error:  # ValueError also for a number with too many digits
        raise fail(f"it must be JSON in UTF-8 ({error})") from None
    if not isinstance(data, dict) or any(data.get(name) != value for name, value in HEADER.items()):
        raise fail(
            f"it must have format {FORMAT!r}, version {VERSION}, the features {SHAPE_FEATURES} and the "
            f"map_knots {KNOTS.tolist()}"
        )
    shapes: dict[str, tuple[int, ...]] = {
        "intercept": (2,),
        "mean": (SIZE,),
        "covariance": (SIZE, SIZE),
        "map_mean": (MAP_SIZE,),
        "map_covariance": (MAP_SIZE, MAP_SIZE),
    }
    try:
        values = {item.name: data[item.name] for item in fields(Population)}
        provenance = values.pop("provenance")
        arrays = {name: np.array(values.pop(name), np.float64) for name in shapes}
        numbers = {name: float(value) for name, value in values.items()}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise fail(f"a field is missing or not a number ({error})") from None
    if any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise fail(f"{', '.join(shapes)} must have the shapes {list(shapes.values())}")
    everything = np.concatenate([*(array.ravel() for array in arrays.values()), list(numbers.values())])
    if not np.isfinite(everything).all() or min(numbers.values()) <= 0:
        raise fail("all numbers must be finite, and scales and freedoms above 0")
    if np.abs(everything).max() > LARGEST_NUMBER or min(numbers.values()) < 1 / LARGEST_NUMBER:
        raise fail(f"numbers must be within {LARGEST_NUMBER:g}, and scales and freedoms above its inverse")
    for name in ("covariance", "map_covariance"):
        matrix = arrays[name]
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
            raise fail(f"{name} must be symmetric and positive definite")
    return Population(**{**arrays, **numbers, "provenance": provenance})
