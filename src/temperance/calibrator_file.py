"""The calibrator file: its fields, reading it as a model or an estimator, and writing it.

One JSON object, versioned, data only; numbers have enough digits to read back the same float64. Fields and
formulas are described in docs/file-format.md. A field says where in the `Model` its value is: `n_rows`, or
`record.date`. Reading and writing walk the same tables, one per object of the file.

Every field is checked before use, and reading runs no code of the file: the method's name is looked up in the
table of methods. The model needs only NumPy, so a service (`temperance.serving`) can read a file without the
estimators.

Changing the format: a new optional field is an entry here and the attribute that holds it; it needs no new
version, since readers keep fields they do not know. For anything else, such as a field by which later
rows must be read, add 1 to VERSION, keep files of the old version in tests/calibrator_file/data, and teach
the reader both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrators.registry import CALIBRATORS, Method
from temperance.core.arrays import Vector
from temperance.core.solution import Solution, parse_message
from temperance.errors import InputError, excerpt
from temperance.files import read_regular_file, write_atomically
from temperance.formulas.automation import Automation
from temperance.formulas.fit_record import BASELINE_SHARES, MAX_GROUPS, UNITS, Baseline, FitRecord, FittedOn
from temperance.formulas.model import Formula, Model, Shape, TemperatureFormula, apply_to_rows
from temperance.inputs.validation import check_choice, check_temperatures
from temperance.json_fields import (
    MAX_COUNT,
    Field,
    check_count,
    check_line,
    check_names,
    check_numbers,
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
VERSION = 3
READABLE = (2, VERSION)  # what a file of version 2 lacks is unknown
MAX_CLASSES = 10**6
POINTS = len(BASELINE_SHARES)
MAX_WEIGHT = 1e100  # of all rows, as in a fit; the least is 1 / MAX_WEIGHT
MAX_LOG_RATIO = 100.0  # of class frequencies: the squares of its exponential are finite
MAX_BASELINE_ROWS = 10**9  # exact tests of a check end quickly up to here, and never from 2**53 on
MAX_ENTROPY = 14.0  # nats: the logarithm of MAX_CLASSES is 13.8
ROUNDING = 1e-3  # of sums over probabilities, which can be float16


def _check_rising(array: Vector, where: str) -> Vector:
    if (np.diff(array) < 0).any():
        raise InputError(f"{where} must not decrease; found {excerpt(array.tolist())}")
    return array


def _check_quantiles(temperatures: Vector, where: str) -> Vector:
    check_temperatures(where, temperatures)
    return _check_rising(temperatures, where)


def _check_shares(shares: Vector, where: str) -> Vector:
    """Check the share of the weight up to each quantile: at least its level, and all of it at the end."""
    if not (shares >= BASELINE_SHARES - ROUNDING).all():
        found = excerpt(shares.tolist())
        raise InputError(f"{where} must be at least the levels of the quantiles, up to 1; found {found}")
    return _check_rising(shares, where)


def _check_counts(counts: Vector, where: str) -> Vector:
    """Check the weight of the rows of each class."""
    if not counts.sum() >= 1 / MAX_WEIGHT:
        raise InputError(f"{where} must have a sum of at least {1 / MAX_WEIGHT:g}; found {counts.sum():g}")
    return counts


def _check_sum(probabilities: Vector, where: str) -> Vector:
    if not abs(probabilities.sum() - 1) <= ROUNDING:
        raise InputError(f"{where} must sum to 1; found {probabilities.sum():g}")
    return probabilities


def _check_names(names: Any, where: str) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{where} must be a list of text")
    return tuple(names)


FIT = (
    Field("rows", int, "n_rows", low=1),
    Field("loss", float, "solution.value"),
    Field("gradient_norm", float, "solution.gradient_norm"),
    Field("iterations", int, "solution.iterations", low=0),
    Field("passes", int, "solution.passes", low=0),
    Field("converged", bool, "solution.converged"),
    Field("message", str, "solution.message"),
    # Of methods that have a temperature.
    Field("temperature_quantiles", list, optional=True, shape=(3,), check=_check_quantiles),
    Field("effective_parameters", float, "n_parameters", optional=True, low=0, high=1e300),
    Field("class_counts", list, optional=True, low=0, high=MAX_WEIGHT, shape=("K",), check=_check_counts),
    Field("groups", int, "n_groups", optional=True, low=2),
    Field("design_effect", float, optional=True, low=1, high=MAX_WEIGHT),
    Field("data_hash", str, "record.data_hash", optional=True, check=check_line),
    Field("date", str, "record.date", optional=True, check=check_line),
    Field("library_version", str, "record.library_version", optional=True, check=check_line),
)
FITTED_ON = (
    Field("kind", str),
    Field("floor", float, optional=True, low=0, high=1),
    Field("length_normalised", bool, optional=True),
    Field("positions", bool, optional=True),
    Field("dim", int, optional=True, low=0, high=64),  # as many axes as a NumPy array can have
    Field("renormalised", bool, optional=True),
    Field("unit", str, optional=True),
)
ADAPTATION = (
    Field("log_prior_ratio", list, high=MAX_LOG_RATIO, shape=("K",)),
    Field("rows", int, "adaptation_rows", optional=True, low=1),
    Field("frequency_errors", list, optional=True, low=0, high=MAX_WEIGHT, shape=("K",)),
)
AUTOMATION = (
    Field("max_error", float, low=0, high=1),
    Field("delta", float, low=0, high=1),
    Field("threshold", float, optional=True, low=0, high=1),  # absent: no row is decided
    Field("positive", int, optional=True, low=0),
    Field("share", float, low=0, high=1),
    Field("error", float, optional=True, low=0, high=1),
    Field("bound", float, optional=True, low=0, high=1),
    Field("rows", int, low=1),
    Field("groups", int, optional=True, low=1),
    Field("rows_needed", int, optional=True, low=1),
    Field("missed", list, optional=True, low=0, high=1 + ROUNDING, shape=("K",)),  # absent: not recorded
)
BASELINE = (
    Field("rows", int, low=1, high=MAX_BASELINE_ROWS),
    Field("effective_rows", float, low=1 - ROUNDING, high=MAX_BASELINE_ROWS * (1 + ROUNDING)),
    Field("confidence_quantiles", list, low=0, high=1, shape=(POINTS,), check=_check_rising),
    Field("confidence_shares", list, low=0, high=1 + ROUNDING, shape=(POINTS,), check=_check_shares),
    Field("entropy_quantiles", list, low=0, high=MAX_ENTROPY, shape=(POINTS,), check=_check_rising),
    Field("entropy_shares", list, low=0, high=1 + ROUNDING, shape=(POINTS,), check=_check_shares),
    Field("predicted_counts", list, low=0, high=MAX_WEIGHT, shape=("K",), check=_check_counts),
    Field("mean_confidence", float, low=0, high=1),
    Field("mean_entropy", float, low=0, high=MAX_ENTROPY),
    Field("accuracy", float, low=0, high=1),
    # Not in the first files.
    Field(
        "mean_probabilities", list, optional=True, low=0, high=1 + ROUNDING, shape=("K",), check=_check_sum
    ),
    Field("label_frequencies", list, optional=True, low=0, high=1, shape=("K",)),
    Field("class_variances", list, optional=True, low=0, high=0.25, shape=("K",)),
    # Not in files of version 2.
    Field("fit_rows", float, optional=True, low=1 - ROUNDING, high=MAX_COUNT),
    Field("label_means", list, optional=True, low=0, high=1 + ROUNDING, shape=("G", "G")),
    Field("label_variances", list, optional=True, low=0, high=0.25, shape=("G", "G")),
)
OBJECTS = {
    "fit": FIT,
    "fitted_on": FITTED_ON,
    "adaptation": ADAPTATION,
    "automation": AUTOMATION,
    "baseline": BASELINE,
}
"""The objects of a file that can have unknown fields, and the fields that are known."""
FILE = (
    Field("format", str),
    Field("version", int, low=READABLE[0]),
    Field("method", object),
    Field("classes", int, low=2, high=MAX_CLASSES),
    Field("options", dict),
    Field("parameters", dict),
    Field("standard_errors", dict),
    *(Field(place, dict, optional=place != "fit") for place in OBJECTS),
    Field("class_names", object, optional=True, check=_check_names),
    Field("positive", int, optional=True, low=0),
    Field("metadata", dict, optional=True),
)
"""The fields of the file itself."""


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
        if type(version) is not int or version not in READABLE:
            old = type(version) is int and 1 <= version < VERSION
            advice = "Fit the calibrator again with this version" if old else "Update temperance"
            known = " or ".join(map(str, READABLE))
            raise InputError(f"version must be {known}; found {excerpt(version)}. {advice}")
        content |= read_fields(content, FILE)
        key = content["method"]
        methods = [key for key, method in CALIBRATORS.items() if not method.options]  # a file has its own
        if key not in methods:
            raise InputError(f"method must be one of {', '.join(methods)}; found {excerpt(key)}")
        yield content, CALIBRATORS[key]


def read_model(content: Json, method: Method, options: Mapping[str, Any]) -> Model:
    """Return the fitted model of a file, and check that it predicts."""
    n_classes: int = content["classes"]
    formula, shapes = _formula(method.formula, content["parameters"], options, n_classes)
    if isinstance(formula, TemperatureFormula):
        check_names("fit", content["fit"], required=["temperature_quantiles"])
    read, unknown = {}, {"": _unknown_fields(content, FILE)}
    sizes = {"K": n_classes, "G": min(n_classes, MAX_GROUPS)}
    for place, table in OBJECTS.items():
        if place in content:
            unknown[place] = _unknown_fields(content[place], table)
            given = content[place]
            if place == "adaptation":  # where null means absent
                given = {name: value for name, value in given.items() if value is not None}
            read[place] = read_fields(given, table, sizes, place=place)
    fit = read["fit"]
    solution = fit.pop("solution")
    solver, status = parse_message(solution.pop("message"), converged=solution.pop("converged"))
    model = Model(
        method.key,
        method.class_name,
        formula,
        options,
        n_classes,
        standard_errors=_standard_errors(method.formula, content["standard_errors"], shapes),
        # The solver's own parameters are not in a file; the formula has the result.
        solution=Solution(parameters=np.empty(0), solver=solver, status=status, **solution),
        automation=_automation(read["automation"], content) if "automation" in read else None,
        record=FitRecord(
            class_names=content.get("class_names"),
            positive=content.get("positive"),
            fitted_on=FittedOn(**read["fitted_on"]) if "fitted_on" in read else None,
            baseline=Baseline(**read["baseline"]) if "baseline" in read else None,
            metadata=content.get("metadata", {}),
            unknown_fields={place: fields for place, fields in unknown.items() if fields},
            **fit.pop("record", {}),
        ),
        **fit,
        **read.get("adaptation", {}),
    )
    _check_together(model)
    return model


def _automation(read: Json, content: Json) -> Automation:
    absent: Json = {"threshold": None, "error": None, "bound": None}
    rule = Automation(**absent | read, class_names=content.get("class_names"))
    if rule.positive is not None:
        check_count(rule.positive, "automation.positive", 0, content["classes"] - 1)
    return rule


def _check_together(model: Model) -> None:
    """Raise if fields that are valid one by one cannot be of one fit."""
    names, fitted_on, baseline = model.record.class_names, model.record.fitted_on, model.record.baseline
    if names is not None and len(names) != model.n_classes:
        raise InputError(f"class_names must be {model.n_classes} names, one per class; found {len(names)}")
    if fitted_on is not None:
        check_choice("fitted_on.kind", fitted_on.kind, ("logits", "probabilities"))
        for name in ("floor", "renormalised", "unit"):
            if getattr(fitted_on, name) is not None and fitted_on.kind != "probabilities":
                raise InputError(f"fitted_on.{name} is for probabilities only")
        if fitted_on.unit is not None:
            check_choice("fitted_on.unit", fitted_on.unit, UNITS)
        for name, value in (("adaptation", model.log_prior_ratio), ("positive", model.record.positive)):
            if fitted_on.positions and value is not None:
                raise InputError(f"{name} is for classes, and fitted_on.positions must not be true")
    if model.record.positive is not None:
        check_count(model.record.positive, "positive", 0, model.n_classes - 1)
    if baseline is not None:
        for smaller, name, larger in (
            (baseline.fit_rows or 0, "baseline.fit_rows", model.n_rows * (1 + ROUNDING)),
            (baseline.rows, "baseline.rows", model.n_rows),
            (baseline.effective_rows, "baseline.effective_rows", baseline.rows * (1 + ROUNDING)),
        ):
            if smaller > larger:
                raise InputError(f"{name} must be at most {larger:g}; found {smaller:g}")
    _check_predictions(model)


def _formula(
    kind: type[Formula], given: Json, options: Mapping[str, Any], n_classes: int
) -> tuple[Formula, Mapping[str, Shape]]:
    try:
        shapes = kind.shapes(n_classes, options, given)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"options must be valid for the method; found {excerpt(dict(options))}") from None
    check_names("parameters", given, required=shapes, known=shapes)
    arrays: dict[str, Any] = {}
    for name, shape in shapes.items():
        array = check_numbers(given[name], name, shape, -kind.largest, kind.largest)
        arrays[name] = array if shape else float(array)
    formula = kind.from_arrays(arrays)
    formula.check()
    return formula, shapes


def _standard_errors(kind: type[Formula], given: Json, shapes: Mapping[str, Shape]) -> dict[str, Vector]:
    check_names("standard_errors", given, known=shapes)
    errors = {}
    for name, value in given.items():
        errors[name] = check_numbers(value, f"standard error of {name}", shapes[name], 0, kind.largest)
    return errors


def _unknown_fields(given: Json, table: Sequence[Field]) -> Json:
    known = [field.name for field in table]
    return {name: value for name, value in given.items() if name not in known}


def _check_predictions(model: Model) -> None:
    """Raise unless two rows, one flat and one steep, get probabilities."""
    rows = np.stack([np.zeros(model.n_classes), np.linspace(-5.0, 5.0, model.n_classes)])
    try:
        with np.errstate(all="ignore"):  # wrong numbers show in the sums
            probs = apply_to_rows(model, "predict_proba", rows)
    except Exception as error:  # numbers that pass each check can still fail together
        what = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        raise InputError(f"its numbers must work together; found {what}") from error
    if not (np.isfinite(probs).all() and np.allclose(probs.sum(axis=1), 1.0)):
        raise InputError("its numbers must give probabilities; found rows that do not sum to 1")


def save(
    model: Model, path: str | Path, *, metadata: Mapping[str, Any] | None = None, overwrite: bool = False
) -> None:
    """Write a fitted model to a file, with `metadata` in place of its own if some is given."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InputError(f"metadata must be a mapping of names to values; found {type(metadata).__name__}.")
    record, notes = model.record, model.record.metadata if metadata is None else metadata
    try:
        given = plain_json({"options": model.options, "metadata": notes}, "")
    except InputError as error:
        raise InputError(f"{error}. Convert it, or leave it out.") from None
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "method": model.key,
        "classes": model.n_classes,
        "options": given["options"],
        "parameters": {name: value.tolist() for name, value in model.formula.arrays().items()},
        "standard_errors": {name: np.asarray(e).tolist() for name, e in model.standard_errors.items()},
    }
    holders = {"fitted_on": record.fitted_on, "automation": model.automation, "baseline": record.baseline}
    known: Json = {}
    for place, table in OBJECTS.items():
        known[place] = write_fields(holders.get(place, model), table)
    known |= {"class_names": record.class_names, "metadata": given["metadata"]}
    content |= {name: value for name, value in known.items() if value}
    if record.positive is not None:
        content["positive"] = record.positive
    for place, unknown in record.unknown_fields.items():
        (content[place] if place else content).update(unknown)
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), overwrite=overwrite)
