"""Which column is meant: by labels, `positive`, `class_`, `classes`, and the headers of frames and files.

A class is meant by its name. A whole number is a column only where it cannot be a name: there are no names,
or none of them is a whole number, or they are 0 ... K-1 in order. What could be both raises.

The headers of a frame name its classes: prob_paid and logit_paid the class paid. Headers 0 ... K-1 in order,
which a frame has by default, are no names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.errors import InputError, listed, on_one_line
from temperance.inputs.validation import check_number

Names = Sequence[str] | Sequence[int]
"""Class names in the order of the columns: text or whole numbers."""
STEMS = {"logits": "logit", "probs": "prob"}
"""What the headers of scores begin with, before the class."""


def resolve(argument: str, given: NDArray[Any], names: Names | None, n_classes: int) -> NDArray[np.intp]:
    """Return the column that each name or whole number means, and -1 where it means none.

    Raise if one could mean two columns.

    Examples
    --------
    >>> resolve("labels", np.array([5, 3, 4]), ("3", "5", "7"), 3).tolist()
    [1, 0, -1]
    >>> resolve("labels", np.array([2, 0, 3]), ("cat", "dog", "eel"), 3).tolist()
    [2, 0, -1]
    """
    is_text = given.dtype.kind in "UT"
    if not is_text and not looked_up(names):
        inside = (given >= 0) & (given < n_classes)
        return given.astype(np.intp, copy=False) if inside.all() else np.where(inside, given, -1)
    meant: dict[object, list[int]] = {}
    for place, name in enumerate(names or ()):
        meant.setdefault(str(name) if is_text else _whole_number(name), []).append(place)
    if meant.pop(None, []):  # only some names are whole numbers: others can be columns
        for place in range(n_classes):
            meant[place] = [*{*meant.get(place, ()), place}]
    different, inverse = np.unique(given, return_inverse=True)
    places = [meant.get(value, [-1]) for value in different.tolist()]
    twofold = np.flatnonzero([len(several) > 1 for several in places])
    if twofold.size:
        doubtful = np.flatnonzero(np.isin(inverse, twofold))
        raise InputError(
            f"{argument} must be text where a whole number can mean two of the classes "
            f"{listed(list(names or ()))}; found {different[twofold[0]]}" + "." * (given.size == 1),
            rows=doubtful if given.size > 1 else (),
            advice="Pass the names as text.",
        )
    return np.array([place for place, *_ in places], np.intp)[inverse.reshape(-1)]


def looked_up(names: Names | None) -> list[int | None]:
    """Return the names as whole numbers if numbers are looked up among them; [] if these are columns."""
    numbers = [_whole_number(name) for name in names or ()]
    are_columns = numbers == list(range(len(numbers))) or not any(number is not None for number in numbers)
    return [] if are_columns else numbers


def _whole_number(name: object) -> int | None:
    """Return a name as a whole number, true as 1 and false as 0; None if it is not one."""
    try:
        number = float({"true": 1, "false": 0}.get(str(name).lower(), str(name)))
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def check_class(argument: str, value: Any, names: Names | None, n_classes: int) -> int:
    """Return the column of one class: of its name or of its number, which can be text on a command line."""
    given, as_text = _plain_name(value), [str(name) for name in names or ()]
    if isinstance(given, str) and given.isdecimal() and given not in as_text:
        given = int(given)
    columns = f"from 0 to {n_classes - 1}"
    if isinstance(given, str) and names is None:
        raise InputError(
            f"{argument} must be a column {columns} where columns have no names; found {value!r}.",
            advice="Pass the names of the columns as classes.",
        )
    if not isinstance(given, str):
        by_name = bool(looked_up(names))
        wanted = f"among the names {listed(as_text, str)}" if by_name else columns
        check_number(argument, given, wanted, lambda k: by_name or 0 <= k < n_classes, whole=True)
    column = int(resolve(argument, np.array([given]), names, n_classes)[0])
    if column < 0:
        raise InputError(f"{argument} must be one of {listed(list(names or ()))}; found {value!r}.")
    return column


def class_in_words(column: int, names: Names | None) -> str:
    """Return the name of a class: "class 3" in a sentence, where "3" would be a number."""
    name = str(column if names is None else names[column])
    return f"class {name}" if name.isdecimal() else on_one_line(name)


def check_classes(classes: Any, n_classes: int | None = None) -> Names:
    """Return the given names of classes, checked; as many as there are columns, if that is known."""
    some = "" if n_classes is None else f"{n_classes} "
    wanted = f"classes must be a list of {some}different names, one per column in their order"
    ordered = isinstance(classes, Iterable) and not isinstance(classes, (str, Set))
    names = [_plain_name(name) for name in classes] if ordered else []
    if not (all(isinstance(name, str) for name in names) or all(isinstance(name, int) for name in names)):
        raise InputError(f"{wanted}, all text or all whole numbers; found {listed(names)}.")
    if not ordered or len({*names}) != len(names) or len(names) != (n_classes or len(names)):
        raise InputError(f"{wanted}; found {listed(names) if names else repr(classes)}.")
    return tuple(names)


def _plain_name(name: Any) -> Any:
    """Return a name as a Python string or integer; booleans become strings."""
    if isinstance(name, (str, bool, np.bool_)):
        return str(name)
    is_whole = isinstance(name, (np.integer, float, np.floating)) and float(name).is_integer()
    return int(name) if is_whole else name


def after_stem(header: str, stem: str) -> str | None:
    """Return the class in the header of a column of scores, such as paid in prob_paid; None if it has none.

    Examples
    --------
    >>> after_stem("prob_paid", "prob"), after_stem("probs_0", "prob"), after_stem("paid", "prob")
    ('paid', '0', None)
    """
    match = re.fullmatch(rf"{stem}s?_(.+)", header)
    return match[1] if match else None


def headers_of(frame: Any) -> list[Any] | None:
    """Return the headers of a data frame; None for other containers."""
    headers = getattr(frame, "column_names", None)  # of pyarrow, whose `columns` are the data
    headers = getattr(frame, "columns", None) if headers is None else headers
    return None if headers is None else list(headers)


def text_headers(frame: Any) -> NDArray[np.object_] | None:
    """Return the headers of a data frame, if they are text: its feature names."""
    headers = headers_of(frame)
    is_text = headers and all(isinstance(header, str) for header in headers)
    return np.array(headers, object) if is_text else None


def column_names(frame: Any) -> Names | None:
    """Return the classes that the headers of a data frame name; None if they name none.

    Examples
    --------
    >>> from types import SimpleNamespace as Frame
    >>> [column_names(Frame(columns=headers)) for headers in (["prob_a", "prob_b"], [2, 1], [0, 1])]
    [('a', 'b'), (2, 1), None]
    """
    names = _class_of_each(frame)
    if names is None or names == list(range(len(names))):
        return None
    return tuple(names)


def _class_of_each(frame: Any) -> list[Any] | None:
    """Return the class of each column of a data frame: text or whole numbers; None if it has none."""
    headers = headers_of(frame)
    names = [_plain_name(header) for header in headers or ()]
    if not names or not all(isinstance(name, (str, int)) for name in names):
        return None
    if all(isinstance(name, str) for name in names):
        for stem in STEMS.values():
            classes = [name for header in names if (name := after_stem(header, stem)) is not None]
            if len(classes) == len(names):
                numbers = list(map(str, range(len(names))))
                names = list(range(len(names))) if classes == numbers else classes
                break
            if classes and len(classes) < len(names):
                chosen = [header for header in names if after_stem(header, stem) is not None]
                raise InputError(
                    f"a data frame must hold the scores of classes alone; found {listed(chosen)} among other "
                    f"columns: {listed([header for header in names if header not in chosen])}. Drop these, "
                    "or rename them if all columns are classes."
                )
    elif not all(isinstance(name, int) for name in names):
        names = list(map(str, names))
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(
            f"a data frame must name each class once; found {listed(twice)} more than once. Drop the column "
            "that is no class, or rename it."
        )
    return names


def names_of(logits: Any, classes: Any, n_classes: int) -> Names | None:
    """Return the class names: as given, or else as in a data frame."""
    if classes is not None:
        return check_classes(classes, n_classes)
    names = column_names(logits)
    return None if names is None or len(names) != n_classes else names


def places_of(
    own: Sequence[object], classes: Sequence[object], *, numbered: bool = False, where: str = ""
) -> list[int] | None:
    """Return where the classes are among a table's own; None if they are new names of all its columns.

    Raise if only some are there, unless the table's are numbers: 1, 2 and 3 are new names of 0, 1 and 2.

    Examples
    --------
    >>> places_of(["ant", "bee", "cat"], ["cat", "ant"]), places_of(["c0", "c1"], ["cat", "ant"])
    ([2, 0], None)
    """
    places = {str(name): place for place, name in enumerate(own)}
    unknown = [name for name in classes if str(name) not in places]
    if 0 < len(unknown) < len(classes) and not numbered:
        raise InputError(
            f"must have one column per class; none is named {listed(unknown)}. Correct classes.", where=where
        )
    return None if unknown else [places[str(name)] for name in classes]


def choose_columns(given: Any, classes: Any) -> Any:
    """Return a data frame with the columns of these classes, in their order; anything else as it is.

    If it has none of them, they are new names of its columns.
    """
    headers = headers_of(given)
    if classes is None or not headers:
        return given
    wanted = check_classes(classes)
    own = headers if {*wanted} <= {*headers} else _class_of_each(given) or []
    numbered = own == list(range(len(own)))
    places = places_of(own, wanted, numbered=numbered, where="a data frame")
    if places is None or places == list(range(len(headers))):
        return given
    if numbered and not isinstance(headers[0], str):
        raise InputError(
            f"classes {listed(wanted)} could choose columns by their numbers, or be names of them in their "
            f"order. Choose with logits[{list(wanted)}], or pass logits.to_numpy() and the names."
        )
    return _taken(given, places)


def _taken(frame: Any, places: list[int]) -> Any:
    """Return some columns of a data frame."""
    if hasattr(frame, "column_names"):
        return frame.select(places)
    return frame.iloc[:, places] if hasattr(frame, "iloc") else frame[:, places]


def check_columns_of(
    frame: Any,
    names: Names | None,
    n_classes: int,
    *,
    argument: str = "logits",
    expression: str = "cal.get_feature_names_out()",
) -> None:
    """Raise if a data frame's classes, or their order, differ from these.

    Where one of both is only numbered, 0 ... K-1, and the other has names, columns are read by their places.
    The advice calls the frame by its `argument`, and `expression` has the names.
    """
    own = _class_of_each(frame)
    if own is None:
        return
    numbered = list(map(str, range(n_classes)))
    found, wanted = list(map(str, own)), numbered if names is None else list(map(str, names))
    if found == wanted or (numbered in (found, wanted) and {*found} != {*wanted}):
        return
    must = f"the columns must match the fit's, in their order: {listed(wanted)}"
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(
            f"{must}; found {listed(found)}, without {listed(missing)}. If these are the same classes in the "
            f"same order under other names, pass np.asarray({argument}, float)."
        )
    places = [found.index(name) for name in wanted]
    is_arrow = hasattr(frame, "column_names")
    if names is not None and {*wanted} <= {*(headers_of(frame) or ())}:
        chosen = f".select(list({expression}))" if is_arrow else f"[list({expression})]"
    else:
        chosen = f".select({places})" if is_arrow else f"{'.iloc' * hasattr(frame, 'iloc')}[:, {places}]"
    other = "others among them" if len(found) > len(wanted) else "another order"
    raise InputError(f"{must}; found {other}: {listed(found)}. Pass {argument}{chosen}.")
