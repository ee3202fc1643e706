"""Errors for invalid input: structured facts first, then the message.

A message says what must hold, what was found and where, and what to do. An error stores the invalid rows and
the argument to change as facts, so that callers can reword the message: the reader of a block counts rows
from the start of the whole array, and the command line names an option instead of an argument.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["InputError", "InputWarning"]

Spelling = Callable[[str, object], str]
"""How to write an argument with a value, or without one if the value is None."""

MAX_LISTED = 12
"""Largest number of values in a message; longer lists show only the first and the last few."""
MAX_EXCERPT = 60
"""Largest number of characters of a value in a message."""
MAX_REASON = 200
"""Largest number of characters of another library's error in a message."""


def _in_python(argument: str, value: object) -> str:
    return argument if value is None else f"{argument}={value!r}"


@dataclass(frozen=True)
class Remedy:
    """An argument to pass with one of these values; without values, an argument to leave out.

    Attributes
    ----------
    argument : str
        Its name in Python; the command line spells it as an option.
    values : tuple
        What to pass.
    instead : Remedy, optional
        A less likely remedy.

    Examples
    --------
    >>> raise InputError("the kind of scores is unknown.", remedy=Remedy("kind", ("logits", "probs")))
    Traceback (most recent call last):
    temperance.errors.InputError: the kind of scores is unknown. Pass kind='logits' or kind='probs'.
    """

    argument: str
    values: tuple[object, ...] = ()
    instead: Remedy | None = None

    def worded(self, spelling: Spelling) -> str:
        """Return the advice as a sentence."""
        if not self.values:
            return f"Leave {spelling(self.argument, None)} out, or choose another file."
        others = self.instead.spelled(spelling) if self.instead else []
        return f"Pass {' or '.join([*self.spelled(spelling), *others])}."

    def spelled(self, spelling: Spelling) -> list[str]:
        """Return the argument with each of its values."""
        return [spelling(self.argument, value) for value in self.values]


class InputError(ValueError):
    """The input is invalid; the message says what to do.

    Parameters
    ----------
    fact : str
        What must hold and what was found: a sentence, without its full stop if `rows` are given.
    rows : sequence of int
        The invalid rows, in order. They become `row`, the first of them, and `n_bad_rows`.
    advice : str
        What to do, as a sentence.
    remedy : Remedy
        The argument to change.
    where : str
        The file, and the array in it.

    Examples
    --------
    >>> print(InputError("logits must be finite; found NaN", rows=[7, 9], advice="Remove these rows."))
    logits must be finite; found NaN in 2 rows (first: row 7). Remove these rows.
    """

    def __init__(
        self, fact: str, *, rows: Any = (), advice: str = "", remedy: Remedy | None = None, where: str = ""
    ) -> None:
        super().__init__(fact)
        self.fact, self.advice, self.remedy, self.where = fact, advice, remedy, where
        self.row = int(rows[0]) if len(rows) else None
        self.n_bad_rows = len(rows)
        self.other_rows_unread = self.rows_before_unknown = False

    def __str__(self) -> str:
        return self.worded(_in_python)

    def worded(self, spelling: Spelling) -> str:
        """Return the message, with arguments in this spelling."""
        fact = f"{self.where}: {self.fact}" if self.where else self.fact
        remedy = self.remedy.worded(spelling) if self.remedy else ""
        if self.row is not None:
            number = (
                f"{'at least ' * self.other_rows_unread}{self.n_bad_rows} row{'s' * (self.n_bad_rows != 1)}"
            )
            unknown = " of one part; how many rows come before that part is unknown"
            fact += f" in {number} (first: row {self.row}{unknown * self.rows_before_unknown})."
        return " ".join(filter(None, (fact, self.advice, remedy)))


class InputWarning(UserWarning):
    """Input that is valid, but probably not what the user meant.

    Parameters
    ----------
    fact : str
        What was expected and what was found, as a sentence.
    advice : str
        What to do in Python, as a sentence.
    remedy : Remedy, optional
        The argument with the same effect if the input comes from a file.

    Examples
    --------
    >>> print(InputWarning("expected logits; all rows sum to 1.", "Pass logits_from_probs(p)."))
    expected logits; all rows sum to 1. Pass logits_from_probs(p).
    """

    def __init__(self, fact: str, advice: str, remedy: Remedy | None = None) -> None:
        super().__init__(f"{fact} {advice}")
        self.fact, self.advice, self.remedy = fact, advice, remedy

    def worded(self, spelling: Spelling) -> str:
        """Return the message for input from a file, with arguments in this spelling."""
        return f"{self.fact} {self.remedy.worded(spelling) if self.remedy else self.advice}"


