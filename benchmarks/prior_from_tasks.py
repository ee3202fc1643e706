"""Learn the population prior of `BayesianTemperatureScaling` from tasks: logits with labels.

Each task is summarised separately, by the quadratic approximation of the log-likelihood of its coefficients
and by the width of its class temperatures that maximises the evidence. Expectation maximisation then finds
the population

    level_i ~ t(c0 + c1 (mean log entropy)_i, s^2)        shape_i ~ t(m, S)        map_i ~ t(m', S')

in which each data set has the same weight, however many classifiers it has. Heavy tails keep an outlying task
from widening the prior. Both steps of the iteration have a closed form, so it needs no solver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag

from temperance.calibrators.bayes import build_design, prior_blocks
from temperance.core.arrays import Matrix, Vector
from temperance.core.evidence import maximise_evidence
from temperance.core.fisher import fisher_scoring
from temperance.core.objective import FitData, Prior
from temperance.errors import InputError
from temperance.inputs.containers import open_labelled
from temperance.population import MAP_SIZE, SIZE, Population, weak_population

# Chosen by leaving data sets out, see docs/bayesian.md: the weight of the tails, and the factors of variances
# in the prior, here for class temperatures, which tau widens if the rows support it.
FREEDOM = 4.0
CLASS_WIDTH = 0.16
SLOPE_PENALTY = 0.004  # precision that pulls the level's slope to 0: less than a hundredth of one task's
ROUNDS = 200


@dataclass(frozen=True)
class _Part:
    """Neighbouring coefficients with their own covariance, regularised by pseudo-tasks.

    `width` is the factor of their variances in the prior.
    """

    at: slice
    width: float
    pseudo_tasks: float
    pseudo_deviation: float

    @property
    def size(self) -> int:
        return int(self.at.stop - self.at.start)


# The level is wider, for an unusual task with 20 rows and no errors.
LEVEL = _Part(slice(0, 1), width=2.0, pseudo_tasks=1.0, pseudo_deviation=0.5)
SHAPE = _Part(slice(1, 1 + SIZE), width=0.3, pseudo_tasks=3.0, pseudo_deviation=0.05)
MAP = _Part(slice(1 + SIZE, 1 + SIZE + MAP_SIZE), width=0.3, pseudo_tasks=3.0, pseudo_deviation=0.29)
PARTS = (LEVEL, SHAPE, MAP)


@dataclass(frozen=True)
class TaskSummary:
    """One task: log-likelihood of its coefficients, about -1/2 theta' information theta + linear . theta."""

    name: str
    dataset: str
    n_rows: int
    n_classes: int
    data_hash: str
    mean_log_entropy: float
    information: Matrix
    linear: Vector
    class_scale: float


def summarise_task(name: str, dataset: str, logits: Any, labels: ArrayLike) -> TaskSummary:
    """Fit the coefficients of one task under a weak prior, and remove the prior again."""
    rows = open_labelled(logits, labels).checked()
    weak = weak_population()
    data = FitData(rows)
    design = build_design(data, weak)
    mean = np.concatenate([[design.expected], weak.mean, weak.map_mean])
    precision = block_diag(
        weak.intercept_scale**-2.0, np.linalg.inv(weak.covariance), np.linalg.inv(4 * weak.map_covariance)
    )
    without_classes = replace(
        design, group_of_class=np.full(rows.n_classes, -1), class_of_group=np.empty(0, np.intp)
    )
    likelihood = without_classes.likelihood(rows, None)
    penalised = likelihood.with_prior(Prior(mean, precision / rows.n_rows))
    solution = fisher_scoring(penalised, without_classes.start(weak))
    if solution.covariance is None:
        raise InputError(f"the labels of {name} do not determine a temperature. Leave the task out.")
    information = _positive(np.linalg.inv(solution.covariance) - precision)
    linear = information @ solution.parameters + precision @ (solution.parameters - mean)
    objective = data.objective(design.likelihood)
    posterior = maximise_evidence(objective, prior_blocks(design, weak), design.start(weak), data.n_rows)
    digest = hashlib.sha256(np.ascontiguousarray(rows.values, np.float64).tobytes())
    digest.update(np.ascontiguousarray(rows.labels, np.int64).tobytes())
    return TaskSummary(
        name,
        dataset,
        rows.n_rows,
        rows.n_classes,
        digest.hexdigest(),
        design.mean_log_entropy,
        information,
        linear,
        # The standard deviation of the class temperatures that maximises the evidence of this task.
        float(weak.class_scale * posterior.taus["class temperature"] ** 0.5),
    )


