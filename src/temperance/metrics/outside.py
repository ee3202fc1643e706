"""Metrics from outside: any function of (probs, labels) that returns a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from temperance.core.arrays import Indices, Matrix
from temperance.errors import InputError
from temperance.loaders import load_object
from temperance.metrics.estimates import Estimate, Evaluation

Metric = Callable[[Matrix, Indices], float]
Metrics = Sequence[Metric | str] | Mapping[str, Metric | str]
"""Functions or `package.module:function`, or a mapping of names to these."""


def named_metrics(given: Metrics | None) -> dict[str, Metric]:
    """Return metrics by name: a function's own name, unless a mapping names it."""
    if not isinstance(given, Mapping):
        functions = [_function(one) for one in given or ()]
        return {getattr(function, "__name__", repr(function)): function for function in functions}
    return {name: _function(one) for name, one in given.items()}


def _function(given: Metric | str) -> Metric:
    function: Metric = load_object(given) if isinstance(given, str) else given
    if not callable(function):
        raise InputError(f"a metric must be a function of (probs, labels); found {given!r}.")
    return function


def value_of(name: str, metric: Metric, probs: Matrix, labels: Indices) -> float:
    """Return a metric of some rows; raise with its name if it cannot be computed."""
    try:
        return float(metric(probs, labels))
    except Exception as error:
        raise InputError(f"the metric {name} failed: {type(error).__name__}: {error}") from error


def with_metrics(
    ours: Evaluation,
    metrics: Mapping[str, Metric],
    probs: Matrix,
    labels: Indices,
    random_state: int,
    intervals: bool,
) -> Evaluation:
    """Return an evaluation with more metrics; without `intervals`, the ends of their intervals are nan."""
    estimates = dict(ours.estimates)
    for name, metric in metrics.items():
        value = value_of(name, metric, probs, labels)
        if not intervals:
            estimates[name] = Estimate(value, np.nan, np.nan)
            continue
        rng = np.random.default_rng(random_state)
        drawn = [rng.integers(len(labels), size=len(labels)) for _ in range(ours.draws)]
        sample = np.array([value_of(name, metric, probs[rows], labels[rows]) for rows in drawn])
        tails = [(1 - ours.confidence) / 2, (1 + ours.confidence) / 2]
        # Order statistics, since draws may be infinite.
        estimates[name] = Estimate(value, *map(float, np.quantile(sample, tails, method="inverted_cdf")))
    return replace(ours, estimates=estimates)
