"""The calibrator file: one JSON object, versioned, exact to the bit, and data only.

Fields and formulas are described in docs/file-format.md. Numbers are written with as many digits as it
takes to read the same float64 back. Reading runs no code: the method's name is looked up in the registry,
and every field is checked before it is used.

Changing the format: add 1 to VERSION, keep a file of the old version in tests/data, and teach `load` to
read both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import CALIBRATORS
from temperance.calibrators.base import Calibrator, TemperatureCalibrator, model_of
from temperance.calibrators.model import Model, Shape
from temperance.core.solution import Solution, parse_message
from temperance.files import write_atomically
from temperance.validation import InputError

FORMAT = "temperance calibrator"
VERSION = 1

_FIELDS = ("format", "version", "method", "classes", "options", "parameters", "standard_errors", "fit")
_FIT_FIELDS: dict[str, type] = {
    "rows": int,
    "loss": float,
    "gradient_norm": float,
    "iterations": int,
    "passes": int,
    "converged": bool,
    "message": str,
}


def save(calibrator: Calibrator | Model, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted calibrator to `path`."""
    text = json.dumps(_to_dict(model_of(calibrator)), indent=1, allow_nan=False, default=_plain) + "\n"
    write_atomically(path, text.encode(), overwrite=overwrite)


def _plain(option: Any) -> Any:
    if isinstance(option, np.generic):
        return option.item()
    raise InputError(f"options must be numbers or strings to be saved; got {option!r}.")


def _to_dict(model: Model) -> dict[str, Any]:
    solution = model.solution
    fit: dict[str, Any] = {"rows": model.n_rows, "loss": solution.value}
    fit |= {name: getattr(solution, name) for name in _FIT_FIELDS if name not in fit}
    if model.temperature_quantiles is not None:
        fit["temperature_quantiles"] = model.temperature_quantiles.tolist()
    return {
        "format": FORMAT,
        "version": VERSION,
        "method": model.key,
        "classes": model.n_classes,
        "options": model.options,
        "parameters": {name: value.tolist() for name, value in model.formula.arrays().items()},
        "standard_errors": {name: np.asarray(e).tolist() for name, e in model.standard_errors.items()},
        "fit": fit,
    }


def load(path: str | Path) -> Calibrator:
    """Read a calibrator back; what it computes is the same to the bit.

    Examples
    --------
    >>> import tempfile, pathlib, temperance
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.json"
    >>> cal.save(path)
    >>> temperance.load(path).temperature_ == cal.temperature_
    True
    """
    return _FileReader(Path(path)).calibrator()