def _positive(matrix: Matrix) -> Matrix:
    """Return the nearest positive semi-definite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 1e-6)) @ vectors.T


def learn_population(tasks: Sequence[TaskSummary]) -> Population:
    """Return the population that the tasks are drawn from; each data set has the same weight."""
    of_dataset = [task.dataset for task in tasks]
    if len(set(of_dataset)) < 3:
        raise InputError(
            f"a population needs tasks from at least 3 data sets; found {len(set(of_dataset))}. Add tasks."
        )
    weights = np.array([1 / of_dataset.count(dataset) for dataset in of_dataset])
    entropies = np.column_stack([np.ones(len(tasks)), [task.mean_log_entropy for task in tasks]])
    means = np.zeros((len(tasks), MAP.at.stop))
    covariances = [np.eye(part.size) * 0.1 for part in PARTS]
    pulls = np.ones((len(PARTS), len(tasks)))
    for _ in range(ROUNDS):
        theta, spread = _tasks_given(tasks, means, covariances, pulls)
        intercept, means, covariances, pulls = _population_given(theta, spread, weights, pulls, entropies)
    log_scales = [np.log(task.class_scale) for task in tasks]
    return Population(
        intercept=intercept,
        intercept_scale=float(np.sqrt(LEVEL.width * covariances[0][0, 0])),
        mean=means[0, SHAPE.at],
        covariance=SHAPE.width * covariances[1],
        map_mean=means[0, MAP.at],
        map_covariance=MAP.width * covariances[2],
        class_scale=float(np.sqrt(CLASS_WIDTH) * np.exp(np.average(log_scales, weights=weights))),
        freedom=FREEDOM,
        provenance=_provenance(tasks, weights, theta),
    )


def _tasks_given(
    tasks: Sequence[TaskSummary], means: Matrix, covariances: list[Matrix], pulls: Matrix
) -> tuple[Matrix, NDArray[np.float64]]:
    """Return each task's coefficients given the population, and their covariances.

    `pulls` are the precisions of each part of each task, relative to the population: 1 / tau.
    """
    precisions = np.zeros((len(tasks), means.shape[1], means.shape[1]))
    for part, pull, covariance in zip(PARTS, pulls, covariances, strict=True):
        precisions[:, part.at, part.at] = pull[:, None, None] * np.linalg.inv(covariance)
    informations = np.array([task.information for task in tasks], np.float64)
    spread = np.asarray(np.linalg.inv(informations + precisions), np.float64)
    linear = np.array([task.linear for task in tasks]) + np.einsum("tij,tj->ti", precisions, means)
    return np.einsum("tij,tj->ti", spread, linear), spread


def _population_given(
    theta: Matrix, spread: NDArray[np.float64], weights: Vector, pulls: Matrix, entropies: Matrix
) -> tuple[Vector, Matrix, list[Matrix], Matrix]:
    """Return the population given the tasks' coefficients: line of the level, means, covariances, pulls."""
    weighted = entropies * (weights * pulls[0])[:, None]
    penalty = np.diag([0.0, SLOPE_PENALTY])
    intercept = np.asarray(np.linalg.solve(weighted.T @ entropies + penalty, weighted.T @ theta[:, 0]))
    means, covariances, new_pulls = np.empty_like(theta), [], []
    for part, pull in zip(PARTS, pulls, strict=True):
        own, share = theta[:, part.at], weights * pull
        means[:, part.at] = (entropies @ intercept)[:, None] if part is LEVEL else share @ own / share.sum()
        off = own - means[:, part.at]
        scatter = off[:, :, None] * off[:, None, :] + spread[:, part.at, part.at]
        pseudo = part.pseudo_tasks * part.pseudo_deviation**2 * np.eye(part.size)
        scatter_of_all = np.tensordot(share, scatter, 1) + pseudo
        covariance = np.asarray(scatter_of_all) / (weights.sum() + part.pseudo_tasks)
        distances = np.sum(np.linalg.inv(covariance) * scatter, axis=(1, 2))
        covariances.append(covariance)
        new_pulls.append((FREEDOM + part.size) / (FREEDOM + distances))
    return intercept, means, covariances, np.stack(new_pulls)


def _provenance(tasks: Sequence[TaskSummary], weights: Vector, theta: Matrix) -> dict[str, Any]:
    return {
        "tasks": [
            {
                "task": task.name,
                "dataset": task.dataset,
                "rows": task.n_rows,
                "classes": task.n_classes,
                "sha256": task.data_hash,
                "weight": round(float(weight), 4),
                "mean_log_entropy": round(task.mean_log_entropy, 4),
                "coefficients": np.round(coefficients, 4).tolist(),
                "class_scale": round(task.class_scale, 4),
            }
            for task, weight, coefficients in zip(tasks, weights, theta, strict=True)
        ]
    }
