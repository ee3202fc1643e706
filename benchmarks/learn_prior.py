"""Learn the population prior of BayesianTemperatureScaling from a folder of task files.

    python benchmarks/learn_prior.py TASKS --out src/temperance/population.json --overwrite

A task file is <dataset>__<model>.npz with `logits_val` and `labels_val`, from which the prior is learned, and
a test part, which is never read. From a task with more rows than `MOST_ROWS`, evenly spaced rows are used.
The part before a hyphen in the data set's name is its family, which counts as one data set. The prior's file
lists every task, with a hash of the rows that were used.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from prior_from_tasks import TaskSummary, learn_population, summarise_task

from temperance.population import write_population

MOST_ROWS = 10_000


def dataset_of(path: Path) -> str:
    """Return the data set that a task file is of."""
    return path.stem.split("__")[0].split("-")[0]


def summaries(folder: Path) -> list[TaskSummary]:
    """Summarise every task of a folder."""
    result = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            step = -(-len(file["labels_val"]) // MOST_ROWS)
            logits, labels = file["logits_val"][::step], file["labels_val"][::step]
        result.append(summarise_task(path.stem, dataset_of(path), logits, labels))
        print(f"{path.stem}: {len(labels)} rows", flush=True)
    return result


def main() -> None:
    """Learn and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--overwrite", action="store_true")
    options = parser.parse_args()
    population = learn_population(summaries(options.tasks))
    write_population(population, options.out, overwrite=options.overwrite)
    print(f"level: {population.intercept.round(3)}, scale {population.intercept_scale:.3f}")
    print(f"shape: {population.mean.round(3)}, deviations {population.covariance.diagonal().round(4) ** 0.5}")
    deviations = population.map_covariance.diagonal().round(4) ** 0.5
    print(f"map: {population.map_mean.round(3)}, deviations {deviations}")
    print(f"classes {population.class_scale:.3f}")


if __name__ == "__main__":
    main()
