"""Is the calibrator still right? Checks of new rows, with labels or without, and their history.

found = temperance.monitoring.check(cal, logits, labels, history="checks.jsonl")
found.action, found.words
"""

from __future__ import annotations

from temperance.monitoring.change import Change, ClassChange, Labels
from temperance.monitoring.checks import ALPHA, Check, check
from temperance.monitoring.shift import Shift, ShiftTest
from temperance.monitoring.sums import TOLERANCE

__all__ = ["ALPHA", "TOLERANCE", "Change", "Check", "ClassChange", "Labels", "Shift", "ShiftTest", "check"]
