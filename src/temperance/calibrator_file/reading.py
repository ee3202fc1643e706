"""A calibrator file as a fitted model, and as the estimator around it: every field is checked before use.

Reading runs no code of the file: the method's name is looked up in the table of methods. The model needs
NumPy alone, so a service (`temperance.serving`) can read a file without the estimators.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrator_file.fields import (
    ADAPTATION,
    BASELINE,
    FIT,
    FITTED_ON,
    FORMAT,
    KNOWN,
    NAMES,
    NOTES,
    OBJECTS,
    REQUIRED,
    VERSION,
)
from temperance.calibrators.registry import CALIBRATORS, Method
from temperance.core.arrays import Vector
from temperance.core.solution import Solution, parse_message
from temperance.errors import InputError, excerpt
from temperance.files import read_regular_file
from temperance.formulas.applying import apply_to_rows
from temperance.formulas.fit_record import Baseline, FitRecord, FittedOn
from temperance.formulas.model import Formula, Model, Shape, TemperatureFormula
from temperance.json_fields import (
    check_object,
    count,
    numbers,
    parse_object,
    read_fields,
    reading_errors,
    refuse_others,
    require,
)

if TYPE_CHECKING:
    from temperance.calibrators.estimator import Calibrator

MAX_FILE = 1 << 28  # bytes: thousands of times the size of a file with 1000 classes
MAX_CLASSES = 10**6
_STEEPEST = 5.0  # logit in the rows that a model is tested on

Json = dict[str, Any]
Path = str | os.PathLike[str]


def load(path: Path) -> Calibrator:
    """Read a calibrator back; its predictions are the same to the bit.

    Fields that this version does not know are kept, and saved again.

    Parameters
    ----------
    path : path
        A calibrator file, as `Calibrator.save` writes it.

    Examples
    --------
    >>> import tempfile, pathlib, temperance
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.json"
    >>> cal.save(path, metadata={"classifier": "resnet50"})
    >>> loaded = temperance.load(path)
    >>> loaded.temperature_ == cal.temperature_, loaded.metadata_
    (True, {'classifier': 'resnet50'})
    """
    with opened(path) as (content, method):
        calibrator = _unfitted(method, content["options"])
        name, options = calibrator._name_with_options(), calibrator.get_params()
        calibrator.model_ = model = read_model(content, method, name, options)
        calibrator.n_features_in_ = model.n_classes
        with _reporting_model_errors():
            calibrator.summary()
    if model.record.class_names is not None:
        calibrator.feature_names_in_ = np.array(model.record.class_names, object)
    return calibrator


def _unfitted(method: Method, given: Json) -> Calibrator:
    """Return the unfitted calibrator with the options of the file."""
    known = method.build().get_params()
    require(known, given, "options")
    refuse_others(known, given, "options")
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    calibrator: Calibrator = method.build(**options)
    try:
        calibrator._check_options()
    except (InputError, TypeError) as error:
        raise InputError(f"options: {error}") from None
    return calibrator


@contextmanager
def opened(path: Path) -> Iterator[tuple[Json, Method]]:
    """Open a file for reading: its content, and its method. Errors in the block name the file."""
    data = read_regular_file(path, most=MAX_FILE)
    with reading_errors(f"{os.fspath(path)} is not a calibrator that can be read"):
        content = parse_object(data)
        _check_version(content)
        require(REQUIRED, content, "the file")
        key = content["method"]
        known = [key for key, method in CALIBRATORS.items() if not method.options]  # a file has its own
        if key not in known:
            raise InputError(f"method must be one of {', '.join(known)}; found {excerpt(key)}")
        for name in ("options", "parameters", "standard_errors", *OBJECTS):
            if name in content:
                check_object(content[name], name)
        yield content, CALIBRATORS[key]


def _check_version(content: Json) -> None:
    given, version = content.get("format"), content.get("version")
    if given != FORMAT:
        raise InputError(f"format must be {FORMAT!r}; found {excerpt(given)}")
    if type(version) is not int or version != VERSION:
        old = type(version) is int and 1 <= version < VERSION
        advice = "Fit the calibrator again with this version" if old else "Update temperance"
        raise InputError(f"version must be {VERSION}; found {excerpt(version)}. {advice}")


def read_model(content: Json, method: Method, name: str, options: Mapping[str, Any]) -> Model:
    """Return the fitted model of a file, and check that it predicts."""
    n_classes: int = count(2, MAX_CLASSES)(content["classes"], "classes", 0)
    formula, shapes = _formula(method.formula, content["parameters"], options, n_classes)
    if isinstance(formula, TemperatureFormula):
        require(("temperature_quantiles",), content["fit"], "fit")
    values = read_fields(content["fit"], FIT, "fit", n_classes, prefix="fit.")
    if "adaptation" in content:
        values |= read_fields(
            content["adaptation"], ADAPTATION, "adaptation", n_classes, prefix="adaptation."
        )
    values |= read_fields(content, (*NAMES, *NOTES), "the file", n_classes)
    values["record.fitted_on"] = _fitted_on(content)
    values["record.baseline"] = _baseline(content, n_classes)
    values["record.unknown_fields"] = _unknown_fields(content)
    model = Model(
        method.key,
        name,
        formula,
        options,
        n_classes,
        standard_errors=_standard_errors(method.formula, content["standard_errors"], shapes),
        solution=_solution(_within("solution.", values)),
        record=FitRecord(**_within("record.", values)),
        **{attribute: value for attribute, value in values.items() if "." not in attribute},
    )
    _check_predictions(model)
    return model


def _within(prefix: str, values: Json) -> Json:
    """Return the values of one holder, by the names of its attributes."""
    return {
        attribute.removeprefix(prefix): value
        for attribute, value in values.items()
        if attribute.startswith(prefix)
    }


def _formula(
    kind: type[Formula], given: Json, options: Mapping[str, Any], n_classes: int
) -> tuple[Formula, Mapping[str, Shape]]:
    try:
        shapes = kind.shapes(n_classes, options, given)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"options must be those of the method; found {excerpt(dict(options))}") from None
    require(shapes, given, "parameters")
    refuse_others(shapes, given, "parameters")
    formula = kind.from_arrays(
        {
            name: numbers(*shape, least=-kind.largest, most=kind.largest)(given[name], name, n_classes)
            for name, shape in shapes.items()
        }
    )
    formula.check()
    return formula, shapes


def _standard_errors(kind: type[Formula], given: Json, shapes: Mapping[str, Shape]) -> dict[str, Vector]:
    require([name for name in kind.needed_errors if name in shapes], given, "standard_errors")
    refuse_others(shapes, given, "standard_errors")
    return {
        name: numbers(*shapes[name], least=0, most=kind.largest)(value, f"standard error of {name}", 0)
        for name, value in given.items()
    }


def _solution(values: Json) -> Solution:
    solver, status = parse_message(values.pop("message"), converged=values.pop("converged"))
    # The solver's own parameters are not in a file; the formula has the result.
    return Solution(parameters=np.empty(0), solver=solver, status=status, **values)


def _fitted_on(content: Json) -> FittedOn | None:
    if "fitted_on" not in content:
        return None
    given = {"kind": None} | content["fitted_on"]
    fitted_on = FittedOn(**read_fields(given, FITTED_ON, "fitted_on", prefix="fitted_on."))
    if "floor" in given and fitted_on.kind != "probabilities":
        raise InputError("fitted_on.floor is for probabilities only")
    return fitted_on


def _baseline(content: Json, n_classes: int) -> Baseline | None:
    if "baseline" not in content:
        return None
    return Baseline(**read_fields(content["baseline"], BASELINE, "baseline", n_classes, prefix="baseline."))


def _unknown_fields(content: Json) -> dict[str, Json]:
    """Return the fields that this version does not know, by the object they are in."""
    found = {"": {name: value for name, value in content.items() if name not in KNOWN}}
    for place, table in OBJECTS.items():
        known = {field.name for field in table}
        found[place] = {name: v for name, v in content.get(place, {}).items() if name not in known}
    return {place: unknown for place, unknown in found.items() if unknown}


def _check_predictions(model: Model) -> None:
    """Raise unless two rows, one flat and one steep, get probabilities."""
    rows = np.stack([np.zeros(model.n_classes), np.linspace(-_STEEPEST, _STEEPEST, model.n_classes)])
    with _reporting_model_errors(), np.errstate(all="ignore"):  # wrong numbers show in the sums
        probs = apply_to_rows(model, "predict_proba", rows)
    if not (np.isfinite(probs).all() and np.allclose(probs.sum(axis=1), 1.0)):
        raise InputError("its numbers must give probabilities; found rows that do not sum to 1")


@contextmanager
def _reporting_model_errors() -> Iterator[None]:
    """Turn any error into one about the file: numbers that pass each check may still fail together."""
    try:
        yield
    except Exception as error:
        what = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        raise InputError(f"its numbers must work together; found {what}") from error
