"""Is the calibrator still valid? Checks of new rows, with labels or without, and their history.

found = temperance.monitoring.check(cal, logits, labels, history="checks.jsonl")
found.state, found.action, found.words
"""

from __future__ import annotations

from temperance.monitoring.checks import Check, check

__all__ = ["Check", "check"]
