"""The methods of a comparison, those of them that property tests run over, and where the real tasks are."""

import os
from pathlib import Path

from temperance import CALIBRATORS

COMPARED = [key for key, method in CALIBRATORS.items() if method.in_comparison]
CLASS_KEEPING = [key for key in COMPARED if CALIBRATORS[key].keeps_class]
"""Methods for which the property tests check that no decision changes; `bayes-bias` has its own tests."""

TASKS = Path(os.environ.get("TASKS", Path(__file__).resolve().parents[2] / "shared" / "data" / "tasks"))
"""Task files that are not part of the package: tests that need one are skipped without it."""


STEEP = (0.001, 3.0, 0.2, 5.0, 0.01, 1.0, 20.0, 0.003, 2.0)
"""Slopes of a map of `mono` that differ more than those of any fit."""
