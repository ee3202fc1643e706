"""The paper's results, for comparison with a study that includes one of its tasks.

`paper.csv` has the paper's tables for 200, 500, 1,000, 5,000 and 10,000 validation rows, with the ECE in
percent as printed; the last are its tables for the whole validation set. Averages, which follow from the
rest, are left out. `PTSe` is PTS that minimises the ECE. Infinite numbers are the paper's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

import pandas as pd

from temperance.calibrators import UNCALIBRATED
from temperance.errors import InputError

SIZES = (200, 500, 1000, 5000)
"""Of the paper's study of few rows, and by default of ours."""
WHOLE = 10_000  # rows of the paper's validation sets, which has tables for them too
DRAWS = 50  # draws behind each number
METRICS = ("ece", "nll", "brier")
DECIMALS = 4  # as printed; the ECE has two in percent

PAPER_COLUMN: dict[str, str] = {
    UNCALIBRATED: "Uncalibrated",
    "ts": "TS",
    "ets-brier": "ETS",
    "bts": "BTS",
    "hts": "HTS",
    "lts": "LTS",
    "hnlts": "HnLTS",
    "pts": "PTS",
    "pts-ece": "PTSe",
    "pts-plain": "PTS",
}
PAPER_COLUMN |= {f"{key}-sgd": PAPER_COLUMN[key] for key in ("hts", "lts", "hnlts", "pts", "pts-ece")}
"""The paper's column per method.

The paper's ETS minimises the Brier score, as `ets-brier`; it trained by gradient descent, as `...-sgd`.
"""


class PaperTask(NamedTuple):
    """A data set and a model, by the paper's names."""

    dataset: str
    model: str


def recognise(uncalibrated: Mapping[str, float]) -> PaperTask | None:
    """Return the paper's task with these scores of the uncalibrated classifier, or None.

    Parameters
    ----------
    uncalibrated : mapping of metric to score
        ECE with 50 bins (as a fraction), NLL and Brier score. All of them must equal the paper's printed
        numbers.

    Examples
    --------
    >>> recognise({"ece": 0.10708, "nll": 0.78968, "brier": 0.23918})
    PaperTask(dataset='CIFAR-10', model='ResNet 50')
    """
    printed = _tables()[PAPER_COLUMN[UNCALIBRATED]].xs(SIZES[0], level="n").unstack("metric")
    rounded = {metric: round(uncalibrated[metric], DECIMALS) for metric in METRICS}
    found = printed.index[(printed[list(METRICS)] == pd.Series(rounded)).all(axis="columns")]
    return PaperTask(*found[0]) if len(found) else None


def paper_figures(task: PaperTask, n: int, metric: str) -> dict[str, float]:
    """Return the paper's scores by method, with the ECE as a fraction.

    Examples
    --------
    >>> paper_figures(PaperTask("CIFAR-10", "ResNet 50"), 200, "ece")["hts"]
    0.0251
    """
    check_in_paper(n, metric)
    row = _tables().loc[metric, n, *task]
    return {key: float(row[column]) for key, column in PAPER_COLUMN.items()}


def check_in_paper(n: int, metric: str) -> None:
    """Raise unless the paper has a table for this number of rows and this metric."""
    for name, value, known in (("metric", metric, METRICS), ("number of rows", n, (*SIZES, WHOLE))):
        if value not in known:
            raise InputError(
                f"the {name} must be one of the paper's, {', '.join(map(str, known))}; found {value!r}. "
                "Choose one of them, or leave the paper out."
            )


@cache
def _tables() -> pd.DataFrame:
    """Return the paper's scores: one column per method, by metric, number of rows and task."""
    with resources.files("temperance.study").joinpath("paper.csv").open(encoding="utf-8") as file:
        tables = pd.read_csv(file, index_col=["metric", "n", "dataset", "model"]).sort_index()
    tables.loc[["ece"]] /= 100
    return tables.round(DECIMALS)  # 0.0284, not 0.02839999...
