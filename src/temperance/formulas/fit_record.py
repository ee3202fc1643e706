"""The record of a fit besides its numbers: its rows, its date, and the user's own notes.

Nothing here changes a prediction. A file stores the record (docs/file-format.md), and monitoring compares new
rows with it. It keeps fields of a file that this version does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from temperance.core.arrays import Indices, Matrix, Vector
from temperance.errors import listed, on_one_line

BASELINE_SHARES = np.arange(21) / 20
"""Levels of the quantiles in a baseline, as shares of the weight."""
MAX_GROUPS = 32
"""Largest number of groups of classes that are described together; rarer classes form the last group."""
UNITS = ("fraction", "percent")
"""What stated confidences can be: from 0 to 1, or from 0 to 100."""


@dataclass(frozen=True)
class FittedOn:
    """How the rows of a fit were read. Later rows must be read in the same way.

    Attributes
    ----------
    kind : {"logits", "probabilities"}
        What the classifier returned. For probabilities, the calibrator's input is their logarithm.
    floor : float or None
        Smaller probabilities were raised to this value; None if a probability of 0 became the logit -inf.
    length_normalised : bool or None
        Whether log-likelihoods of lm-evaluation-harness were divided by the length of the answers; None if
        the rows were not such samples, or if this is unknown.
    positions : bool or None
        True if the columns are positions of answers (first, second, ...), not classes: no term of the model
        belongs to one of them, and later rows can have more or fewer.
    dim : int or None
        The axis of the classes, counted from the first, if it was not the last.
    renormalised : bool or None
        True if each row of probabilities was divided by its sum, as later rows are.
    unit : {"fraction", "percent"} or None
        What the confidences of answers were in the file of the fit, as they are in later files; None if the
        rows were no such confidences, or if this is unknown.
    """

    kind: str = "logits"
    floor: float | None = None
    length_normalised: bool | None = None
    positions: bool | None = None
    dim: int | None = None
    renormalised: bool | None = None
    unit: str | None = None

    def __str__(self) -> str:
        by_length = " divided by the length of the answers" if self.length_normalised else ""
        return f"{self.kind}{by_length}{' divided by their sum' if self.renormalised else ''}"


def class_groups(class_counts: Vector) -> Indices:
    """Return the group of each class: the most frequent at the fit have one each, all others share one."""
    groups = np.empty(len(class_counts), np.intp)
    order = np.argsort(-class_counts, kind="stable")
    groups[order] = np.minimum(np.arange(len(class_counts)), MAX_GROUPS - 1)
    return groups


@dataclass(frozen=True, eq=False)
class Baseline:
    """The calibrated predictions of the rows of a fit, in numbers that later rows can be compared with.

    Attributes
    ----------
    rows : int
        How many rows quantiles, counts and `mean_entropy` describe: a sample of at most 4,096 rows of
        positive weight. Other means are of all rows of the fit; in files of version 2, of the sample.
    effective_rows : float
        (sum of weights)^2 / sum of squared weights; `rows` if all weights are equal. With groups, how many
        independent rows would determine the mean of confidence minus accuracy equally well.
    confidence_quantiles, entropy_quantiles : (21,) arrays
        Quantiles of the largest probability, and of the entropy in nats, at shares 0, 0.05, ..., 1 of the
        weight.
    confidence_shares, entropy_shares : (21,) arrays
        The share of the weight up to each quantile: larger than its level where rows are tied.
    predicted_counts : (K,) array
        Weight of the rows by predicted class.
    mean_confidence, mean_entropy, accuracy : float
        Weighted means.
    mean_probabilities : (K,) array
        Weighted mean of the probabilities of each class; None in early files of version 2.
    label_frequencies : (K,) array
        Share of the weight by label, in the same rows; None in early files.
    class_variances : (K,) array
        Weighted mean of p (1 - p) of each class, the variance of its label indicator; None in early files.
    fit_rows : float
        As `effective_rows`, of all rows of the fit; None in files of version 2, as the next two.
    label_means, label_variances : (G, G) arrays
        Weighted mean and variance of the probability of each group of classes (`class_groups`), a row of the
        matrix for the rows whose label is in one group; 0 if there are none.
    """

    rows: int
    effective_rows: float
    confidence_quantiles: Vector
    confidence_shares: Vector
    entropy_quantiles: Vector
    entropy_shares: Vector
    predicted_counts: Vector
    mean_confidence: float
    mean_entropy: float
    accuracy: float
    mean_probabilities: Vector | None = None
    label_frequencies: Vector | None = None
    class_variances: Vector | None = None
    fit_rows: float | None = None
    label_means: Matrix | None = None
    label_variances: Matrix | None = None


@dataclass(frozen=True, eq=False)
class FitRecord:
    """What is known of a fit; None for what is unknown.

    Attributes
    ----------
    class_names : tuple of str
        Names of the classes, in the order of the columns.
    positive : int
        The column of the class whose probability people act on.
    fitted_on : FittedOn
        How the rows were read.
    data_hash : str
        Digest of logits and labels: the same for fits to the same rows.
    date : str
        When the fit ended, ISO 8601 in UTC.
    library_version : str
        Version of temperance that made the fit.
    baseline : Baseline
        What calibrated predictions looked like on the rows of the fit.
    metadata : mapping
        The user's own notes, JSON.
    unknown_fields : mapping
        Fields of a file that this version does not know, by the object that holds them ("" for the file).
    """

    class_names: tuple[str, ...] | None = None
    positive: int | None = None
    fitted_on: FittedOn | None = None
    data_hash: str | None = None
    date: str | None = None
    library_version: str | None = None
    baseline: Baseline | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unknown_fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def describe(self) -> str:
        """Return the class names and the source of the fit, one line per known field."""
        parts = [
            self.fitted_on and f"fitted on {self.fitted_on}",
            self.date and self.date[:10],
            self.library_version and f"temperance {self.library_version}",
        ]
        names = f"classes: {listed(self.class_names, on_one_line)}" if self.class_names else ""
        return "\n".join(filter(None, [names, ", ".join(part for part in parts if part)]))
