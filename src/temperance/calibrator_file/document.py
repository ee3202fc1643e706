"""A JSON file being read: what it must hold, and errors that name the file and the field."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrator_file.fields import plain_json
from temperance.core.arrays import Vector
from temperance.errors import InputError, excerpt, listed
from temperance.files import read_regular_file
from temperance.formulas.model import Shape

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_COUNT = 2**53  # up to here float64, and so JSON in other languages, represents all integers
LARGEST_FILE = 1 << 28  # bytes: thousands of times the size of a file with 1000 classes
LONGEST_TEXT = 1000  # characters of text that is shown to people


class Document:
    """The content of a file, and the checks of its fields."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.content = self.object(self._parse(), "the file")

    def error(self, message: str) -> InputError:
        """Return the error about this file."""
        return InputError(f"{self.path} is not a calibrator that can be read: {message}.")

    @contextmanager
    def working_together(self) -> Iterator[None]:
        """Turn any error into one about this file: numbers that pass each check may still fail together."""
        try:
            yield
        except Exception as error:
            what = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
            raise self.error(f"its numbers must work together; found {what}") from error

    def _parse(self) -> Any:
        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            if twice := sorted(name for name, times in Counter(n for n, _ in pairs).items() if times > 1):
                raise self.error(f"a field must occur once; found {listed(twice)} more than once")
            return dict(pairs)

        content = read_regular_file(self.path, most=LARGEST_FILE)
        try:
            parsed = json.loads(content.decode(), object_pairs_hook=unique)
        except InputError:
            raise
        except (ValueError, RecursionError) as error:  # ValueError also for a number with too many digits
            raise self.error(f"it must be JSON ({error})") from None
        try:
            return plain_json(parsed, "")
        except InputError as error:
            raise self.error(str(error)) from None

    def object(self, value: Any, what: str) -> dict[str, Any]:
        """Return `value`, a JSON object."""
        if not isinstance(value, dict):
            raise self.error(f"{what} must be a JSON object; found {type(value).__name__}")
        return value

    def require(self, given: Collection[str], wanted: Collection[str], what: str) -> None:
        """Raise unless all the wanted names are given."""
        if missing := sorted(set(wanted) - set(given)):
            raise self.error(f"{what} lacks {', '.join(missing)}")

    def refuse_others(self, given: Collection[str], known: Collection[str], what: str) -> None:
        """Raise if a name is not known."""
        if unknown := sorted(set(given) - set(known)):
            raise self.error(f"{what} has the unknown {listed(unknown)}")

    def array(
        self, value: Any, shape: Shape, name: str, *, least: float = -np.inf, most: float = np.inf
    ) -> Vector:
        """Return numbers of a shape from `least` to `most`."""
        if not _is_numeric(value):
            raise self.error(f"{name} must hold numbers only")
        try:
            array = np.array(value, np.float64)
        except ValueError:
            raise self.error(f"{name} must have the shape {shape}") from None
        if array.shape != shape:
            raise self.error(f"{name} must have the shape {shape}; found {array.shape}")
        if (array < least).any():
            raise self.error(f"{name} must be >= {least:g}; found {array.min():g}")
        if (array > most).any():
            raise self.error(f"{name} must be <= {most:g}; found {array.max():g}")
        return array

    def number(self, value: Any, name: str, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
        if type(value) not in (int, float) or not low <= value <= high:
            raise self.error(f"{name} must be a number from {low:g} to {high:g}; found {excerpt(value)}")
        return float(value)

    def count(self, value: Any, name: str, least: int, most: int = LARGEST_COUNT) -> int:
        """Return a whole number from `least` to `most`."""
        if type(value) is not int or not least <= value <= most:
            limit = f"at most {most}" if type(value) is int and value > most else f"at least {least}"
            raise self.error(f"{name} must be a whole number and {limit}; found {excerpt(value)}")
        return value

    def text(self, value: Any, name: str) -> str:
        """Return text that can be shown on one line."""
        if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
            raise self.error(
                f"{name} must be text of at most {LONGEST_TEXT} printable characters; found {excerpt(value)}"
            )
        return value


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numeric(item) for item in value)
    return type(value) in (int, float)
