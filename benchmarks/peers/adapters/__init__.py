"""One file for each library: what its users write to calibrate the logits of a trained classifier.

Each adapter has two names:

    PACKAGES  distributions whose versions are recorded
    METHODS   mapping of a method's name to a function fit(logits, labels) -> Fitted

An adapter hands the array over as it is, in its own dtype, and converts only what the library's interface
asks for (a tensor, probabilities). It is written in the library's favour where there is a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Fitted(NamedTuple):
    """A fitted calibrator: its single temperature, where it has one, and how it predicts."""

    temperature: float | None
    predict_proba: Callable[[np.ndarray], np.ndarray]


Fit = Callable[[np.ndarray, np.ndarray], Fitted]
