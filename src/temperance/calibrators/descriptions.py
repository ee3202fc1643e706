"""Fitted numbers, explained in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector


def name_with_options(calibrator: Any) -> str:
    """Return the name of a method, with its options if any is not the default."""
    kind = type(calibrator)
    # scikit-learn's repr takes as long as the fit of a few hundred rows.
    default = calibrator.get_params() == kind().get_params()
    return kind.__name__ if default else repr(calibrator).removesuffix("()")


def estimate(value: float, error: Vector | float | None) -> str:
    """Format a number and its standard error, if any; a standard error of 0 means: not identified."""
    if error is not None and float(error) == 0:
        return f"{value:.4g}, not identified by the rows"
    return f"{value:.4g}" if error is None else f"{value:.4g} \u00b1 {float(error):.2g}"


def confidence_in_words(temperature: float) -> str:
    """Say what a single temperature means."""
    if temperature > 1.005:
        return f"the classifier is overconfident; its logits are {temperature:.3g} times too large"
    if temperature < 0.995:
        return f"the classifier is underconfident; its logits are {1 / temperature:.3g} times too small"
    return "the classifier is neither over- nor underconfident on average"


def entropy_weight_in_words(weight: float, error: Vector | None) -> str:
    """Say what the weight of the log entropy means here."""
    if error is not None and abs(weight) < 2 * float(error):
        return "no clear relation: sure and unsure predictions are about equally over- or underconfident"
    if weight > 0:
        return "unsure predictions need a higher temperature than sure ones: they are more overconfident"
    return "sure predictions need a higher temperature than unsure ones: they are more overconfident"


def class_weights_in_words(
    weights: Vector, errors: Vector | None, names: Sequence[object], count: int = 3
) -> str:
    """Name the classes whose logits raise and lower the temperature most."""
    order = np.argsort(weights, kind="stable")
    count = min(count, len(weights) // 2)

    def listed(classes: NDArray[np.intp]) -> str:
        rows = [
            f"  class {names[k]}: {estimate(weights[k], None if errors is None else errors[k])}"
            for k in classes
        ]
        return "\n".join(rows)

    return (
        f"w_L, most overconfident classes (their logits raise T):\n{listed(order[::-1][:count])}\n"
        f"w_L, least overconfident classes (their logits lower T):\n{listed(order[:count])}"
    )


def map_in_words(knots: Vector, slopes: Vector, errors: Vector) -> list[str]:
    """Say which probabilities were too small or too large according to a map, and give its slopes."""
    values = np.append(0.0, np.cumsum(slopes[:-1] * np.diff(knots)))
    lines = ["map, relative to the top class and at T0:"]
    for e, value in zip(knots[3::2], values[3::2], strict=True):
        times = f"{np.exp(min(abs(e - value), 300.0)):.3g} times too"
        said = "right" if abs(e - value) < 0.02 else f"{times} {'small' if e > value else 'large'}"
        lines.append(f"  a probability of {100 * np.exp(-e):.2g} % was {said}")
    bounds = [f"{100 * np.exp(-knot):.3g} %" for knot in knots[1:]]
    names = [f"above {bounds[0]}", *(f"down to {bound}" for bound in bounds[1:]), f"below {bounds[-1]}"]
    lines.append("  slopes; 1 keeps a log-probability as it is, less than 1 shrinks it:")
    lines += [f"    {name}: {estimate(w, e)}" for name, w, e in zip(names, slopes, errors, strict=True)]
    return lines
