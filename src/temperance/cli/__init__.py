"""The command line: one file per command, and `main`, which turns every failure into a sentence.

click parses the options and rich draws the tables. typer is not used: it requires pydantic and its compiled
core, while click is one small package of pure Python that does the same and supports shell completion.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code. Ctrl-C while it loads counts as an interruption."""
    try:
        from temperance.cli.program import run
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(arguments))
