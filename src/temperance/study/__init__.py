"""The paper's study on anyone's models: every method, fitted to few and many rows, on a folder of tasks.

    tasks -> protocol -> run -> store -> results -> tables, figures

`tasks` finds the files, `protocol` says which fits there are to make, `run` makes those of one subsample,
`workers` and `cluster` spread them, `store` keeps what they gave. `results` reads it, for tables and figures.
"""

from __future__ import annotations

from temperance.study.results import METRICS, MeanOverDraws, Results
from temperance.study.runner import Progress, run_study
from temperance.study.table_text import to_csv, to_latex, to_markdown
from temperance.study.tables import make_table
from temperance.study.tasks import TaskFile, find_tasks

__all__ = [
    "METRICS",
    "MeanOverDraws",
    "Progress",
    "Results",
    "TaskFile",
    "find_tasks",
    "make_table",
    "run_study",
    "to_csv",
    "to_latex",
    "to_markdown",
]
