"""Inputs on which calibration code goes wrong: what each of them is, and what the correct answer is.

Three kinds of input:

    determined    there is a best temperature, and the library should find it
    undetermined  there is none (all rows right, say): the library should say so
    invalid       no answer can be right: the library should refuse
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LABELS, NUMBERS = r"\blabel|\btarget|\bclass|\by\b|'y'", r"nan|inf\b|infin|finite|too large|not in range"
COUNTS = r"label|length|samples|rows|inconsistent|batch|size mismatch"
NOTHING_TO_FIT = (
    r"classified (correctly|wrong)|all \w+ (right|wrong|correct)|separa|converg|not determin|identif|"
    r"negative temperature|at least|samples"
)


class HardInput(NamedTuple):
    """Logits and labels with something about them, and words that an answer in words should have."""

    kind: str
    logits: np.ndarray
    labels: np.ndarray
    words: str = NUMBERS
    new_logits: np.ndarray | None = None  # to predict, where they are others


def draw(n_rows: int = 500, n_classes: int = 10, temperature: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Return logits in float64, and labels from their softmax at the temperature."""
    rng = np.random.default_rng(5)
    logits = rng.standard_normal((n_rows, n_classes)) * rng.uniform(2, 8, (n_rows, 1))
    return logits, (logits / temperature + rng.gumbel(size=logits.shape)).argmax(axis=1)


def with_value(value: float, column_of: Callable[[int], int]) -> np.ndarray:
    """Return the logits with a value in one column of every third row."""
    logits, labels = draw()
    for row in range(0, len(labels), 3):
        logits[row, column_of(int(labels[row]))] = value
    return logits


def with_one(value: float) -> np.ndarray:
    """Return the logits with a value in one place."""
    logits, _ = draw()
    logits[7, 3] = value
    return logits


def with_label(label: float) -> np.ndarray:
    """Return the labels with another one in one place."""
    labels = draw()[1].astype(np.float64 if label % 1 else np.int64)
    labels[7] = label
    return labels


def mostly_right() -> tuple[np.ndarray, np.ndarray]:
    """Return 2000 rows of a confident classifier with one error."""
    logits = 5 * draw(2_000)[0]
    labels = logits.argmax(axis=1)
    labels[11] = logits[11].argmin()
    return logits, labels


def layouts(logits: np.ndarray, labels: np.ndarray) -> dict[str, HardInput]:
    """Return the same numbers in other containers."""
    wide = np.repeat(np.repeat(logits, 2, axis=0), 2, axis=1)
    read_only = logits.copy()
    read_only.flags.writeable = False
    found = {
        "float64": (logits, labels),
        "float32": (logits.astype(np.float32), labels),
        "float16": (logits.astype(np.float16), labels),
        "integer logits": (np.rint(2 * logits).astype(np.int64), labels),
        "Fortran order": (np.asfortranarray(logits), labels),
        "every second row and column": (wide[::2, ::2], labels),
        "read-only": (read_only, labels),
        "labels in int32": (logits, labels.astype(np.int32)),
        "labels in uint8": (logits, labels.astype(np.uint8)),
        "duplicated rows": (np.repeat(logits, 2, axis=0), np.repeat(labels, 2)),
    }
    return {name: HardInput("determined", *arrays, words=r"dtype|type") for name, arrays in found.items()}


def scales(logits: np.ndarray, labels: np.ndarray) -> dict[str, HardInput]:
    """Return numbers that are large, small, masked or few."""
    masked = with_value(-np.inf, lambda label: (label + 1) % 10)
    lowest = with_value(float(np.finfo(np.float32).min), lambda label: (label + 1) % 10)
    shift = 1e6 * np.arange(len(labels))[:, None]
    seen = labels != 9
    found = {
        "logits x 1e-4": (1e-4 * logits, labels),
        "logits x 1000": (1e3 * logits, labels),
        "logits x 1e30": (1e30 * logits, labels),
        "rows shifted by up to 5e8": (logits + shift, labels),
        "-inf masks a third of the rows": (masked, labels),
        "lowest float32 as the mask": (lowest, labels),
        "underconfident, T = 0.2": draw(temperature=0.2),
        "one error in 2000 rows": mostly_right(),
        "two classes": draw(n_classes=2),
        "a class without rows": (logits[seen], labels[seen]),
        "30 rows of 100 classes": draw(30, 100),
    }
    return {name: HardInput("determined", *arrays) for name, arrays in found.items()}


def undetermined(logits: np.ndarray, labels: np.ndarray) -> dict[str, HardInput]:
    """Return data without a best temperature."""
    found = {
        "all rows right": (logits, logits.argmax(axis=1)),
        "all rows wrong": (logits, logits.argmin(axis=1)),
        "one row": (logits[:1], logits[:1].argmax(axis=1)),
        "all logits equal": (np.zeros_like(logits), labels),
    }
    return {name: HardInput("undetermined", *arrays, words=NOTHING_TO_FIT) for name, arrays in found.items()}


def invalid(logits: np.ndarray, labels: np.ndarray) -> dict[str, HardInput]:
    """Return mistakes."""
    impossible = with_value(-np.inf, lambda label: label)
    return {
        "NaN in one logit": HardInput("invalid", with_one(np.nan), labels),
        "+inf in one logit": HardInput("invalid", with_one(np.inf), labels),
        "NaN when predicting": HardInput("invalid", logits, labels, new_logits=with_one(np.nan)),
        "label -inf": HardInput("invalid", impossible, labels, words=f"{LABELS}|{NUMBERS}"),
        "label 10 of 10 classes": HardInput("invalid", logits, with_label(10), words=LABELS),
        "label -1": HardInput("invalid", logits, with_label(-1), words=LABELS),
        "label 2.5": HardInput("invalid", logits, with_label(2.5), words=rf"{LABELS}|integer|\bint\b"),
        "fewer labels than rows": HardInput(
            "invalid",
            logits,
            labels[:-1],
            words=r"label|length|samples|rows|inconsistent|batch|size mismatch",
        ),
        "no rows": HardInput("invalid", logits[:0], labels[:0], words=r"\brow|sample|empty"),
    }


def hard_inputs() -> dict[str, HardInput]:
    """Return all of them by name, in the order of the page."""
    rows = draw()
    return layouts(*rows) | scales(*rows) | undetermined(*rows) | invalid(*rows)
