"""Third-party methods: any object with `fit(logits, labels)` and `predict_proba(logits)`.

A method is named by its key, by the name under which a package registers it (an entry point of the group
`temperance.calibrators`), or by `package.module:Class`; or it is given as a calibrator or any such object. An
object is copied for every fit. It gets `sample_weight`, `positions`, `groups` and `positive` only if its
`fit` takes them, and rows with masked classes only if its `supports_masked_classes` is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from temperance.calibrators.registry import (
    CALIBRATORS,
    UNCALIBRATED,
    Method,
    method_style,
    unknown_method,
)
from temperance.errors import InputError
from temperance.loaders import load_object

ENTRY_POINTS = "temperance.calibrators"

Methods = Sequence[Any] | Mapping[str, Any]
"""Keys, calibrators or other objects, or a mapping of names to these."""


def find_methods(given: Methods) -> dict[str, Method]:
    """Return methods by name, from keys, calibrators or other objects.

    "none" is not among them: the classifier itself is part of every comparison and study.
    """
    if isinstance(given, str):
        raise InputError(f"methods must be a list of keys, such as [{given!r}]; found the string {given!r}.")
    if isinstance(given, Mapping):
        return {name: find_method(one, name) for name, one in given.items()}
    methods: dict[str, Method] = {}
    for one in given:
        if isinstance(one, str) and one == UNCALIBRATED:
            continue
        method = find_method(one)
        if method.key in methods and not isinstance(one, str):
            raise InputError(
                f"methods must have different names; found {method.key} twice. Pass a mapping of names."
            )
        methods[method.key] = method
    return methods


def find_method(given: Any, name: str | None = None) -> Method:
    """Return the method for a key, for `package.module:Class`, for a calibrator or for any such object."""
    if isinstance(given, Method):
        return given
    if isinstance(given, str):
        if given in CALIBRATORS and name in (None, given):
            return CALIBRATORS[given]
        return _of_object(_named(given), name or given)
    return _of_object(given, name or type(given).__name__)


def _named(key: str) -> Any:
    if key in CALIBRATORS:
        return CALIBRATORS[key]()
    announced = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if key in announced:
        return announced[key].load()
    if ":" in key:
        return load_object(key)
    known = [*CALIBRATORS, *sorted(announced)]
    raise unknown_method(key, known, "package.module:Class, or ")


def _of_object(given: Any, name: str) -> Method:
    if name in CALIBRATORS:
        raise InputError(f"{name!r} is the key of another method. Choose another name for yours.")
    prototype = given() if isinstance(given, type) else given
    for needed in ("fit", "predict_proba"):
        if not callable(getattr(prototype, needed, None)):
            raise InputError(
                f"a method must have fit(logits, labels) and predict_proba(logits); {name} has no {needed}."
            )
    return Method(name, partial(_copy, prototype), method_style(name))


def _copy(prototype: Any, **options: Any) -> Any:
    copy = clone(prototype) if hasattr(prototype, "get_params") else deepcopy(prototype)
    return copy.set_params(**options) if options else copy


def fit(
    calibrator: Any,
    logits: Any,
    labels: Any,
    weights: Any = None,
    *,
    positions: bool = False,
    groups: Any = None,
    positive: int | None = None,
) -> Any:
    """Fit a calibrator of any kind; weights, groups and the others go to a fit that takes them.

    The logits are known to be such: a caller has checked them, or computed them from probabilities.
    """
    given = {
        "sample_weight": weights, "positions": positions or None, "groups": groups, "positive": positive,
        "from_probs": False,
    }  # fmt: skip
    calibrator.fit(
        logits,
        labels,
        **{
            name: value
            for name, value in given.items()
            if value is not None and has_fit_parameter(calibrator, name)
        },
    )
    return calibrator
