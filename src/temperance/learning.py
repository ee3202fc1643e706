"""Learning the population prior of `BayesianTemperatureScaling` from tasks: logits with labels.

Each task is summarised by itself: the quadratic approximation of the log-likelihood of its coefficients, and
the widths that the evidence gives to its class terms. Expectation maximisation then finds the population

    level_i ~ t(c0 + c1 (mean log entropy)_i, s^2)        shape_i ~ t(m, S)

in which a data set weighs as much as any other, however many classifiers of it there are. Heavy tails keep
a task that is unlike the rest from widening the prior of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag

from temperance.calibrators.bayes_design import (
    MOST_CLASSES,
    Design,
    build_design,
    interacting,
    mean_log_entropy,
    offset_blocks,
    temperature_blocks,
)
from temperance.containers import open_labelled
from temperance.core.arrays import Matrix, Vector
from temperance.core.evidence import maximise_evidence
from temperance.core.features import SHAPE_FEATURES
from temperance.core.fisher import fisher_scoring
from temperance.core.fit_data import InMemoryFitData
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.offsets import OffsetLogLikelihood
from temperance.core.predictors import Linear
from temperance.population import Population, weak_population
from temperance.validation import InputError

# Chosen by leaving data sets out, see docs/bayesian.md: how heavy the tails are; the part of the variances of
# shape and class terms that a new task is held by, which tau widens where the rows say so; pseudo-tasks of
# this deviation that keep the covariance regular; the same for the level.
FREEDOM = 4.0
WIDTH, CLASS_WIDTH = 0.3, 0.16
PSEUDO_TASKS, PSEUDO_DEVIATION = 3.0, 0.05
LEVEL_PSEUDO_TASKS, LEVEL_PSEUDO_DEVIATION = 1.0, 0.5
SLOPE_PENALTY = 0.004  # of the level's slope, towards 0: less than a hundredth of what one task says
ROUNDS = 200


@dataclass(frozen=True)
class TaskSummary:
    """One task: log-likelihood of its coefficients, about -1/2 theta' information theta + linear . theta."""

    name: str
    dataset: str
    n_rows: int
    n_classes: int
    mean_log_entropy: float
    information: Matrix
    linear: Vector
    scales: dict[str, float]


def summarise_task(name: str, dataset: str, logits: Any, labels: ArrayLike) -> TaskSummary:
    """Fit the coefficients of one task under a weak prior, and take the prior out again."""
    rows = open_labelled(logits, labels)
    weak = weak_population()
    sample = InMemoryFitData(rows)
    parts = build_design(sample, weak)
    stored = Linear(parts.predictor(rows).features)
    mean = np.concatenate([[parts.expected], weak.mean])
    precision = block_diag(weak.intercept_scale**-2.0, np.linalg.inv(weak.covariance))
    penalised = LogLikelihood(rows, stored, parts.link(), prior=Prior(mean, precision / rows.n_rows))
    solution = fisher_scoring(penalised, np.concatenate([[np.log(parts.reference)], weak.mean]))
    if solution.covariance is None:
        raise InputError(f"the labels of {name} determine no temperature: leave the task out.")
    information = _positive(np.linalg.inv(solution.covariance) - precision)
    linear = information @ solution.parameters + precision @ (solution.parameters - mean)
    entropy = mean_log_entropy(sample)
    scales = _class_scales(rows, parts, weak)
    return TaskSummary(name, dataset, rows.n_rows, rows.n_classes, entropy, information, linear, scales)


