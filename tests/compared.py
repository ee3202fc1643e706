"""The methods of a comparison, those of them that property tests run over, and where the real tasks are."""

import os
from pathlib import Path

import numpy as np

from temperance import CALIBRATORS
from temperance.core.features import MAX_INTERACTING, n_class_biases

COMPARED = [key for key, method in CALIBRATORS.items() if method.in_comparison]
CLASS_KEEPING = [key for key in COMPARED if CALIBRATORS[key].keeps_class]
"""Methods for which the property tests check that no decision changes; `bayes-bias` has its own tests."""

WEIGH_CLASSES = ["lts", "hnlts"]
"""Methods with a weight for each class, which rows of positions cannot have."""
ANY_COLUMNS = [key for key in COMPARED if key not in (*WEIGH_CLASSES, "pts", "pts-ece")]
"""Methods whose rows of positions may have any number of columns."""

TASKS = Path(os.environ.get("TASKS", Path(__file__).resolve().parents[2] / "shared" / "data" / "tasks"))
"""Task files that are not part of the package: tests that need one are skipped without it."""


STEEP = (0.001, 3.0, 0.2, 5.0, 0.01, 1.0, 20.0, 0.003, 2.0)
"""Slopes of a map of `mono` that differ more than those of any fit."""


def class_biases(n_classes):
    """Return the numbers of a class bias in which every kind has a weight, which no fit need have."""
    rng, n_kinds = np.random.default_rng(n_classes), n_class_biases(n_classes)
    numbers = {
        "bias_weights": np.array([0.3, 0.25, 0.2, 0.1])[:n_kinds],
        "bias_betas": rng.uniform(0.6, 1.5, n_kinds),
        "biases": rng.normal(size=(n_kinds, n_classes)),
    }
    if n_classes <= MAX_INTERACTING:
        numbers["interactions"] = 0.2 * rng.normal(size=(n_kinds - 1, n_classes, n_classes))
    return numbers
