"""The calibrator file: its fields, reading it as a model or an estimator, and writing it.

One JSON object, versioned, data only; numbers have enough digits to read back the same float64. Fields and
formulas are described in docs/file-format.md. A field says where in the `Model` its value is: `n_rows`, or
`record.date`. Reading and writing walk the same tables, one per object of the file.

Every field is checked before use, and reading runs no code of the file: the method's name is looked up in the
table of methods. The model needs only NumPy, so a service (`temperance.serving`) can read a file without the
estimators.

Changing the format: a new optional field is an entry here and the attribute that holds it; it needs no new
version, since readers keep fields they do not know. For anything else add 1 to VERSION, keep files of the
old version in tests/calibrator_file/data, and teach the reader both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrators.registry import CALIBRATORS, Method
from temperance.core.arrays import Vector
from temperance.core.solution import Solution, parse_message
from temperance.errors import InputError, excerpt
from temperance.files import read_regular_file, write_atomically
from temperance.formulas.automation import Automation
from temperance.formulas.fit_record import BASELINE_SHARES, Baseline, FitRecord, FittedOn
from temperance.formulas.model import Formula, Model, Shape, TemperatureFormula, apply_to_rows
from temperance.inputs.validation import check_temperatures
from temperance.json_fields import (
    Check,
    Field,
    check_flag,
    check_line,
    check_names,
    check_object,
    check_text,
    count,
    nested,
    number,
    numbers,
    parse_object,
    plain_json,
    read_fields,
    reading_errors,
    write_fields,
)

if TYPE_CHECKING:
    from pathlib import Path

    from temperance.calibrators.estimator import Calibrator

Json = dict[str, Any]

FORMAT = "temperance calibrator"
VERSION = 2
MAX_CLASSES = 10**6
MAX_AXES = 64  # of a NumPy array
POINTS = len(BASELINE_SHARES)
MAX_MEAN = 1e300  # of what has no other limit, so that sums stay finite
MAX_WEIGHT = 1e100  # of all rows, as in a fit; the least is 1 / MAX_WEIGHT
MAX_LOG_RATIO = 100.0  # of class frequencies: the squares of its exponential are finite
MAX_BASELINE_ROWS = 10**9  # exact tests of a check end quickly up to here, and never from 2**53 on
MAX_ENTROPY = 14.0  # nats: the logarithm of MAX_CLASSES is 13.8
ROUNDING = 1e-3  # of sums over probabilities, which can be float16


def _rising(check: Check) -> Check:
    def check_order(value: Any, where: str, n_classes: int) -> Vector:
        array: Vector = check(value, where, n_classes)
        if (np.diff(array) < 0).any():
            raise InputError(f"{where} must not decrease; found {excerpt(array.tolist())}")
        return array

    return check_order


def _check_quantiles(value: Any, where: str, n_classes: int) -> Vector:
    quantiles: Vector = numbers(3)(value, where, n_classes)
    check_temperatures(where, quantiles)
    return quantiles


def _check_shares(value: Any, where: str, n_classes: int) -> Vector:
    """Check the share of the weight up to each quantile: at least its level, and all of it at the end."""
    shares: Vector = numbers(POINTS, least=0, most=1 + ROUNDING)(value, where, n_classes)
    if not (shares >= BASELINE_SHARES - ROUNDING).all():
        found = excerpt(shares.tolist())
        raise InputError(f"{where} must be at least the levels of the quantiles, up to 1; found {found}")
    return shares


def _check_counts(value: Any, where: str, n_classes: int) -> Vector:
    """Check the weight of the rows of each class."""
    counts: Vector = numbers("K", least=0, most=MAX_WEIGHT)(value, where, n_classes)
    if not counts.sum() >= 1 / MAX_WEIGHT:
        raise InputError(f"{where} must have a sum of at least {1 / MAX_WEIGHT:g}; found {counts.sum():g}")
    return counts


def _check_mean_probabilities(value: Any, where: str, n_classes: int) -> Vector:
    probabilities: Vector = numbers("K", least=0, most=1 + ROUNDING)(value, where, n_classes)
    if not abs(probabilities.sum() - 1) <= ROUNDING:
        raise InputError(f"{where} must sum to 1; found {probabilities.sum():g}")
    return probabilities


def _check_names(value: Any, where: str, n_classes: int) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InputError(f"{where} must be a list of text")
    if len(value) != n_classes:
        raise InputError(f"{where} must be {n_classes} names, one per class; found {len(value)}")
    return tuple(value)


def _check_kind(value: Any, where: str, n_classes: int) -> str:
    if value not in ("logits", "probabilities"):
        raise InputError(f"{where} must be one of logits, probabilities; found {excerpt(value)}")
    return str(value)


def _check_column(value: Any, where: str, n_classes: int) -> int:
    column: int = count(0, n_classes - 1)(value, where, n_classes)
    return column


def _or_null(check: Check) -> Check:
    return lambda value, where, n_classes: None if value is None else check(value, where, n_classes)


REQUIRED = ("format", "version", "method", "classes", "options", "parameters", "standard_errors", "fit")

FIT = (
    Field("rows", count(1), "n_rows"),
    Field("loss", number(), "solution.value"),
    Field("gradient_norm", number(), "solution.gradient_norm"),
    Field("iterations", count(0), "solution.iterations"),
    Field("passes", count(0), "solution.passes"),
    Field("converged", check_flag, "solution.converged"),
    Field("message", check_text, "solution.message"),
    Field(
        "temperature_quantiles", _rising(_check_quantiles), optional=True
    ),  # of methods that have a temperature
    Field("effective_parameters", number(0, MAX_MEAN), "n_parameters", optional=True),
    Field("class_counts", _check_counts, optional=True),
    Field("groups", count(2), "n_groups", optional=True),
    Field("design_effect", number(1, MAX_WEIGHT), optional=True),
    Field("data_hash", check_line, "record.data_hash", optional=True),
    Field("date", check_line, "record.date", optional=True),
    Field("library_version", check_line, "record.library_version", optional=True),
)
ADAPTATION = (
    Field("log_prior_ratio", numbers("K", most=MAX_LOG_RATIO)),
    Field("rows", _or_null(count(1)), "adaptation_rows", optional=True),
    Field("frequency_errors", _or_null(numbers("K", least=0, most=MAX_WEIGHT)), optional=True),
)
AUTOMATION = (
    Field("max_error", number(0, 1), "automation.max_error"),
    Field("delta", number(0, 1), "automation.delta"),
    Field("threshold", number(0, 1), "automation.threshold", optional=True),  # absent: no row is decided
    Field("positive", _check_column, "automation.positive", optional=True),
    Field("share", number(0, 1), "automation.share"),
    Field("error", number(0, 1), "automation.error", optional=True),
    Field("bound", number(0, 1), "automation.bound", optional=True),
    Field("rows", count(1), "automation.rows"),
    Field("groups", count(1), "automation.groups", optional=True),
    Field("rows_needed", count(1), "automation.rows_needed", optional=True),
)
FITTED_ON = (
    Field("kind", _check_kind, "record.fitted_on.kind"),
    Field("floor", number(0, 1), "record.fitted_on.floor", optional=True),
    Field("length_normalised", check_flag, "record.fitted_on.length_normalised", optional=True),
    Field("positions", check_flag, "record.fitted_on.positions", optional=True),
    Field("dim", count(0, MAX_AXES), "record.fitted_on.dim", optional=True),
    Field("renormalised", check_flag, "record.fitted_on.renormalised", optional=True),
)
BASELINE_ADDED = ("mean_probabilities", "label_frequencies", "class_variances")  # since the first files
BASELINE = tuple(
    Field(name, check, f"record.baseline.{name}", optional=name in BASELINE_ADDED)
    for name, check in {
        "rows": count(1, MAX_BASELINE_ROWS),
        "effective_rows": number(1 - ROUNDING, MAX_BASELINE_ROWS * (1 + ROUNDING)),
        "confidence_quantiles": _rising(numbers(POINTS, least=0, most=1)),
        "confidence_shares": _rising(_check_shares),
        "entropy_quantiles": _rising(numbers(POINTS, least=0, most=MAX_ENTROPY)),
        "entropy_shares": _rising(_check_shares),
        "predicted_counts": _check_counts,
        "mean_confidence": number(0, 1),
        "mean_entropy": number(0, MAX_ENTROPY),
        "accuracy": number(0, 1),
        "mean_probabilities": _check_mean_probabilities,
        "label_frequencies": numbers("K", least=0, most=1),
        "class_variances": numbers("K", least=0, most=0.25),
    }.items()
)
NAMES_AND_NOTES = (
    Field("class_names", _check_names, "record.class_names", optional=True),
    Field("metadata", check_object, "record.metadata", optional=True),
)

OBJECTS = {
    "fit": FIT,
    "fitted_on": FITTED_ON,
    "adaptation": ADAPTATION,
    "automation": AUTOMATION,
    "baseline": BASELINE,
}
"""The objects of a file that can have unknown fields, and the fields that are known."""
KNOWN = {*REQUIRED, *OBJECTS, *(field.name for field in NAMES_AND_NOTES)}
"""The known fields of the file itself."""


def load(path: str | Path) -> Calibrator:
    """Read a calibrator back; its predictions are bit-identical.

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
        calibrator.model_ = model = read_model(content, method, calibrator.get_params())
        calibrator.n_features_in_ = model.n_classes
        with _reporting_model_errors():
            calibrator.summary()
    if model.record.class_names is not None:
        calibrator.feature_names_in_ = np.array(model.record.class_names, object)
    return calibrator


