"""The command line: one file for each command, and `main`, which turns every failure into a sentence.

click and rich do the parsing and the drawing. Not typer: it now brings pydantic and its compiled core to
parse a dozen options, where click is one small package of pure Python that does the same and completes in
the shell.
"""

from temperance.cli.main import main

__all__ = ["main"]
