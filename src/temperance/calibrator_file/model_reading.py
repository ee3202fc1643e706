"""The fields of a calibrator file that make up its fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from temperance.calibrator_file.document import Document
from temperance.calibrator_file.fields import (
    FORMAT,
    QUANTILES_OF_T,
    REQUIRED,
    SOLVER_FIELDS,
    VERSION,
)
from temperance.calibrator_file.fit_record_reading import RecordReader
from temperance.core.arrays import Vector
from temperance.core.solution import Solution, parse_message
from temperance.errors import InputError, excerpt
from temperance.formulas.applying import apply_to_rows
from temperance.formulas.model import Formula, Model, Shape, TemperatureFormula
from temperance.inputs.validation import check_temperatures

MOST_CLASSES = 10**6
_STEEPEST = 5.0  # logit in the rows that a model is tested on


class ModelReader:
    """The fields of one file, of any version."""

    def __init__(self, document: Document) -> None:
        self.document, self.content = document, document.content
        self._check_version()

    def method(self, known: Mapping[str, Any]) -> str:
        """Return the key of the method, one of those known."""
        method = self.content["method"]
        if not isinstance(method, str) or method not in known:
            raise self.document.error(f"method must be one of {', '.join(known)}; found {excerpt(method)}")
        return method

    def options(self) -> dict[str, Any]:
        """Return the options of the fit, as the file has them."""
        return self.object("options")

    def object(self, name: str) -> dict[str, Any]:
        """Return a field that is an object."""
        return self.document.object(self.content[name], name)

    def model(self, key: str, name: str, kind: type[Formula], options: Mapping[str, Any]) -> Model:
        """Return the model of a method with this formula, and check that it predicts."""
        classes = self.document.count(self.content["classes"], "classes", 2, MOST_CLASSES)
        formula, shapes = self._formula(kind, options, classes)
        fit = self.object("fit")
        quantiles = self._quantiles(fit) if isinstance(formula, TemperatureFormula) else None
        solution = self._solution(fit)
        record = RecordReader(self.document, classes)
        adaptation = record.adaptation()
        model = Model(
            key,
            name,
            formula,
            options,
            classes,
            n_rows=fit["rows"],
            solution=solution,
            standard_errors=self._standard_errors(kind, shapes),
            temperature_quantiles=quantiles,
            log_prior_ratio=adaptation.log_prior_ratio,
            class_counts=record.class_counts(),
            frequency_errors=adaptation.frequency_errors,
            adaptation_rows=adaptation.rows,
            record=record.record(),
        )
        self._check_predictions(model)
        return model

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
            self.document.refuse_others(self.object("fit"), known, "fit")

    def _formula(
        self, kind: type[Formula], options: Mapping[str, Any], classes: int
    ) -> tuple[Formula, Mapping[str, Shape]]:
        parameters = self.object("parameters")
        try:
            kind, shapes = kind.stored_as(parameters, classes, options)
        except (KeyError, TypeError, ValueError):
            raise self.document.error(
                f"options must be those of the method; found {excerpt(dict(options))}"
            ) from None
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

    def _check_predictions(self, model: Model) -> None:
        """Raise unless two rows, one flat and one steep, get probabilities."""
        rows = np.stack([np.zeros(model.n_classes), np.linspace(-_STEEPEST, _STEEPEST, model.n_classes)])
        with self.document.working_together(), np.errstate(all="ignore"):  # wrong numbers show in the sums
            probs = apply_to_rows(model, "predict_proba", rows)
        if not (np.isfinite(probs).all() and np.allclose(probs.sum(axis=1), 1.0)):
            raise self.document.error("its numbers must give probabilities; found rows that do not sum to 1")

    def _quantiles(self, fit: dict[str, Any]) -> Vector:
        quantiles = self.document.array(fit.get(QUANTILES_OF_T), (3,), QUANTILES_OF_T)
        try:
            check_temperatures(QUANTILES_OF_T, quantiles)
        except InputError as error:
            raise self.document.error(str(error).rstrip(".")) from None
        if (np.diff(quantiles) < 0).any():
            raise self.document.error(f"{QUANTILES_OF_T} must not decrease; found {quantiles.tolist()}")
        return quantiles

    def _standard_errors(self, kind: type[Formula], shapes: Mapping[str, Shape]) -> dict[str, Vector]:
        errors = self.object("standard_errors")
        needed = [name for name in kind.needed_errors if name in shapes]
        self.document.require(errors, needed, "standard_errors")
        self.document.refuse_others(errors, shapes, "standard_errors")
        return {
            name: self.document.array(
                value, shapes[name], f"standard error of {name}", least=0, most=kind.largest
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
