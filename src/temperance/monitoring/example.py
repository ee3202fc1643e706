"""A calibrator, and rows that it has not seen, for the examples of this package."""

from __future__ import annotations

from temperance.calibrators.ts import TemperatureScaling
from temperance.core.arrays import Floats, Indices
from temperance.data.simulate import simulate


def example_rows() -> tuple[TemperatureScaling, Floats, Indices]:
    """Return a calibrator of 1000 rows with three classes, and logits and labels of 2000 more.

    Examples
    --------
    >>> cal, logits, labels = example_rows()
    >>> logits.shape, labels.shape
    ((2000, 3), (2000,))
    """
    task = simulate(n_rows=3000, n_classes=3, random_state=0)
    cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    return cal, task.logits[1000:], task.labels[1000:]
