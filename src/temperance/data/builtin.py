"""The task that comes with the package, for first steps and examples; DEMO.md says what it is."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.read_options import PARTS

CLASS_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """Logits and labels of a classifier: rows to calibrate on, and test rows.

    Attributes
    ----------
    val_logits, val_labels : arrays of shape (N, K) and (N,)
        Rows to calibrate on.
    test_logits, test_labels : arrays of shape (N, K) and (N,)
        Test rows.
    class_names : tuple of str
        Names of the columns.

    Examples
    --------
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import demo_task
    >>> task = demo_task()
    >>> cal = TemperatureScaling().fit(task.val_logits, task.val_labels)
    >>> round(float(cal.temperature_), 1)
    1.9
    """

    val_logits: NDArray[np.floating[Any]]
    val_labels: NDArray[np.intp]
    test_logits: NDArray[np.floating[Any]]
    test_labels: NDArray[np.intp]
    class_names: tuple[str, ...]


def demo_task() -> Task:
    """Return the built-in task: 5000 rows to calibrate on, 10000 test rows, 10 classes.

    Examples
    --------
    >>> task = demo_task()
    >>> task.val_logits.shape, task.test_logits.shape
    ((5000, 10), (10000, 10))
    >>> task.class_names[3]
    'cat'
    """
    with files("temperance.data").joinpath("demo.npz").open("rb") as file:
        held = np.load(file)
        # Stored in half precision to save space; computed in single precision.
        types = {"logits": np.float32, "labels": np.intp}
        arrays = [held[f"{key}_{part}"].astype(types[key]) for part in PARTS for key in types]
        val_logits, val_labels, test_logits, test_labels = arrays
        return Task(val_logits, val_labels, test_logits, test_labels, CLASS_NAMES)