def _unfitted(method: Method, given: Json) -> Calibrator:
    """Return the unfitted calibrator with the options of the file."""
    known = method.build().get_params()
    check_names("options", given, required=known, known=known)
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    calibrator: Calibrator = method.build(**options)
    try:
        calibrator._check_options()
    except (InputError, TypeError) as error:
        raise InputError(f"options: {error}") from None
    return calibrator


@contextmanager
def opened(path: str | Path) -> Iterator[tuple[Json, Method]]:
    """Open a file for reading: its content, and its method. Errors in the block name the file."""
    data = read_regular_file(path)
    with reading_errors(f"{os.fspath(path)} is not a calibrator that can be read"):
        content = parse_object(data)
        given, version = content.get("format"), content.get("version")
        if given != FORMAT:
            raise InputError(f"format must be {FORMAT!r}; found {excerpt(given)}")
        if type(version) is not int or version != VERSION:
            old = type(version) is int and 1 <= version < VERSION
            advice = "Fit the calibrator again with this version" if old else "Update temperance"
            raise InputError(f"version must be {VERSION}; found {excerpt(version)}. {advice}")
        check_names("the file", content, required=REQUIRED)
        key = content["method"]
        known = [key for key, method in CALIBRATORS.items() if not method.options]  # a file has its own
        if key not in known:
            raise InputError(f"method must be one of {', '.join(known)}; found {excerpt(key)}")
        for name in ("options", "parameters", "standard_errors", *OBJECTS):
            if name in content:
                check_object(content[name], name)
        yield content, CALIBRATORS[key]


