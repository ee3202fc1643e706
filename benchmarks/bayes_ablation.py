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
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bayes_evaluation import rows_of
from learn_prior import dataset_of, summaries
from numpy.typing import NDArray

from temperance import BayesianTemperatureScaling, TemperatureScaling, learning, metrics
from temperance.calibrators import bayesian
from temperance.calibrators.bayes_design import (
    INPUT_SPREAD,
    Design,
    build_design,
    interacting,
    temperature_blocks,
)
from temperance.calibrators.bayesian import BayesianFormula
from temperance.calibrators.model import Model
from temperance.core import top_label
from temperance.core.evidence import Block, maximise_evidence
from temperance.core.features import RowFeatures
from temperance.core.fit_data import FitData
from temperance.core.logit_rows import LogitRows
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


class MeanFormula(BayesianFormula):
    """T at the posterior mean instead of the average over the posterior."""

    def calibrate(self, rows: RowFeatures) -> Any:
        """Return outputs of z / T(z)."""
        return rows.divide(self.temperature_of(rows))


class AtTheMean(WithPrior):
    """Predict with T at the posterior mean."""

    def _fit(self, data: FitData) -> Model:
        model = super()._fit(data)
        return replace(model, formula=MeanFormula(**vars(model.formula)))


@dataclass(frozen=True, eq=False)
class LogitsFormula(BayesianFormula):
    """log T is also linear in every logit minus the mean."""

    logit_weights: Any = None

    def _log_temperature(self, rows: RowFeatures) -> tuple[Any, Any]:
        mean, std = super()._log_temperature(rows)
        return mean + rows.project(self.logit_weights), std


def _with_logits(parts: Design, rows: LogitRows, weights: Vector | None) -> TopLabelLikelihood:
    plain, z = parts.predictor(rows), rows.values
    inputs = (z - z.mean(axis=1, keepdims=True)) / (parts.reference * INPUT_SPREAD)
    both = ByClass(np.hstack([plain.features, inputs]), plain.group, plain.n_groups)
    return TopLabelLikelihood(rows, both, parts.link(), weights)


class WithLogits(WithPrior):
    """The K class weights of LTS as well, their width by evidence."""

    def _fit(self, data: FitData) -> Model:
        population, K = self._population(), data.n_classes
        parts = build_design(data, population)
        size = 1 + len(parts.centre)
        level, shape, classes = temperature_blocks(parts, population)
        blocks = [level, shape, Block.of_scale("logits", K, 0.03, population.class_freedom), classes]
        start = np.insert(parts.start(population, 0), size, np.zeros(K))
        found = maximise_evidence(data.objective(partial(_with_logits, parts)), blocks, start, data.n_rows)
        own = np.arange(size, size + K)
        kept = np.delete(np.arange(len(found.mode)), own)
        rest = replace(found, mode=found.mode[kept], covariance=found.covariance[np.ix_(kept, kept)])
        formula = bayesian._formula(rest, parts, interacting(K, parts.reference), population)
        weights = found.mode[own] / (parts.reference * INPUT_SPREAD)
        return self._model(data, LogitsFormula(**vars(formula), logit_weights=weights), found.solution)


class PlainLikelihood(WithPrior):
    """No more weight on the predicted class than the likelihood gives."""

    def _fit(self, data: FitData) -> Model:
        before, top_label.EMPHASIS = top_label.EMPHASIS, 0.0
        try:
            return super()._fit(data)
        finally:
            top_label.EMPHASIS = before


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