def warn_user(warning: Warning) -> None:
    """Warn at the line of the user's own code that called the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("temperance."):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def excerpt(value: object, write: Callable[[Any], str] = repr) -> str:
    """Return a value for a sentence as `write` writes it, by default as in Python, shortened if long."""
    try:
        shown = " ".join(write(value).split())
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        return f"a very long {type(value).__name__}"
    return shown if len(shown) <= MAX_EXCERPT else f"{shown[:MAX_EXCERPT]}..."


def listed(values: Iterable[object], write: Callable[[Any], str] = excerpt) -> str:
    """Return values for a sentence; of a long list, the first and the last few."""
    shown = [write(value) for value in values]
    if len(shown) <= MAX_LISTED:
        return ", ".join(shown)
    return f"{', '.join(shown[:3])}, ..., {', '.join(shown[-2:])} ({len(shown)} in all)"


def reason_of(error: Exception) -> str:
    """Return the first line of another library's error, for a sentence about what it could not do."""
    return str(error).strip().partition("\n")[0][:MAX_REASON].rstrip(".") or type(error).__name__


def file_error(path: Path, sentence: str, key: str = "", remedy: Remedy | None = None) -> InputError:
    """Return an error about a file, or about what it holds under `key`."""
    return InputError(sentence, remedy=remedy, where=f"{path}, {key}" if key else f"{path}")


@contextmanager
def library_errors(
    path: Path,
    sentence: str,
    key: str = "",
    *,
    of: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> Iterator[None]:
    """Turn a library's errors into an error about the file, whose sentence has {} for the reason.

    A damaged file can make a library fail anywhere, with any error.
    """
    try:
        yield
    except InputError:
        raise
    except of as error:
        raise file_error(path, sentence.format(reason_of(error)), key) from error


def missing_file(path: Path) -> InputError:
    """Return the error about a missing file, with the most similar name in its folder."""
    try:
        # Compare names without suffixes, which make short names look alike.
        names = [other.name for other in path.parent.iterdir() if guess(path.stem, [other.stem])]
    except OSError:  # the folder does not exist, or cannot be read
        names = []
    advice = guess(path.name, names) or "Check its name and folder."
    return file_error(path, f"there is no such file. {advice}")


def guess(value: object, choices: Iterable[str]) -> str:
    """Return a question about the choice that the user probably meant, or nothing if none is close."""
    if not isinstance(value, str):
        return ""
    from difflib import get_close_matches  # only errors need it

    by_lower_case = {choice.lower(): choice for choice in choices}
    close = get_close_matches(value.strip().lower().replace("_", "-"), by_lower_case, n=1)
    return f"Did you mean {by_lower_case[close[0]]!r}?" if close else ""


def on_one_line(text: object) -> str:
    """Return text without line breaks and control characters, which names in a file can have."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in str(text)
    )


def percent(share: float) -> str:
    """Return a share of 0 to 1 as "92.5%", with more digits if one inside would be shown as 0% or 100%.

    Examples
    --------
    >>> percent(0.925), percent(0.99984), percent(1.0), percent(0.0002)
    ('92.5%', '99.98%', '100%', '0.02%')
    """
    if not 1e-12 < share < 1 - 1e-12:  # but for rounding
        return f"{100 * round(min(max(share, 0), 1)):g}%"
    digits = next((n for n in range(1, 15) if 0 < round(100 * share, n) < 100), 15)
    return f"{100 * share:.{digits}f}%"


class OutputExistsError(FileExistsError):
    """The output file already exists.

    Parameters
    ----------
    path : Path
        The file.

    Examples
    --------
    >>> import pathlib
    >>> print(OutputExistsError(pathlib.Path("cal.json")))
    cal.json already exists. Choose another name, or pass overwrite=True.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return self.worded(_in_python)

    def worded(self, spelling: Spelling) -> str:
        """Return the message, with arguments in this spelling."""
        return f"{self.path} already exists. Choose another name, or pass {spelling('overwrite', True)}."


@contextmanager
def rows_from(start: float) -> Iterator[None]:
    """Make errors about a part count rows from the start of the whole array.

    `start` is the number of rows before the part; nan if it is unknown.
    """
    try:
        yield
    except InputError as error:
        error.other_rows_unread = True
        if math.isnan(start):
            error.rows_before_unknown = True
        elif error.row is not None:
            error.row += int(start)
        raise


@contextmanager
def rows_at(kept: Any) -> Iterator[None]:
    """Make errors about some rows name their places, `kept`, among all rows; None if these are all."""
    try:
        yield
    except InputError as error:
        if kept is not None and error.row is not None:
            error.row = int(kept[error.row])
        raise
