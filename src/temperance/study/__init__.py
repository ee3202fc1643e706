"""The paper's study on anyone's models: every method, fitted to few and many rows, on a folder of tasks.

    tasks -> protocol -> run -> store -> results -> tables, figures

`tasks` finds the files, `protocol` plans the fits, `scoring` does those of one subsample, `workers` and
`cluster` distribute them, `store` keeps the scores. `results` reads them for tables and figures.
"""

from __future__ import annotations

from temperance.study.improvements import Improvements, mean_improvements
from temperance.study.ranks import Ranks, rank_methods
from temperance.study.results import METRICS, MeanOverDraws, Results
from temperance.study.runner import Progress, run_study
from temperance.study.table_text import to_csv, to_latex, to_markdown
from temperance.study.tables import make_table
from temperance.study.tasks import TaskFile, find_tasks
from temperance.study.wins import WinRates, win_rates

__all__ = [
    "METRICS",
    "Improvements",
    "MeanOverDraws",
    "Progress",
    "Ranks",
    "Results",
    "TaskFile",
    "WinRates",
    "find_tasks",
    "make_table",
    "mean_improvements",
    "rank_methods",
    "run_study",
    "to_csv",
    "to_latex",
    "to_markdown",
    "win_rates",
]