class _FileReader:
    """One file being read: every complaint names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = self._object(self._parse(), "the file")

    def _fail(self, message: str) -> InputError:
        return InputError(f"{self.path} is not a calibrator that can be read: {message}.")

    def _parse(self) -> Any:
        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            names = [name for name, _ in pairs]
            if len(set(names)) < len(names):
                raise self._fail(f"a field occurs twice, one of {', '.join(sorted(names))}")
            return dict(pairs)

        def no_constant(name: str) -> Any:
            raise self._fail(f"numbers must be finite; got {name}")

        try:
            text = self.path.read_bytes().decode()
            return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._fail(f"it must be JSON ({error})") from None

    def _object(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._fail(f"{what} must be a JSON object; got {type(value).__name__}")
        return value

    def _names(self, got: Mapping[str, Any], wanted: Mapping[str, Any] | tuple[str, ...], what: str) -> None:
        missing, unknown = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
        if missing:
            raise self._fail(f"{what} lacks {', '.join(missing)}")
        if unknown:
            raise self._fail(f"{what} has the unknown {', '.join(unknown)}")

    def calibrator(self) -> Calibrator:
        if self.data.get("format") != FORMAT:
            raise self._fail(f"format must be {FORMAT!r}; got {self.data.get('format')!r}")
        version = self.data.get("version")
        if type(version) is not int or version != VERSION:
            raise self._fail(f"version must be {VERSION}; got {version!r}. Update temperance")
        self._names(self.data, _FIELDS, "the file")
        method, classes = self.data["method"], self.data["classes"]
        if not isinstance(method, str) or method not in CALIBRATORS:
            raise self._fail(f"method must be one of {', '.join(CALIBRATORS)}; got {method!r}")
        if type(classes) is not int or classes < 2:
            raise self._fail(f"classes must be a whole number from 2; got {classes!r}")
        calibrator = self._build(CALIBRATORS[method].build)
        calibrator.model_ = self._model(calibrator, classes)
        calibrator.n_features_in_ = classes
        return calibrator

    def _build(self, kind: Callable[..., Calibrator]) -> Calibrator:
        options = self._object(self.data["options"], "options")
        self._names(options, kind().get_params(), "options")
        calibrator = kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in options.items()})
        try:
            calibrator._check_options()
        except (InputError, TypeError) as error:
            raise self._fail(f"options: {error}") from None
        return calibrator

    def _model(self, calibrator: Calibrator, classes: int) -> Model:
        shapes = calibrator._shapes(classes)
        parameters = self._object(self.data["parameters"], "parameters")
        self._names(parameters, shapes, "parameters")
        arrays = {name: self._array(parameters[name], shape, name) for name, shape in shapes.items()}
        formula = calibrator.formula_type.from_arrays(arrays)
        try:
            formula.check()
        except InputError as error:
            raise self._fail(str(error).rstrip(".")) from None
        fit, quantiles = dict(self._object(self.data["fit"], "fit")), None
        if isinstance(calibrator, TemperatureCalibrator):
            quantiles = self._array(fit.pop("temperature_quantiles", None), (3,), "temperature_quantiles")
        return Model(
            calibrator.key,
            repr(calibrator).removesuffix("()"),
            formula,
            calibrator.get_params(),
            classes,
            n_rows=fit.get("rows", 0),
            solution=self._solution(fit),
            standard_errors=self._standard_errors(shapes),
            temperature_quantiles=quantiles,
        )

    def _standard_errors(self, shapes: Mapping[str, Shape]) -> dict[str, NDArray[np.float64]]:
        errors = {}
        for name, value in self._object(self.data["standard_errors"], "standard_errors").items():
            if name not in shapes:
                raise self._fail(f"standard_errors has the unknown {name}")
            errors[name] = self._array(value, shapes[name], f"standard error of {name}")
            if (errors[name] < 0).any():
                raise self._fail(f"standard error of {name} must be >= 0; got {errors[name].min():g}")
        return errors

    def _array(self, value: Any, shape: Shape, name: str) -> NDArray[np.float64]:
        if not _is_numeric(value):
            raise self._fail(f"{name} must hold numbers only")
        try:
            array = np.array(value, np.float64)
        except (ValueError, OverflowError):
            raise self._fail(f"{name} must have the shape {shape}") from None
        if array.shape != shape:
            raise self._fail(f"{name} must have the shape {shape}; got {array.shape}")
        if not np.isfinite(array).all():
            raise self._fail(f"{name} must be finite")
        return array

    def _solution(self, fit: dict[str, Any]) -> Solution:
        self._names(fit, _FIT_FIELDS, "fit")
        for name, kind in _FIT_FIELDS.items():
            # Other languages write a float that is whole as an integer.
            if type(fit[name]) is not kind and not (kind is float and type(fit[name]) is int):
                raise self._fail(f"fit: {name} must be {kind.__name__}; got {fit[name]!r}")
            least = int(name == "rows")
            if kind is int and fit[name] < least:
                raise self._fail(f"fit.{name} must be at least {least}; got {fit[name]!r}")
        solver, status = parse_message(fit["message"], converged=fit["converged"])
        return Solution(
            parameters=np.empty(0),  # the solver's own; what came of them is in the formula
            value=float(fit["loss"]),
            gradient_norm=float(fit["gradient_norm"]),
            iterations=fit["iterations"],
            passes=fit["passes"],
            status=status,
            solver=solver,
        )


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numeric(item) for item in value)
    return type(value) in (int, float)
