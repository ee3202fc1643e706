"""The command line: one file for each command, and `main`, which turns every failure into a sentence.

click and rich do the parsing and the drawing. Not typer: it now brings pydantic and its compiled core to
parse a dozen options, where click is one small package of pure Python that does the same and completes in
the shell.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code; an interruption while it loads is one, too."""
    try:
        from temperance.cli.program import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run(arguments)
