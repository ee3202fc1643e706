"""What each part of BayesianTemperatureScaling is worth: it without the part, data sets left out.

    python benchmarks/bayes_ablation.py TASKS --out docs/bayesian/ablation.md [--draws 3] [--jobs 2]

Cells are the mean over tasks of NLL / NLL of TS, and of ECE (15 bins) / that of TS.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bayes_evaluation import rows_of
from learn_prior import dataset_of, summaries
from numpy.typing import NDArray

from temperance import BayesianTemperatureScaling, TemperatureScaling, learning, metrics
from temperance.calibrators import bayes_design
from temperance.core.evidence import Block, Posterior, maximise_evidence
from temperance.core.fit_data import FitData
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import ByClass
from temperance.core.top_label import TopLabelLikelihood
from temperance.learning import TaskSummary, learn_population
from temperance.population import Population, weak_population

SIZES = (20, 50, 200, 1000, 5000)
TEST_ROWS = 5000
OFF = {"class_scale": 1e-4, "class_freedom": 1e9}
Vector = NDArray[np.float64]


class WithPrior(BayesianTemperatureScaling):
    """The method with a prior that is at hand."""

    def __init__(
        self, *, class_bias: bool = False, prior: str = "population", population: Population | None = None
    ) -> None:
        super().__init__(class_bias=class_bias, prior=prior)
        self.population = population

    def _population(self) -> Population:
        assert self.population is not None
        return self.population


class AtTheMean(WithPrior):
    """T at the posterior mean instead of the average over the posterior."""

    def _predict_proba(self, rows: LogitRows) -> Vector:
        return rows.softmax(1 / self._temperature(rows))


class WithLogits(WithPrior):
    """Also linear in every logit less the mean: the K class weights of LTS, their width by evidence."""

    def _inputs(self, rows: LogitRows, reference: float) -> Vector:
        z = rows.values
        return (z - z.mean(axis=1, keepdims=True)) / (reference * bayes_design.INPUT_SPREAD)

    def _solve(
        self, sample: FitData, population: Population, parts: bayes_design.Design
    ) -> tuple[Any, Posterior]:
        def top_label(rows: LogitRows, weights: Vector | None) -> TopLabelLikelihood:
            plain = parts.predictor(rows)
            stored = np.hstack([plain.features, self._inputs(rows, parts.reference)])
            both = ByClass(stored, plain.group, plain.n_groups)
            return TopLabelLikelihood(rows, both, parts.link(), weights)

        K, size = sample.n_classes, 1 + len(parts.centre)
        level, shape, classes = bayes_design.temperature_blocks(parts, population)
        logits = Block.of_scale("logits", K, 0.03, population.class_freedom)
        start = np.insert(parts.start(population, 0), size, np.zeros(K))
        likelihood = sample.objective(top_label)
        found = maximise_evidence(likelihood, [level, shape, logits, classes], start, sample.n_rows)
        own = np.arange(size, size + K)
        without = np.delete(np.arange(len(found.mode)), own)
        self.logit_weights_ = found.mode[own]
        covariance = found.covariance[np.ix_(without, without)]
        # T of the rows is described without the part of the logits, which `_set_quantiles` does not know.
        plain = sample.objective(lambda rows, weights: _likelihood(parts, rows, weights))
        return plain, replace(found, mode=found.mode[without], covariance=covariance)

    def _log_temperature(self, rows: LogitRows) -> tuple[Vector, Vector]:
        mean, std = super()._log_temperature(rows)
        return mean + self._inputs(rows, self.reference_) @ self.logit_weights_, std


class PlainLikelihood(WithPrior):
    """No more weight on the predicted class than the likelihood gives."""

    def _solve(
        self, sample: FitData, population: Population, parts: bayes_design.Design
    ) -> tuple[Any, Posterior]:
        blocks = bayes_design.temperature_blocks(parts, population)
        likelihood = sample.objective(lambda rows, weights: _likelihood(parts, rows, weights))
        start = parts.start(population, 0)
        return likelihood, maximise_evidence(likelihood, blocks, start, sample.n_rows)


def _likelihood(parts: bayes_design.Design, rows: LogitRows, weights: Vector | None) -> LogLikelihood:
    return LogLikelihood(rows, parts.predictor(rows), parts.link(), weights)


def relearned(others: list[TaskSummary], **constants: float) -> Population:
    """Learn with other constants."""
    before = {name: getattr(learning, name) for name in constants}
    try:
        for name, value in constants.items():
            setattr(learning, name, value)
        return learn_population(others)
    finally:
        for name, value in before.items():
            setattr(learning, name, value)


def variants(others: list[TaskSummary]) -> dict[str, WithPrior]:
    """Return the method as it is and without each of its parts."""
    prior = learn_population(others)
    tight = 1e-10 * np.eye(len(prior.mean))
    no_shape = replace(prior, mean=np.zeros_like(prior.mean), covariance=tight)
    normal = relearned(others, FREEDOM=1e6)
    return {
        "as it is": WithPrior(population=prior),
        "no class temperatures": WithPrior(population=replace(prior, **OFF)),
        "no shape": WithPrior(population=no_shape),
        "neither: level alone": WithPrior(population=replace(no_shape, **OFF)),
        "shape held at the population's mean": WithPrior(population=replace(prior, covariance=tight)),
        "level knows no entropy": WithPrior(population=relearned(others, SLOPE_PENALTY=1e6)),
        "weak prior": WithPrior(population=weak_population()),
        "T at the posterior mean": AtTheMean(population=prior),
        "no weight on the top label": PlainLikelihood(population=prior),
        "normal tails": WithPrior(population=normal),
        "widths as learned": WithPrior(population=relearned(others, WIDTH=1.0, CLASS_WIDTH=1.0)),
        "each task weighs the same": WithPrior(
            population=learn_population([replace(task, dataset=task.name) for task in others])
        ),
        "and every logit less the mean": WithLogits(population=prior),
    }


def judge(path: Path, others: list[TaskSummary], size: int, draws: int) -> dict[str, list[float]]:
    """Return NLL and ECE of each variant over those of TS, on one task with one number of rows."""
    warnings.simplefilter("ignore")
    with np.load(path) as file:
        z, y = file["logits_val"].astype(np.float64), file["labels_val"].astype(np.intp)
        test, truth = file["logits_test"][:TEST_ROWS].astype(np.float64), file["labels_test"][:TEST_ROWS]
    scores: tuple[Callable[..., float], ...] = (metrics.nll, metrics.ece)
    found: dict[str, list[list[float]]] = {}
    methods = {"TS": TemperatureScaling(), **variants(others)}
    for draw in range(1 if size == len(y) else draws):
        rows = np.random.default_rng(draw).permutation(len(y))[:size]
        for name, method in methods.items():
            probs = method.fit(z[rows], y[rows]).predict_proba(test)
            found.setdefault(name, []).append([score(probs, truth) for score in scores])
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    return {name: (mean / means["TS"]).tolist() for name, mean in means.items()}


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    for name in ("TEMPERANCE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    known = summaries(options.tasks)
    cells: dict[tuple[str, str, int], list[list[float]]] = {}
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        waiting = []
        for path in sorted(options.tasks.glob("*.npz")):
            dataset = dataset_of(path)
            group = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}.get(dataset, "other")
            others = [task for task in known if task.dataset != dataset]
            waiting += [
                (group, size, pool.submit(judge, path, others, size, options.draws))
                for size in SIZES
                if size <= rows_of(path)
            ]
        for group, size, future in waiting:
            for name, values in future.result().items():
                cells.setdefault((name, group, size), []).append(values)
    text = [
        "# What each part is worth\n",
        f"Made by `make bayes-ablation`: {len(known)} tasks, {options.draws} draws. Mean over tasks of",
        "NLL / NLL of TS, and ECE (15 bins) / that of TS; the prior was learned without the task's data set.",
    ]
    for group in ("CIFAR-10", "CIFAR-100", "other"):
        header = ["", *(f"N = {size}" for size in SIZES)]
        text += [f"\n## {group}\n", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        for name in dict.fromkeys(key[0] for key in cells if key[0] != "TS"):
            means = [np.mean(cells[name, group, size], axis=0) for size in SIZES]
            text.append(f"| {name} | " + " | ".join(f"{nll:.4f}, {ece:.2f}" for nll, ece in means) + " |")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
