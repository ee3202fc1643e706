"""Learn the population prior of BayesianTemperatureScaling from a folder of task files.

    python benchmarks/learn_prior.py TASKS --out src/temperance/population.json --overwrite

A task file is <dataset>__<model>.npz with `logits_val`, `labels_val`, `logits_test` and `labels_test`; both
halves teach. What stands before a hyphen in the data set's name is its family, and counts as one data set.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from temperance.learning import TaskSummary, learn_population, summarise_task
from temperance.population import write_population


def dataset_of(path: Path) -> str:
    """Return the data set that a task file is of."""
    return path.stem.split("__")[0].split("-")[0]


def summaries(folder: Path) -> list[TaskSummary]:
    """Summarise every task of a folder."""
    result = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            logits = np.concatenate([file["logits_val"], file["logits_test"]])
            labels = np.concatenate([file["labels_val"], file["labels_test"]])
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
    print(f"classes {population.class_scale:.3f}, bias {population.bias_scale:.3f}, ", end="")
    print(f"interactions {population.interaction_scale:.3f}")


if __name__ == "__main__":
    main()