def read_model(content: Json, method: Method, options: Mapping[str, Any]) -> Model:
    """Return the fitted model of a file, and check that it predicts."""
    n_classes: int = count(2, MAX_CLASSES)(content["classes"], "classes", 0)
    formula, shapes = _formula(method.formula, content["parameters"], options, n_classes)
    if isinstance(formula, TemperatureFormula):
        check_names("fit", content["fit"], required=["temperature_quantiles"])
    values = read_fields(content, NAMES_AND_NOTES, "the file", n_classes)
    for place, table in OBJECTS.items():
        if place in content:
            values |= read_fields(content[place], table, place, n_classes, prefix=f"{place}.")
    held = nested(values)
    solution, record = held.pop("solution"), held.pop("record", {})
    solver, status = parse_message(solution.pop("message"), converged=solution.pop("converged"))
    if "fitted_on" in record:
        record["fitted_on"] = fitted_on = FittedOn(**record["fitted_on"])
        for name in ("floor", "renormalised"):
            if getattr(fitted_on, name) is not None and fitted_on.kind != "probabilities":
                raise InputError(f"fitted_on.{name} is for probabilities only")
        if fitted_on.positions and "adaptation" in content:
            raise InputError("adaptation is for classes, and fitted_on.positions must not be true")
    if "automation" in held:
        rule = Automation(**{"threshold": None, "error": None, "bound": None, **held["automation"]})
        if rule.positive is not None and record.get("class_names"):
            rule = replace(rule, positive_name=record["class_names"][rule.positive])
        held["automation"] = rule
    if "baseline" in record:
        record["baseline"] = baseline = Baseline(**record["baseline"])
        for smaller, name, larger in (
            (baseline.rows, "baseline.rows", held["n_rows"]),
            (baseline.effective_rows, "baseline.effective_rows", baseline.rows * (1 + ROUNDING)),
        ):
            if smaller > larger:
                raise InputError(f"{name} must be at most {larger:g}; found {smaller:g}")
    model = Model(
        method.key,
        method.class_name,
        formula,
        options,
        n_classes,
        standard_errors=_standard_errors(method.formula, content["standard_errors"], shapes),
        # The solver's own parameters are not in a file; the formula has the result.
        solution=Solution(parameters=np.empty(0), solver=solver, status=status, **solution),
        record=FitRecord(**record, unknown_fields=_unknown_fields(content)),
        **held,
    )
    _check_predictions(model)
    return model


