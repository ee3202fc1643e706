"""The paper's study on your own models: every method, fitted to few and many rows, on a folder of tasks.

    tasks -> protocol -> run -> store -> results -> tables, figures

`tasks` finds the files, `protocol` plans the fits and runs the fits of one subsample, `runner` distributes
them, and `store` keeps the scores. `results` reads the scores as data frames, which `comparisons`, `tables`
and the figures use. It needs the extra `study`: pandas and matplotlib.
"""

# ruff: noqa: E402  the check for pandas comes first

from __future__ import annotations

from temperance.loaders import import_optional

import_optional("pandas", "study", "the study")

from temperance.study.results import Results
from temperance.study.runner import run_study
from temperance.study.tasks import find_tasks

__all__ = ["Results", "find_tasks", "run_study"]
