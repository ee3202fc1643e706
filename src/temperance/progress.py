"""Progress of a long call: one line on standard error.

The line appears only if the call takes longer than two seconds and standard error is a terminal or a
notebook, and it is erased at the end. Logs and pipes stay clean.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Report = Callable[[str, float], None]
"""A function of the current step and the fraction done, which is NaN if it is not known."""
Progress = Report | bool | None
"""A function to call, True for a line on standard error, False or None for nothing."""

DELAY = 2.0  # seconds before the line appears
_PAUSE = 0.1  # seconds between two updates of the line
_WIDTH = 79


@contextmanager
def reporting(title: str, progress: Progress) -> Iterator[Report]:
    """Yield the function that a long call reports to; its line is erased at the end.

    Examples
    --------
    >>> with reporting("Counting", lambda what, share: print(what, share)) as report:
    ...     report("rows", 0.5)
    rows 0.5
    """
    if callable(progress):
        yield progress
        return
    stream = sys.stderr
    if not progress or not is_watched(stream):
        yield lambda what, share: None
        return
    next_update, width = time.monotonic() + DELAY, 0

    def show(what: str, share: float) -> None:
        """Overwrite the line."""
        nonlocal next_update, width
        now = time.monotonic()
        if now < next_update:
            return
        next_update = now + _PAUSE
        doing = f"{title}: {what}" if what else title
        text = doing[:_WIDTH] if math.isnan(share) else f"{doing[: _WIDTH - 6]} {100 * share:3.0f}%"
        stream.write(f"\r{text.ljust(width)}")
        stream.flush()
        width = len(text)

    try:
        yield show
    finally:
        if width:
            stream.write(f"\r{' ' * width}\r")
            stream.flush()


def is_watched(stream: TextIO | None) -> bool:
    """Say whether a stream is a terminal, or the output of a notebook's cell."""
    if stream is None:  # a program without a console might have no standard error
        return False
    # A notebook replaces the stream, so no package must be imported to detect it.
    in_notebook = type(stream).__module__.partition(".")[0] == "ipykernel"
    return in_notebook or (not stream.closed and stream.isatty())
