"""A calibrator file as a fitted calibrator: every field is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from temperance.calibrators import CALIBRATORS
from temperance.calibrators.base import Calibrator, TemperatureCalibrator
from temperance.calibrators.model import Formula, Model, Shape
from temperance.core.arrays import Vector
from temperance.core.solution import Solution, parse_message
from temperance.errors import InputError, excerpt
from temperance.persistence.document import Document
from temperance.persistence.fields import (
    FORMAT,
    QUANTILES_OF_T,
    REQUIRED,
    SOLVER_FIELDS,
    VERSION,
)
from temperance.persistence.record_reading import RecordReader
from temperance.persistence.trial import check_works
from temperance.validation import check_temperatures

MOST_CLASSES = 10**6


def read_calibrator(path: Path) -> Calibrator:
    """Return the calibrator of a file of any version."""
    return _Reader(Document(path)).calibrator()


class _Reader:
    """The fields of one file."""

    def __init__(self, document: Document) -> None:
        self.document, self.content = document, document.content

    def calibrator(self) -> Calibrator:
        self._check_version()
        method, classes = self.content["method"], self.content["classes"]
        if not isinstance(method, str) or method not in CALIBRATORS:
            known = ", ".join(CALIBRATORS)
            raise self.document.error(f"method must be one of {known}; found {excerpt(method)}")
        self.document.count(classes, "classes", 2, MOST_CLASSES)
        calibrator = self._build(CALIBRATORS[method].build)
        calibrator.model_ = model = self._model(calibrator, classes)
        calibrator.n_features_in_ = classes
        check_works(calibrator, self.document)
        if model.record.class_names is not None:
            calibrator.feature_names_in_ = np.array(model.record.class_names, object)
        return calibrator

    def _check_version(self) -> None:
        given, version = self.content.get("format"), self.content.get("version")
        if given != FORMAT:
            raise self.document.error(f"format must be {FORMAT!r}; found {excerpt(given)}")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise self.document.error(
                f"version must be a whole number from 1 to {VERSION}; found {excerpt(version)}. "
                "Update temperance"
            )
        self.document.require(self.content, REQUIRED, "the file")
        if version == 1:  # all its fields are required
            self.document.refuse_others(self.content, REQUIRED, "the file")
            known = (*SOLVER_FIELDS, QUANTILES_OF_T)
            self.document.refuse_others(self._object("fit"), known, "fit")

    def _object(self, name: str) -> dict[str, Any]:
        return self.document.object(self.content[name], name)

    def _build(self, kind: Callable[..., Calibrator]) -> Calibrator:
        options, known = self._object("options"), kind().get_params()
        self.document.require(options, known, "options")
        self.document.refuse_others(options, known, "options")
        calibrator = kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in options.items()})
        try:
            calibrator._check_options()
        except (InputError, TypeError) as error:
            raise self.document.error(f"options: {error}") from None
        return calibrator

    def _model(self, calibrator: Calibrator, classes: int) -> Model:
        formula, shapes = self._formula(calibrator, classes)
        fit, quantiles = self._object("fit"), None
        if isinstance(calibrator, TemperatureCalibrator):
            quantiles = self._quantiles(fit)
        solution = self._solution(fit)
        record = RecordReader(self.document, classes)
        adaptation = record.adaptation()
        return Model(
            calibrator.key,
            repr(calibrator).removesuffix("()"),
            formula,
            calibrator.get_params(),
            classes,
            n_rows=fit["rows"],
            solution=solution,
            standard_errors=self._standard_errors(calibrator, shapes),
            temperature_quantiles=quantiles,
            log_prior_ratio=adaptation.log_prior_ratio,
            class_counts=record.class_counts(),
            frequency_errors=adaptation.frequency_errors,
            adaptation_rows=adaptation.rows,
            record=record.record(),
        )

    def _formula(self, calibrator: Calibrator, classes: int) -> tuple[Formula, Mapping[str, Shape]]:
        parameters = self._object("parameters")
        kind, shapes = calibrator._stored_formula(parameters, classes)
        self.document.require(parameters, shapes, "parameters")
        self.document.refuse_others(parameters, shapes, "parameters")
        arrays = {
            name: self.document.array(parameters[name], shape, name, least=-kind.largest, most=kind.largest)
            for name, shape in shapes.items()
        }
        formula = kind.from_arrays(arrays)
        try:
            formula.check()
        except InputError as error:
            raise self.document.error(str(error).rstrip(".")) from None
        return formula, shapes

    def _quantiles(self, fit: dict[str, Any]) -> Vector:
        quantiles = self.document.array(fit.get(QUANTILES_OF_T), (3,), QUANTILES_OF_T)
        try:
            check_temperatures(QUANTILES_OF_T, quantiles)
        except InputError as error:
            raise self.document.error(str(error).rstrip(".")) from None
        if (np.diff(quantiles) < 0).any():
            raise self.document.error(f"{QUANTILES_OF_T} must not decrease; found {quantiles.tolist()}")
        return quantiles

    def _standard_errors(self, calibrator: Calibrator, shapes: Mapping[str, Shape]) -> dict[str, Vector]:
        errors = self._object("standard_errors")
        needed = [name for name in calibrator.needed_errors if name in shapes]
        self.document.require(errors, needed, "standard_errors")
        self.document.refuse_others(errors, shapes, "standard_errors")
        return {
            name: self.document.array(
                value,
                shapes[name],
                f"standard error of {name}",
                least=0,
                most=calibrator.formula_type.largest,
            )
            for name, value in errors.items()
        }

    def _solution(self, fit: dict[str, Any]) -> Solution:
        self.document.require(fit, SOLVER_FIELDS, "fit")
        for name, kind in SOLVER_FIELDS.items():
            # Other languages may write 1.0 as 1.
            if type(fit[name]) is not kind and not (kind is float and type(fit[name]) is int):
                raise self.document.error(f"fit: {name} must be {kind.__name__}; found {excerpt(fit[name])}")
            if kind is int:
                self.document.count(fit[name], f"fit.{name}", least=int(name == "rows"))
        solver, status = parse_message(fit["message"], converged=fit["converged"])
        return Solution(
            parameters=np.empty(0),  # numbers of the solver; the formula has the result
            value=float(fit["loss"]),
            gradient_norm=float(fit["gradient_norm"]),
            iterations=fit["iterations"],
            passes=fit["passes"],
            status=status,
            solver=solver,
        )
