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


@dataclass(frozen=True)
class Field:
    """One field of a JSON object: what it must be, and the attribute that holds it.

    Attributes
    ----------
    name : str
        Its name in the file.
    kind : type
        `float`, `int` (a whole number), `list` (an array of numbers), `bool`, `str` or `dict`; `object` if
        `check` alone decides.
    source : str
        The attribute that holds the value, such as "record.date"; "" if it has the name of the field.
    optional : bool
        Whether a file can lack it.
    low, high : float
        The limits of a number, and of each number of an array.
    shape : tuple
        The shape of an array; letters stand for sizes, as "K" for the number of classes.
    check : callable, optional
        What else must hold: (value, its name in messages) -> the value.
    """

    name: str
    kind: type
    source: str = ""
    optional: bool = False
    low: float = -math.inf
    high: float = math.inf
    shape: tuple[int | str, ...] = ()
    check: Callable[[Any, str], Any] | None = None


@contextmanager
def reading_errors(fact: str, *, advice: str = "", where: str = "") -> Iterator[None]:
    """Begin each error with what the file should be, before what is wrong with it."""
    try:
        yield
    except InputError as error:
        sentence = str(error) if str(error).endswith(".") else f"{error}."
        raise InputError(f"{fact}: {sentence}", advice=advice, where=where) from None


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object; raise if one occurs twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = sorted(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise InputError(f"a field must occur once; found {listed(twice)} more than once")
    return fields


def parse_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a file: names occur once, numbers are finite, nesting is bounded."""
    try:
        parsed = json.loads(content.decode(), object_pairs_hook=unique_fields)
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
        if abs(value) > sys.float_info.max:
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
    sizes: Mapping[str, int] | None = None,
    *,
    place: str = "",
    only: bool = False,
) -> dict[str, Any]:
    """Return the checked values of the given fields, by the attribute that will hold each.

    Attributes of an attribute, such as "record.date", are in a dictionary of their own. `sizes` are the
    numbers behind the letters of shapes, `place` is the name of an object within the file. With `only`, other
    fields raise an error.
    """
    required = [field.name for field in table if not field.optional]
    known = [field.name for field in table] if only else None
    check_names(place or "it", given, required=required, known=known)
    values: dict[str, Any] = {}
    for field in table:
        if field.name in given:
            where = f"{place}.{field.name}" if place else field.name
            *holders, attribute = (field.source or field.name).split(".")
            holder = values
            for name in holders:
                holder = holder.setdefault(name, {})
            holder[attribute] = check_value(field, given[field.name], where, sizes or {})
    return values


def check_value(field: Field, value: Any, where: str, sizes: Mapping[str, int]) -> Any:
    """Return the value of a field, or raise if it is not what the field must be."""
    if field.kind is list:
        shape = tuple(sizes[size] if isinstance(size, str) else size for size in field.shape)
        value = check_numbers(value, where, shape, field.low, field.high)
    elif field.kind is float:
        value = check_number(value, where, field.low, field.high)
    elif field.kind is int:
        value = check_count(value, where, field.low, min(field.high, MAX_COUNT))
    elif field.kind is dict:
        value = check_object(value, where)
    elif not isinstance(value, field.kind):
        wanted = "true or false" if field.kind is bool else "text"
        raise InputError(f"{where} must be {wanted}; found {excerpt(value)}")
    return value if field.check is None else field.check(value, where)


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


def check_names(
    what: str, given: Collection[str], *, required: Collection[str] = (), known: Collection[str] | None = None
) -> None:
    """Raise unless all required names are given, and only known names."""
    if missing := sorted(set(required) - set(given)):
        raise InputError(f"{what} lacks {', '.join(missing)}")
    if known is not None and (unknown := sorted(set(given) - set(known))):
        raise InputError(f"{what} has the unknown {listed(unknown)}")


def check_numbers(
    value: Any, where: str, shape: tuple[int, ...], least: float, most: float
) -> NDArray[np.float64]:
    """Return an array of numbers from `least` to `most`."""
    if not _is_numeric(value):
        raise InputError(f"{where} must hold numbers only")
    try:
        array = np.array(value, np.float64)
    except (ValueError, OverflowError):
        raise InputError(f"{where} must have the shape {shape}") from None
    if array.shape != shape:
        raise InputError(f"{where} must have the shape {shape}; found {array.shape}")
    if not (array >= least).all():  # this also rejects nan
        raise InputError(f"{where} must be >= {least:g}; found {array.min():g}")
    if not (array <= most).all():
        raise InputError(f"{where} must be <= {most:g}; found {array.max():g}")
    return array


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_numeric, value))
    return type(value) in (int, float)


def check_number(value: Any, where: str, low: float, high: float) -> float:
    """Return a number from `low` to `high`."""
    if type(value) not in (int, float) or not low <= value <= high:
        limits = f" from {low:g} to {high:g}" if math.isfinite(low) else ""
        raise InputError(f"{where} must be a number{limits}; found {excerpt(value)}")
    return float(value)  # other languages might write 1.0 as 1


def check_count(value: Any, where: str, least: float, most: float = MAX_COUNT) -> int:
    """Return a whole number from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        limit = f"at most {most}" if type(value) is int and value > most else f"at least {least}"
        raise InputError(f"{where} must be a whole number and {limit}; found {excerpt(value)}")
    return value


def check_line(text: str, where: str) -> str:
    """Return text that can be shown on one line."""
    if len(text) > MAX_TEXT or not text.isprintable():
        raise InputError(
            f"{where} must be text of at most {MAX_TEXT} printable characters; found {excerpt(text)}"
        )
    return text


def check_object(value: Any, where: str) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a JSON object; found {type(value).__name__}")
    return value
