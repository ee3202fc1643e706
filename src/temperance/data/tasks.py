"""Tasks without a file: the built-in task, and simulated classifiers whose true posterior is known.

The built-in task is for first steps and examples; DEMO.md describes it. Simulated tasks are for teaching and
for tests. Each row draws true logits u = c_i g with g ~ N(0, I) and its own difficulty c_i, and its label
from softmax(u), so softmax(u) is the true posterior. The classifier's logits are z = T u, with

    log T = log(temperature) + entropy_slope (log Hbar(u) - mean) + class_spread * e_top,     e ~ N(0, 1)

so overconfidence depends on a row's entropy and on its predicted class. z / T is perfectly calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from temperance.data.read_options import PARTS
from temperance.inputs.validation import check_number, check_seed

CLASS_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


@dataclass(frozen=True)
class SimulatedTask:
    """The logits of a classifier, the true labels and probabilities, and the temperatures.

    Attributes
    ----------
    logits : array of shape (N, K)
        The classifier's logits.
    labels : array of shape (N,)
        Column of the true class of each row.
    probabilities : array of shape (N, K)
        The true probabilities, from which the labels were drawn.
    temperatures : array of shape (N,)
        T of each row: softmax(logits / T) is `probabilities`.

    Examples
    --------
    >>> task = simulate(n_rows=4, n_classes=3, random_state=0)
    >>> calibrated = softmax(task.logits / task.temperatures[:, None], axis=1)
    >>> bool(np.allclose(calibrated, task.probabilities))
    True
    """

    logits: NDArray[np.float64]
    labels: NDArray[np.intp]
    probabilities: NDArray[np.float64]
    temperatures: NDArray[np.float64]


def simulate(
    n_rows: int = 1000,
    n_classes: int = 10,
    *,
    temperature: float = 2.0,
    entropy_slope: float = 0.1,
    class_spread: float = 0.1,
    sharpness: float = 3.0,
    random_state: int = 0,
) -> SimulatedTask:
    """Draw a task from a classifier whose overconfidence is known.

    Parameters
    ----------
    n_rows, n_classes : int
        N and K.
    temperature : float
        Typical factor by which the logits are too large; below 1 they are too small.
    entropy_slope, class_spread : float
        How much log T depends on the log entropy, and on the predicted class. If both are 0, TS is exact.
    sharpness : float
        Typical size of the true logits: the larger, the more accurate the classifier.
    random_state : int
        Random seed.

    Examples
    --------
    >>> task = simulate(n_rows=5, n_classes=3, random_state=0)
    >>> task.logits.shape, task.labels.shape
    ((5, 3), (5,))
    """
    check_number("n_rows", n_rows, "> 0", lambda n: n > 0, whole=True)
    check_number("n_classes", n_classes, ">= 2", lambda k: k >= 2, whole=True)
    check_number("temperature", temperature, "> 0", lambda t: t > 0)
    check_number("sharpness", sharpness, "> 0", lambda s: s > 0)
    check_number("entropy_slope", entropy_slope, "such as 0.1", lambda s: True)
    check_number("class_spread", class_spread, "such as 0.1", lambda s: True)
    check_seed("random_state", random_state)
    rng = np.random.default_rng(random_state)
    class_offsets = rng.standard_normal(n_classes)
    difficulty = sharpness * np.exp(0.5 * rng.standard_normal(n_rows))
    true_logits = difficulty[:, None] * rng.standard_normal((n_rows, n_classes))
    probabilities = softmax(true_logits, axis=1)
    below = probabilities.cumsum(axis=1) < rng.random((n_rows, 1))
    labels = np.minimum(below.sum(axis=1), n_classes - 1)  # one draw per row
    entropy = -np.sum(probabilities * np.log(np.maximum(probabilities, 1e-300)), axis=1)
    log_entropy = np.log(np.maximum(entropy, 1e-9))
    log_t = np.log(temperature) + entropy_slope * (log_entropy - log_entropy.mean())
    temperatures = np.exp(log_t + class_spread * class_offsets[true_logits.argmax(axis=1)])
    return SimulatedTask(true_logits * temperatures[:, None], labels, probabilities, temperatures)


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
    """Return the built-in task: 5,000 rows to calibrate on, 10,000 test rows, 10 classes.

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
