"""What a library made of a hard input, in one word, decided by code.

    right     T is within 1e-3 of the best temperature, relatively, and the probabilities are finite, not
              negative, sum to 1 within 1e-3 and are within 1e-3 of those of the best temperature. Where there
              is none: a finite T above 0, such probabilities, and a warning that names the reason.
    refused   an exception whose message names what is wrong
    unclear   an exception whose message does not
    silent    no best temperature, and probabilities without a word
    wrong     anything else that is returned

A crash or a time-out of the process is recorded as such.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from hard_inputs import HardInput
from optimum import best_temperature
from scipy.special import softmax

TOLERANCE = 1e-3


class Answer(NamedTuple):
    """What a library returned, raised and said."""

    temperature: float = np.nan
    probs: np.ndarray | None = None
    error: str | None = None
    said: str = ""


def names_the_reason(hard: HardInput, text: str) -> bool:
    """Return whether a text has one of the words that belong to this input."""
    return re.search(hard.words, text, re.IGNORECASE) is not None


def are_probabilities(probs: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Return whether there are rows, and each is a distribution."""
    probs = np.asarray(probs, np.float64)
    if probs.shape != shape or not probs.size or not np.isfinite(probs).all():
        return False
    return bool((probs >= 0).all() and np.abs(probs.sum(axis=1) - 1).max() <= TOLERANCE)


def is_best(hard: HardInput, answer: Answer) -> bool:
    """Return whether the answer is that of the best temperature."""
    best = best_temperature(hard.logits, hard.labels)
    wanted = softmax(hard.logits.astype(np.longdouble) / best, axis=1)
    near = np.abs(answer.probs - wanted).max() <= TOLERANCE
    return bool(near) and abs(answer.temperature / best - 1) <= TOLERANCE


def verdict(hard: HardInput, answer: Answer) -> str:
    """Return the word."""
    if answer.error is not None:
        return "refused" if names_the_reason(hard, answer.error) else "unclear"
    new = hard.logits if hard.new_logits is None else hard.new_logits
    usable = are_probabilities(answer.probs, new.shape) and 0 < answer.temperature < np.inf
    if hard.kind == "invalid" or not usable:
        return "wrong"
    if hard.kind == "undetermined":
        return "right" if names_the_reason(hard, answer.said) else "silent"
    return "right" if is_best(hard, answer) else "wrong"