def _formula(
    kind: type[Formula], given: Json, options: Mapping[str, Any], n_classes: int
) -> tuple[Formula, Mapping[str, Shape]]:
    try:
        shapes = kind.shapes(n_classes, options, given)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"options must be valid for the method; found {excerpt(dict(options))}") from None
    check_names("parameters", given, required=shapes, known=shapes)
    arrays = {
        name: numbers(*shape, least=-kind.largest, most=kind.largest)(given[name], name, n_classes)
        for name, shape in shapes.items()
    }
    formula = kind.from_arrays({name: a if a.ndim else float(a) for name, a in arrays.items()})
    formula.check()
    return formula, shapes


def _standard_errors(kind: type[Formula], given: Json, shapes: Mapping[str, Shape]) -> dict[str, Vector]:
    check_names("standard_errors", given, known=shapes)
    return {
        name: numbers(*shapes[name], least=0, most=kind.largest)(value, f"standard error of {name}", 0)
        for name, value in given.items()
    }


def _unknown_fields(content: Json) -> dict[str, Json]:
    """Return the fields that this version does not know, by the object they are in."""
    found = {"": {name: value for name, value in content.items() if name not in KNOWN}}
    for place, table in OBJECTS.items():
        known = {field.name for field in table}
        found[place] = {name: v for name, v in content.get(place, {}).items() if name not in known}
    return {place: unknown for place, unknown in found.items() if unknown}


def _check_predictions(model: Model) -> None:
    """Raise unless two rows, one flat and one steep, get probabilities."""
    rows = np.stack([np.zeros(model.n_classes), np.linspace(-5.0, 5.0, model.n_classes)])
    with _reporting_model_errors(), np.errstate(all="ignore"):  # wrong numbers show in the sums
        probs = apply_to_rows(model, "predict_proba", rows)
    if not (np.isfinite(probs).all() and np.allclose(probs.sum(axis=1), 1.0)):
        raise InputError("its numbers must give probabilities; found rows that do not sum to 1")


@contextmanager
def _reporting_model_errors() -> Iterator[None]:
    """Turn any error into one about the file: numbers that pass each check can still fail together."""
    try:
        yield
    except Exception as error:
        what = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        raise InputError(f"its numbers must work together; found {what}") from error


def save(
    model: Model, path: str | Path, *, metadata: Mapping[str, Any] | None = None, overwrite: bool = False
) -> None:
    """Write a fitted model to a file, with `metadata` in place of its own if some is given."""
    if metadata is not None:
        model = replace(model, record=replace(model.record, metadata=_checked_metadata(metadata)))
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "method": model.key,
        "classes": model.n_classes,
        "options": model.options,
        "parameters": {name: value.tolist() for name, value in model.formula.arrays().items()},
        "standard_errors": {name: np.asarray(e).tolist() for name, e in model.standard_errors.items()},
    }
    known = write_fields(model, NAMES_AND_NOTES)
    known |= {place: write_fields(model, table) for place, table in OBJECTS.items()}
    content |= {name: value for name, value in known.items() if value}
    for place, unknown in model.record.unknown_fields.items():
        (content[place] if place else content).update(unknown)
    text = json.dumps(content, indent=1, allow_nan=False, default=_plain) + "\n"
    write_atomically(path, text.encode(), overwrite=overwrite)


def _plain(option: Any) -> Any:
    if isinstance(option, np.generic):
        return option.item()
    raise InputError(f"options must be numbers or strings to be saved; found {excerpt(option)}.")


def _checked_metadata(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata must be a mapping of names to values; found {type(metadata).__name__}.")
    try:
        checked: dict[str, Any] = plain_json(dict(metadata), "metadata")
    except InputError as error:
        raise InputError(f"{error}. Convert it, or leave it out.") from None
    return checked
