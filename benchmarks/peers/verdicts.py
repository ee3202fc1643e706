"""What a library made of a hard input, in one word, decided by code.

    right     probabilities that are finite, not negative and sum to 1 within 1e-5, within 1e-3 of those of the
              best temperature; T within 1e-3 of it, relatively. Without a best temperature: probabilities, a
              finite T above 0, and a warning that names the reason.
    refused   an exception whose message names what is wrong
    unclear   an exception whose message does not
    silent    no best temperature, and probabilities without a word
    wrong     anything else that is returned

A crash or a time-out of the process is recorded as such. Methods without a single temperature are judged by
their probabilities alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from hard_inputs import HardInput
from optimum import best_temperature
from scipy.special import softmax

TOLERANCE, SUM_TOLERANCE = 1e-3, 1e-5


class Answer(NamedTuple):
    """What a library returned, raised and said."""

    temperature: float | None = None
    probs: np.ndarray | None = None
    error: str | None = None
    said: str = ""


def names_the_reason(hard: HardInput, text: str) -> bool:
    """Return whether a text has one of the words that belong to this input."""
    return re.search(hard.words, text, re.IGNORECASE) is not None


def are_probabilities(probs: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Return whether the rows are distributions."""
    probs = np.asarray(probs, np.float64)
    valid = probs.shape == shape and bool(np.isfinite(probs).all() and (probs >= 0).all())
    return valid and bool(np.abs(probs.sum(axis=1) - 1).max() <= SUM_TOLERANCE)


def is_best(hard: HardInput, answer: Answer) -> bool:
    """Return whether the answer is that of the best temperature."""
    if answer.temperature is None:
        return True
    best = best_temperature(hard.logits, hard.labels)
    wanted = softmax(hard.logits.astype(np.longdouble) / best, axis=1)
    near = np.abs(answer.probs - wanted).max() <= TOLERANCE
    return bool(near) and abs(answer.temperature / best - 1) <= TOLERANCE


def verdict(hard: HardInput, answer: Answer) -> str:
    """Return the word."""
    if answer.error is not None:
        return "refused" if names_the_reason(hard, answer.error) else "unclear"
    temperature = 1.0 if answer.temperature is None else answer.temperature
    new = hard.logits if hard.new_logits is None else hard.new_logits
    usable = are_probabilities(answer.probs, new.shape) and 0 < temperature < np.inf
    if hard.kind == "invalid" or not usable:
        return "wrong"
    if hard.kind == "undetermined":
        return "right" if names_the_reason(hard, answer.said) else "silent"
    return "right" if is_best(hard, answer) else "wrong"
