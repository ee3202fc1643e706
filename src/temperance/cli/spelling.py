"""Arguments of the library as the options that set them: errors and warnings on a command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warnings import WarningMessage

# Options whose names differ from the library arguments that they set.
OPTIONS = {"kind": "--input", "overwrite": "--force"}


def as_option(argument: str, value: object) -> str:
    """Write an argument of the library as the option that sets it."""
    option = OPTIONS.get(argument, f"--{argument.replace('_', '-')}")
    if (argument, value) == ("classes", "NAMES"):  # which are too many for a line, or contain commas
        return "--classes @FILE, a file with one name on each line"
    if value is False:
        return option.replace("--", "--no-", 1)
    if isinstance(value, list):
        return f"{option} {shlex.quote(','.join(map(str, value)))}"
    return option if value in (None, True) else f"{option} {shlex.quote(str(value))}"


def in_words(caught: Sequence[WarningMessage]) -> list[str]:
    """Return warnings as sentences, each once, naming options instead of arguments."""
    from temperance.errors import InputWarning

    messages = [warning.message for warning in caught]
    return list(
        dict.fromkeys(
            message.worded(as_option) if isinstance(message, InputWarning) else str(message)
            for message in messages
        )
    )
