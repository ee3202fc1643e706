"""JSON objects with checked fields: what a file of this package can hold, one record per field.

A table of `Field`s describes an object: the calibrator file (`calibrator_file`), the prior file
(`population`) and a line of a history of checks (`monitoring.history`) each have one. Every field is checked
before it is used. Errors name the field; `reading_errors` adds what the file should be.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.errors import InputError, excerpt, listed

MAX_COUNT = 2**53  # float64, and so JSON in other languages, represents all integers up to here
MAX_TEXT = 1000  # characters of text shown to people
MAX_DEPTH = 32  # levels of nested lists and objects
_MAX_INTEGER = int(sys.float_info.max)

Check = Callable[[Any, str, int], Any]
"""What a field must be: (value, its name in messages, number of classes K) -> the checked value."""


@dataclass(frozen=True)
class Field:
    """One field of a JSON object.

    Attributes
    ----------
    name : str
        Its name in the file.
    check : callable
        Returns the checked value, or raises.
    source : str
        The attribute that holds the value, such as "record.date"; "" if it has the name of the field.
    optional : bool
        Whether a file can lack it.
    """

    name: str
    check: Check
    source: str = ""
    optional: bool = False


@contextmanager
def reading_errors(fact: str, *, advice: str = "", where: str = "") -> Iterator[None]:
    """Begin each error with what the file should be, before what is wrong with it."""
    try:
        yield
    except InputError as error:
        sentence = str(error) if str(error).endswith(".") else f"{error}."
        raise InputError(f"{fact}: {sentence}", advice=advice, where=where) from None


def parse_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a file: names occur once, numbers are finite, nesting is bounded."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if twice := sorted(name for name, times in Counter(n for n, _ in pairs).items() if times > 1):
            raise InputError(f"a field must occur once; found {listed(twice)} more than once")
        return dict(pairs)

    try:
        parsed = json.loads(content.decode(), object_pairs_hook=unique)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError also for a number with too many digits
        raise InputError(f"it must be JSON ({error})") from None
    return check_object(plain_json(parsed, ""), "the file")


def plain_json(value: Any, where: str, depth: int = 0) -> Any:
    """Return a copy that JSON can hold: finite numbers, text, true, false, null, lists and objects.

    NumPy numbers become Python numbers, and tuples become lists. Anything else raises an error, which names
    the value by `where` and has no full stop.
    """
    if depth > MAX_DEPTH:
        raise InputError(f"{where[:40]}... must not be nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InputError(f"names in {where} must be text; found {type(name).__name__}")
        return {
            name: plain_json(item, f"{where}.{name}" if where else name, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            item if type(item) is float and math.isfinite(item) else plain_json(item, where, depth + 1)
            for item in value
        ]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if abs(value) > _MAX_INTEGER:
            raise InputError(f"{where} must be finite; found a whole number beyond the range of float64")
        return int(value)
    if not isinstance(value, float):
        raise InputError(
            f"{where} must be a number, text, true, false, null, a list or an object, as in JSON; "
            f"found {type(value).__name__}"
        )
    if not math.isfinite(value):
        raise InputError(f"{where} must be finite; found {value}")
    return float(value)


def read_fields(
    given: Mapping[str, Any],
    table: Sequence[Field],
    what: str,
    n_classes: int = 0,
    *,
    prefix: str = "",
    only: bool = False,
) -> dict[str, Any]:
    """Return the checked values of the given fields, by the attribute that will hold each.

    With `only`, other fields raise an error.
    """
    required = [field.name for field in table if not field.optional]
    check_names(what, given, required=required, known=[field.name for field in table] if only else None)
    return {
        field.source or field.name: field.check(given[field.name], f"{prefix}{field.name}", n_classes)
        for field in table
        if field.name in given
    }


def write_fields(holder: object, table: Sequence[Field]) -> dict[str, Any]:
    """Return the fields of an object as JSON values, without those that are None or held by None."""
    written = {}
    for field in table:
        value: Any = holder
        for attribute in (field.source or field.name).split("."):
            value = None if value is None else getattr(value, attribute)
        if value is not None:
            written[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return written


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by attribute, such as "record.date" in one mapping per holder.

    Examples
    --------
    >>> nested({"n_rows": 7, "record.baseline.rows": 5})
    {'n_rows': 7, 'record': {'baseline': {'rows': 5}}}
    """
    tree: dict[str, Any] = {}
    for source, value in values.items():
        *holders, attribute = source.split(".")
        place = tree
        for holder in holders:
            place = place.setdefault(holder, {})
        place[attribute] = value
    return tree


def check_names(
    what: str, given: Collection[str], *, required: Collection[str] = (), known: Collection[str] | None = None
) -> None:
    """Raise unless all required names are given, and only known names."""
    if missing := sorted(set(required) - set(given)):
        raise InputError(f"{what} lacks {', '.join(missing)}")
    if known is not None and (unknown := sorted(set(given) - set(known))):
        raise InputError(f"{what} has the unknown {listed(unknown)}")


def numbers(*shape: int | str, least: float = -math.inf, most: float = math.inf) -> Check:
    """Check an array of numbers from `least` to `most`; "K" in its shape is the number of classes."""

    def check(value: Any, where: str, n_classes: int) -> NDArray[np.float64]:
        wanted = tuple(n_classes if size == "K" else size for size in shape)
        if not _is_numeric(value):
            raise InputError(f"{where} must hold numbers only")
        try:
            array = np.array(value, np.float64)
        except (ValueError, OverflowError):
            raise InputError(f"{where} must have the shape {wanted}") from None
        if array.shape != wanted:
            raise InputError(f"{where} must have the shape {wanted}; found {array.shape}")
        if not (array >= least).all():  # this also rejects nan
            raise InputError(f"{where} must be >= {least:g}; found {array.min():g}")
        if not (array <= most).all():
            raise InputError(f"{where} must be <= {most:g}; found {array.max():g}")
        return array

    return check


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_numeric, value))
    return type(value) in (int, float)


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """Check a number from `low` to `high`."""
    limits = f" from {low:g} to {high:g}" if math.isfinite(low) else ""

    def check(value: Any, where: str, n_classes: int) -> float:
        if type(value) not in (int, float) or not low <= value <= high:
            raise InputError(f"{where} must be a number{limits}; found {excerpt(value)}")
        return float(value)  # other languages might write 1.0 as 1

    return check


def count(least: int, most: int = MAX_COUNT) -> Check:
    """Check a whole number from `least` to `most`."""

    def check(value: Any, where: str, n_classes: int) -> int:
        if type(value) is not int or not least <= value <= most:
            limit = f"at most {most}" if type(value) is int and value > most else f"at least {least}"
            raise InputError(f"{where} must be a whole number and {limit}; found {excerpt(value)}")
        return value

    return check


def check_flag(value: Any, where: str, n_classes: int = 0) -> bool:
    """Check true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{where} must be true or false; found {excerpt(value)}")
    return value


def check_text(value: Any, where: str, n_classes: int = 0) -> str:
    """Check text of any length."""
    if not isinstance(value, str):
        raise InputError(f"{where} must be text; found {excerpt(value)}")
    return value


def check_line(value: Any, where: str, n_classes: int = 0) -> str:
    """Check text that can be shown on one line."""
    if not isinstance(value, str) or len(value) > MAX_TEXT or not value.isprintable():
        raise InputError(
            f"{where} must be text of at most {MAX_TEXT} printable characters; found {excerpt(value)}"
        )
    return value


def check_object(value: Any, where: str, n_classes: int = 0) -> dict[str, Any]:
    """Check a JSON object."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a JSON object; found {type(value).__name__}")
    return value
