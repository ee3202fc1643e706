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
_TOLD = 1e-3  # the caption gives the mapped value of this probability


def has_map(calibrator: Any) -> bool:
    """Say whether a fitted calibrator maps log-probabilities; `bayes` from old files does not."""
    return isinstance(calibrator, Calibrator) and "map_slopes" in calibrator.parameters()


def mapped(calibrator: Calibrator, probability: Vector, deviations: float = 0.0) -> Vector:
    """Return probabilities after the map of a calibrator, shifted by some standard errors of its slopes.

    This assumes independent errors of the slopes, since a calibrator does not store their covariance.
    """
    fitted = calibrator.parameters()
    knots, slopes = fitted["map_knots"], fitted["map_slopes"]
    errors = np.asarray(calibrator.standard_errors_.get("map_slopes", np.zeros_like(slopes)))
    lengths = np.clip(-np.log(probability)[:, None] - knots, 0.0, np.append(np.diff(knots), np.inf))
    error = np.sqrt(lengths**2 @ errors**2)
    after: Vector = np.exp(-np.maximum(lengths @ slopes - deviations * error, 0.0))
    return after


@dataclass(frozen=True, eq=False)
class MapDisplay(Display):
    """The probability after the map against the probability at T0, with a band of two standard errors.

    Attributes
    ----------
    calibrators : dict from name to Calibrator
        Fitted methods, each with a map.

    Examples
    --------
    >>> import temperance
    >>> from temperance.data import simulate
    >>> task = simulate(500, 5, random_state=0)
    >>> cal = temperance.MonotoneScaling().fit(task.logits, task.labels)
    >>> list(MapDisplay.from_calibrator(cal).calibrators)
    ['mono']
    """

    calibrators: Mapping[str, Calibrator]

    def __post_init__(self) -> None:
        without = [name for name, calibrator in self.calibrators.items() if not has_map(calibrator)]
        if without or not self.calibrators:
            raise InputError(
                "every method of the figure must have a map of probabilities, as mono and bayes do; found "
                f"{', '.join(without) or 'no method'}. Fit MonotoneScaling or BayesianTemperatureScaling."
            )

    @classmethod
    def from_calibrator(cls, calibrator: Calibrator) -> Self:
        """Show the map of a fitted calibrator: `mono` or `bayes`."""
        return cls({calibrator.key: calibrator})

    @classmethod
    def from_comparison(cls, comparison: Comparison, methods: Sequence[str] | None = None) -> Self:
        """Show the maps of some methods, by default of all with a map."""
        fitted = {name: result.calibrator for name, result in comparison.results.items()}
        with_map = [name for name, calibrator in fitted.items() if has_map(calibrator)]
        return cls({name: fitted[name] for name in (chosen(methods, fitted) if methods else with_map)})

    def chart(self) -> Chart:
        """Return one line per map with its knots and its band, and the diagonal."""
        before, bottom = np.geomspace(_MIN_BEFORE, 1.0, 121), _MIN_BEFORE
        marks: list[Mark] = [Line(before, before, label="unchanged")]
        for name, calibrator in self.calibrators.items():
            label, fitted = method_style(name).label, calibrator.parameters()
            knots = np.exp(-fitted["map_knots"])
            knots = knots[knots >= _MIN_BEFORE]
            at_knots = mapped(calibrator, knots)
            words = f"{label}, from T0 = {fitted['reference']:.3g}"
            pairs = zip(knots, at_knots, strict=True)
            tips = [f"{label}: {written(a)} becomes {written(b)}" for a, b in pairs]
            low, after, high = (mapped(calibrator, before, side) for side in (-2.0, 0.0, 2.0))
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
        for name, calibrator in self.calibrators.items():
            value = written(mapped(calibrator, np.array([_TOLD]))[0])
            found.setdefault(value, []).append(method_style(name).label)
        told = "; ".join(f"{value} with {', '.join(labels)}" for value, labels in found.items())
        return (
            f"A probability of {_TOLD:g} at the best single temperature T0 becomes {told}. Above the dashed "
            "line, probabilities were too small, below it too large, for a top class near 1. Points: where "
            "the slope can change. Bands: two standard errors, assuming independent slopes."
        )
