"""Is the calibrator still right? Checks of new rows, with labels or without, and their history.

found = temperance.monitoring.check(cal, logits, labels, history="checks.jsonl")
found.action, found.words
"""

from __future__ import annotations

from temperance.monitoring.advice import Labels
from temperance.monitoring.change import Change, ClassChange
from temperance.monitoring.checking import ALPHA, check
from temperance.monitoring.limits import TOLERANCE
from temperance.monitoring.result import Check
from temperance.monitoring.shift import Shift, ShiftTest

__all__ = ["ALPHA", "TOLERANCE", "Change", "Check", "ClassChange", "Labels", "Shift", "ShiftTest", "check"]