def _positive(matrix: Matrix) -> Matrix:
    """Return the nearest matrix with no direction of negative information."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 1e-6)) @ vectors.T


def _class_scales(rows: LogitRows, parts: Design, weak: Population) -> dict[str, float]:
    """Return the standard deviations of the class terms that the evidence of this task chooses."""
    blocks = temperature_blocks(parts, weak)
    plain = LogLikelihood(rows, parts.predictor(rows), parts.link())
    taus = maximise_evidence(plain, blocks, parts.start(weak, 0), rows.n_rows).taus
    scales = {"class_scale": weak.class_scale * taus["class temperature"] ** 0.5}
    if rows.n_classes <= MOST_CLASSES:
        inputs = interacting(rows.n_classes, parts.reference)
        biased = OffsetLogLikelihood(rows, parts.predictor(rows), parts.link(), inputs)
        start = parts.start(weak, inputs.n_offsets)
        taus = maximise_evidence(biased, blocks + offset_blocks(inputs, weak), start, rows.n_rows).taus
        scales["bias_scale"] = weak.bias_scale * taus["class bias"] ** 0.5
        if "class interactions" in taus:
            scales["interaction_scale"] = weak.interaction_scale * taus["class interactions"] ** 0.5
    return scales


def learn_population(tasks: Sequence[TaskSummary]) -> Population:
    """Return the population that the tasks are drawn from; each data set has the same weight."""
    if len({task.dataset for task in tasks}) < 3:
        raise InputError("a population needs tasks of at least 3 data sets: add some.")
    of_dataset = [task.dataset for task in tasks]
    weights = np.array([1 / of_dataset.count(dataset) for dataset in of_dataset])
    entropies = np.column_stack([np.ones(len(tasks)), [task.mean_log_entropy for task in tasks]])
    state = _State(np.zeros(2), 0.25, np.zeros(len(SHAPE_FEATURES)), 0.1 * np.eye(len(SHAPE_FEATURES)))
    pulls = np.ones((2, len(tasks)))
    for _ in range(ROUNDS):
        state, pulls, theta = _round(tasks, weights, entropies, state, pulls)
    return Population(
        intercept=state.intercept,
        intercept_scale=float(np.sqrt(state.level_variance)),
        mean=state.mean,
        covariance=WIDTH * state.covariance,
        freedom=FREEDOM,
        **_mean_scales(tasks, weights),
        provenance=_provenance(tasks, weights, theta),
    )


@dataclass(frozen=True)
class _State:
    intercept: Vector
    level_variance: float
    mean: Vector
    covariance: Matrix


def _round(
    tasks: Sequence[TaskSummary], weights: Vector, entropies: Matrix, state: _State, pulls: Matrix
) -> tuple[_State, Matrix, Matrix]:
    """One round: the tasks' coefficients given the population, then the population given them.

    `pulls` are the precisions of level and shape of each task relative to the population's: 1 / tau.
    """
    levels = entropies @ state.intercept
    inverse = np.linalg.inv(state.covariance)
    theta, covariances = [], []
    for task, level, (pull, shape_pull) in zip(tasks, levels, pulls.T, strict=True):
        precision = block_diag(pull / state.level_variance, shape_pull * inverse)
        covariance = np.linalg.inv(task.information + precision)
        mean = np.concatenate([[level], state.mean])
        theta.append(covariance @ (task.linear + precision @ mean))
        covariances.append(covariance)
    return _updated(np.array(theta), np.array(covariances), weights, pulls, entropies)


def _updated(
    theta: Matrix, spread: NDArray[np.float64], weights: Vector, pulls: Matrix, entropies: Matrix
) -> tuple[_State, Matrix, Matrix]:
    level_weights, shape_weights = weights * pulls
    weighted = entropies * level_weights[:, None]
    penalty = np.diag([0.0, SLOPE_PENALTY])
    slope = np.linalg.solve(weighted.T @ entropies + penalty, weighted.T @ theta[:, 0])
    intercept = np.asarray(slope, np.float64)
    squares = (theta[:, 0] - entropies @ intercept) ** 2 + spread[:, 0, 0]
    pseudo = LEVEL_PSEUDO_TASKS * LEVEL_PSEUDO_DEVIATION**2
    level_variance = (level_weights @ squares + pseudo) / (weights.sum() + LEVEL_PSEUDO_TASKS)
    mean = shape_weights @ theta[:, 1:] / shape_weights.sum()
    off = theta[:, 1:] - mean
    scatter = off[:, :, None] * off[:, None, :] + spread[:, 1:, 1:]
    size = len(mean)
    total = np.tensordot(shape_weights, scatter, 1) + PSEUDO_TASKS * PSEUDO_DEVIATION**2 * np.eye(size)
    covariance = total / (weights.sum() + PSEUDO_TASKS)
    distances = np.sum(np.linalg.inv(covariance) * scatter, axis=(1, 2))
    pulls = np.stack(
        [(FREEDOM + 1) / (FREEDOM + squares / level_variance), (FREEDOM + size) / (FREEDOM + distances)]
    )
    return _State(intercept, float(level_variance), mean, covariance), pulls, theta


def _mean_scales(tasks: Sequence[TaskSummary], weights: Vector) -> dict[str, float]:
    """Return the geometric means of the class terms' scales over the tasks that have them."""
    result = {}
    for name in ("class_scale", "bias_scale", "interaction_scale"):
        has = np.array([name in task.scales for task in tasks])
        if not has.any():
            raise InputError("a population needs some tasks of at most 32 classes: add some.")
        logs = [np.log(task.scales[name]) for task in tasks if name in task.scales]
        result[name] = float(np.sqrt(CLASS_WIDTH) * np.exp(np.average(logs, weights=weights[has])))
    return result


def _provenance(tasks: Sequence[TaskSummary], weights: Vector, theta: Matrix) -> dict[str, Any]:
    return {
        "tasks": [
            {
                "task": task.name,
                "dataset": task.dataset,
                "rows": task.n_rows,
                "classes": task.n_classes,
                "weight": round(float(weight), 4),
                "mean_log_entropy": round(task.mean_log_entropy, 4),
                "coefficients": np.round(coefficients, 4).tolist(),
                "scales": {name: round(scale, 4) for name, scale in task.scales.items()},
            }
            for task, weight, coefficients in zip(tasks, weights, theta, strict=True)
        ]
    }
