"""Measure adaptation to other class frequencies: the table of docs/label-shift.md.

    python benchmarks/label_shift.py TASKS

fits `ts` and `bayes-bias` to the validation rows of four tasks in the folder TASKS, draws unlabelled rows of
which 97% are of class 0 from one half of the test rows, adapts to them, and scores 4,000 rows that are drawn
in the same way from the other half. Other tables have fewer rows, and no shift.
"""

import argparse
from pathlib import Path

import numpy as np

import temperance

TASKS = {
    "CIFAR-10, ResNet-20": "cifar10__resnet20-ferrer",
    "CIFAR-10, LeNet-5": "cifar10__lenet5-netcal",
    "PathMNIST, ResNet-50": "pathmnist__resnet50",
    "emotion, Yi-6B with one example": "emotion__yi-6b-1shot",
}
DRAWS, SCORED = 5, 4_000


def draw(logits, labels, frequencies, rows, rng):
    """Return rows with these class frequencies, drawn with replacement."""
    counts = np.bincount(labels, minlength=len(frequencies))
    weights = (frequencies / np.maximum(counts, 1))[labels]
    chosen = rng.choice(len(labels), rows, p=weights / weights.sum())
    return logits[chosen], labels[chosen]


def scores(fitted, task, unlabelled, shift):
    """Return the log loss of each method as fitted, adapted, and with the true frequencies."""
    logits, labels = task["logits_test"], task["labels_test"]
    frequencies = np.bincount(task["labels_val"], minlength=logits.shape[1]) / len(task["labels_val"])
    if shift:
        frequencies = 0.03 * frequencies / (1 - frequencies[0])
        frequencies[0] = 0.97
    found = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        halves = np.array_split(rng.permutation(len(labels)), 2)
        new, _ = draw(logits[halves[0]], labels[halves[0]], frequencies, unlabelled, rng)
        scored, true = draw(logits[halves[1]], labels[halves[1]], frequencies, SCORED, rng)
        used = [cal for method in fitted for cal in (method, method.adapt(new))]
        known = np.maximum(frequencies, 1e-6)
        used.append(fitted[-1].adapt(priors=known / known.sum()))
        found.append([temperance.metrics.nll(cal.predict_proba(scored), true) for cal in used])
    return np.mean(found, axis=0)


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", type=Path, help="folder of task files")
    folder = parser.parse_args().tasks
    tasks = {name: np.load(folder / f"{file}.npz") for name, file in TASKS.items()}
    fitted = {
        name: [
            temperance.make_calibrator(key).fit(task["logits_val"], task["labels_val"])
            for key in ("ts", "bayes-bias")
        ]
        for name, task in tasks.items()
    }
    for shift, unlabelled in ((True, 2_000), (True, 20), (False, 2_000), (False, 20)):
        print(f"\n{'97% of one class' if shift else 'no shift'}, {unlabelled:,} unlabelled rows\n")
        print(
            "| task | `ts` | adapted | `bayes-bias` | adapted | true frequencies |\n|---|---|---|---|---|---|"
        )
        for name, task in tasks.items():
            cells = " | ".join(f"{score:.3f}" for score in scores(fitted[name], task, unlabelled, shift))
            print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
