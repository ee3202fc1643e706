"""How overconfidence depends on the shape of a prediction, across a population of classifiers.

This is the prior of `BayesianTemperatureScaling`: a small JSON file, learned from many tasks by
`benchmarks/learn_prior.py`. The package has one; users can learn their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
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
from temperance.json_fields import Field, parse_object, read_fields, reading_errors, write_fields

FORMAT, VERSION = "temperance population", 2
HEADER: dict[str, Any] = {
    "format": FORMAT,
    "version": VERSION,
    "features": list(SHAPE_FEATURES),
    "map_knots": KNOTS.tolist(),
}
MAX_NUMBER = 1e6  # largest logarithm of a temperature, scale or variance
SIZE, MAP_SIZE = len(SHAPE_FEATURES), len(KNOTS) - 1


@dataclass(frozen=True)
class Population:
    """A prior on the coefficients of log T, the log temperature of a row.

    The intercept is centred at `intercept[0] + intercept[1] * (mean log entropy of the rows)`. The map of
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
    """Return a weak prior: log T centred at 0, a scale of a half per feature, a straight map."""
    return Population(
        intercept=np.array([0.0, 0.0]),
        intercept_scale=1.0,
        mean=np.zeros(SIZE),
        covariance=np.eye(SIZE) / 4,
        map_mean=np.zeros(MAP_SIZE),
        map_covariance=np.eye(MAP_SIZE) / 12,
        class_scale=0.1,
    )


def _check_covariance(matrix: Matrix, where: str) -> Matrix:
    if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
        raise InputError(f"{where} must be symmetric and positive definite")
    return matrix


def _array(name: str, *shape: int, check: Callable[[Matrix, str], Matrix] | None = None) -> Field:
    return Field(name, list, low=-MAX_NUMBER, high=MAX_NUMBER, shape=shape, check=check)


def _scale(name: str) -> Field:
    return Field(name, float, low=1 / MAX_NUMBER, high=MAX_NUMBER)


FIELDS = (
    _array("intercept", 2),
    _scale("intercept_scale"),
    _array("mean", SIZE),
    _array("covariance", SIZE, SIZE, check=_check_covariance),
    _array("map_mean", MAP_SIZE),
    _array("map_covariance", MAP_SIZE, MAP_SIZE, check=_check_covariance),
    _scale("class_scale"),
    _scale("freedom"),
    _scale("class_freedom"),
    Field("provenance", dict),
)
"""The fields of a file, in the order in which they are written."""


@cache
def shipped_population() -> Population:
    """Return the shipped prior."""
    return _parse(resources.files("temperance").joinpath("population.json").read_bytes(), "the package")


def read_population(path: str | Path) -> Population:
    """Read a prior that `write_population` wrote."""
    return _parse(read_regular_file(path), str(path))


def write_population(population: Population, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a prior as JSON."""
    data = HEADER | write_fields(population, FIELDS)
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), overwrite=overwrite)


def _parse(content: bytes, where: str) -> Population:
    with reading_errors("holds no prior that can be read", advice="Learn it again.", where=where):
        data = parse_object(content)
        if any(data.get(name) != value for name, value in HEADER.items()):
            raise InputError(
                f"it must have format {FORMAT!r}, version {VERSION}, the features {SHAPE_FEATURES} and the "
                f"map_knots {KNOTS.tolist()}"
            )
        return Population(**read_fields(data, FIELDS))
