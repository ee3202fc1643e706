"""The effect of a map of log-probabilities on a probability, for `mono`, and for `bayes` before T(z).

With e = -log of a probability at the reference temperature T0, and U the map, the figure shows exp(-U(e)):
the probability after the map, relative to a top class near 1. On the diagonal nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from temperance.calibrators import Calibrator, method_style
from temperance.comparison import Comparison
from temperance.core.arrays import Vector
from temperance.display.base import Display, chosen
from temperance.display.chart import Axis, Band, Chart, Dots, Line, Mark, written
from temperance.errors import InputError

_MIN_BEFORE = 1e-6  # probability before the map
_MIN_AFTER = 1e-9  # probability after the map: lower ones are left out
_DEVIATIONS = 2.0
_TOLD = 1e-3  # the caption gives the mapped value of this probability


@dataclass(frozen=True, eq=False)
class ProbabilityMap:
    """The map of one calibrator: its reference temperature, knots, slopes, and their standard errors."""

    reference: float
    knots: Vector
    slopes: Vector
    errors: Vector

    @classmethod
    def of(cls, calibrator: Calibrator) -> ProbabilityMap:
        """Read the map of a fitted calibrator."""
        if not has_map(calibrator):
            raise InputError(
                "the calibrator must have a map of probabilities, as mono and bayes do; "
                f"{type(calibrator).__name__} has none. Fit MonotoneScaling or BayesianTemperatureScaling."
            )
        fitted = calibrator.parameters()
        slopes = fitted["map_slopes"]
        errors = calibrator.standard_errors_.get("map_slopes", np.zeros_like(slopes))
        return cls(float(fitted["reference"]), fitted["map_knots"], slopes, np.asarray(errors))

    def apply(self, probability: Vector, deviations: float = 0.0) -> Vector:
        """Return mapped probabilities, shifted by some standard errors.

        This assumes independent errors of the slopes, since a calibrator does not store their covariance.
        """
        widths = np.append(np.diff(self.knots), np.inf)
        lengths = np.clip(-np.log(probability)[:, None] - self.knots, 0.0, widths)
        error = np.sqrt(lengths**2 @ self.errors**2)
        mapped: Vector = np.exp(-np.maximum(lengths @ self.slopes - deviations * error, 0.0))
        return mapped


def has_map(calibrator: Any) -> bool:
    """Say whether a fitted calibrator maps log-probabilities; `bayes` from old files does not."""
    return isinstance(calibrator, Calibrator) and "map_slopes" in calibrator.parameters()


@dataclass(frozen=True, eq=False)
class MapDisplay(Display):
    """The probability after the map against the probability at T0, with a band of two standard errors.

    Attributes
    ----------
    maps : dict from name to ProbabilityMap
        The map of each method; `maps[name].apply(p)` maps probabilities.

    Examples
    --------
    >>> import temperance
    >>> from temperance.data import simulate
    >>> task = simulate(500, 5, random_state=0)
    >>> cal = temperance.MonotoneScaling().fit(task.logits, task.labels)
    >>> display = MapDisplay.from_calibrator(cal)
    >>> bool(display.maps["mono"].apply(np.array([0.01]))[0] < 1)
    True
    """

    maps: dict[str, ProbabilityMap]

    @classmethod
    def from_calibrator(cls, calibrator: Calibrator) -> Self:
        """Compute from a fitted calibrator: `mono` or `bayes`."""
        return cls.from_calibrators({calibrator.key: calibrator})

    @classmethod
    def from_calibrators(cls, calibrators: Mapping[str, Calibrator]) -> Self:
        """Compute from fitted calibrators, each with a map."""
        return cls({name: ProbabilityMap.of(calibrator) for name, calibrator in calibrators.items()})

    @classmethod
    def from_comparison(cls, comparison: Comparison, methods: Sequence[str] | None = None) -> Self:
        """Compute from the calibrators of some methods, by default of all with a map."""
        fitted = {name: result.calibrator for name, result in comparison.results.items()}
        mapping = [name for name, calibrator in fitted.items() if has_map(calibrator)]
        if methods is None and not mapping:
            raise InputError(
                "a figure of maps needs a method with a map of probabilities, mono or bayes; found "
                f"{', '.join(fitted)}. Compare one of these two as well."
            )
        return cls.from_calibrators({name: fitted[name] for name in chosen(methods, fitted, mapping)})

    def chart(self) -> Chart:
        """Return one line per map with its knots and its band, and the diagonal."""
        before, bottom = np.geomspace(_MIN_BEFORE, 1.0, 121), _MIN_BEFORE
        marks: list[Mark] = [Line(before, before, label="unchanged")]
        for name, one in self.maps.items():
            label, knots = method_style(name).label, np.exp(-one.knots)
            knots = knots[knots >= _MIN_BEFORE]
            at_knots = one.apply(knots)
            words = f"{label}, from T0 = {one.reference:.3g}"
            pairs = zip(knots, at_knots, strict=True)
            tips = [f"{label}: {written(a)} becomes {written(b)}" for a, b in pairs]
            low, after, high = (one.apply(before, side) for side in (-_DEVIATIONS, 0.0, _DEVIATIONS))
            marks.append(Band(before, low, high, method=name))
            marks.append(Line(before, after, method=name, label=words))
            marks.append(Dots(knots, at_knots, method=name, tips=tips))
            bottom = min(bottom, max(float(after.min()), _MIN_AFTER))
        return Chart(
            "Map of probabilities",
            self._in_words(),
            Axis("probability at T0", (_MIN_BEFORE, 1.3), log=True),
            Axis("after the map, relative to the top class", (bottom / 1.3, 1.3), log=True),
            marks,
        )

    def _in_words(self) -> str:
        found = dict[str, list[str]]()
        for name, one in self.maps.items():
            found.setdefault(written(one.apply(np.array([_TOLD]))[0]), []).append(method_style(name).label)
        told = "; ".join(f"{value} with {', '.join(labels)}" for value, labels in found.items())
        return (
            f"A probability of {_TOLD:g} at the best single temperature T0 becomes {told}. Above the dashed "
            "line, probabilities were too small, below it too large, for a top class near 1. Points: where "
            "the slope can change. Bands: two standard errors, assuming independent slopes."
        )
