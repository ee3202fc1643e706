"""The optional fields of a calibrator file: the record of its fit, and fields unknown to this version."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from temperance.calibrator_file.document import Document
from temperance.calibrator_file.fields import (
    ADAPTATION_FIELDS,
    BASELINE_FIELDS,
    LATER_BASELINE_FIELD,
    OPTIONAL,
    QUANTILES_OF_T,
    RECORD_FIELDS,
    REQUIRED,
    SOLVER_FIELDS,
)
from temperance.core.arrays import Vector
from temperance.errors import excerpt
from temperance.formulas.fit_record import BASELINE_SHARES, Baseline, FitRecord, FittedOn

KINDS = ("logits", "probabilities")
_KNOWN: dict[str, Collection[str]] = {
    "fit": (*SOLVER_FIELDS, QUANTILES_OF_T, *RECORD_FIELDS),
    "fitted_on": ("kind", "floor"),
    "adaptation": ADAPTATION_FIELDS,
    "baseline": BASELINE_FIELDS,
}
"""The objects that may have unknown fields, and the fields that are known."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """The change of the class frequencies since the fit, the rows it was estimated from, and its errors."""

    log_prior_ratio: Vector | None = None
    rows: int | None = None
    frequency_errors: Vector | None = None


class RecordReader:
    """The optional fields of a document with K classes."""

    def __init__(self, document: Document, n_classes: int) -> None:
        self.document, self.n_classes = document, n_classes
        self.content = document.content

    def _object(self, name: str) -> dict[str, Any] | None:
        """Return an optional object; None if the file does not have it."""
        return self.document.object(self.content[name], name) if name in self.content else None

    def record(self) -> FitRecord:
        """Return what is known of the fit."""
        fit = self.content["fit"]
        return FitRecord(
            class_names=self._class_names(),
            fitted_on=self._fitted_on(),
            data_hash=self._data_hash(fit) if "data_hash" in fit else None,
            date=self._date(fit) if "date" in fit else None,
            library_version=self._library_version(fit) if "library_version" in fit else None,
            baseline=self._baseline(),
            metadata=self._object("metadata") or {},
            unknown_fields=self._unknown_fields(),
        )

    def class_counts(self) -> Vector | None:
        """Return the label counts of the fit."""
        counts = self.content["fit"].get("class_counts")
        if "class_counts" not in self.content["fit"]:
            return None
        return self.document.array(counts, (self.n_classes,), "fit.class_counts", least=0)

    def adaptation(self) -> Adaptation:
        """Return how the calibrator was adapted to new class frequencies."""
        adaptation = self._object("adaptation")
        if adaptation is None:
            return Adaptation()
        self.document.require(adaptation, ("log_prior_ratio",), "adaptation")
        rows, errors = adaptation.get("rows"), adaptation.get("frequency_errors")

        def numbers(name: str, least: float = -np.inf) -> Vector:
            return self.document.array(adaptation[name], (self.n_classes,), f"adaptation.{name}", least=least)

        return Adaptation(
            numbers("log_prior_ratio"),
            None if rows is None else self.document.count(rows, "adaptation.rows", 1),
            None if errors is None else numbers("frequency_errors", least=0),
        )

    def _class_names(self) -> tuple[str, ...] | None:
        if "class_names" not in self.content:
            return None
        names = self.content["class_names"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.document.error("class_names must be a list of text")
        if len(names) != self.n_classes:
            raise self.document.error(
                f"class_names must be one for each of {self.n_classes} classes; found {len(names)}"
            )
        return tuple(names)

    def _fitted_on(self) -> FittedOn | None:
        fitted_on = self._object("fitted_on")
        if fitted_on is None:
            return None
        kind, floor = fitted_on.get("kind"), None
        if kind not in KINDS:
            wanted = ", ".join(KINDS)
            raise self.document.error(f"fitted_on.kind must be one of {wanted}; found {excerpt(kind)}")
        if "floor" in fitted_on:
            if kind != "probabilities":
                raise self.document.error("fitted_on.floor is for probabilities only")
            floor = self.document.number(fitted_on["floor"], "fitted_on.floor", 0, 1)
        return FittedOn(kind, floor)

    def _data_hash(self, fit: dict[str, Any]) -> str:
        value = self.document.text(fit["data_hash"], "fit.data_hash")
        if not re.fullmatch(r"[a-z0-9-]+:[0-9a-f]+", value):
            raise self.document.error(
                f"fit.data_hash must have the form sha256:0a1b...; found {excerpt(value)}"
            )
        return value

    def _date(self, fit: dict[str, Any]) -> str:
        value = self.document.text(fit["date"], "fit.date")
        try:
            is_utc = datetime.fromisoformat(value).utcoffset() == timedelta(0)
        except ValueError:
            is_utc = False
        if not is_utc:
            example = datetime(2026, 1, 31, 12, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            raise self.document.error(
                f"fit.date must be a time in UTC, such as {example}; found {excerpt(value)}"
            )
        return value

    def _library_version(self, fit: dict[str, Any]) -> str:
        return self.document.text(fit["library_version"], "fit.library_version")

    def _baseline(self) -> Baseline | None:
        baseline = self._object("baseline")
        if baseline is None:
            return None
        self.document.require(baseline, set(BASELINE_FIELDS) - {LATER_BASELINE_FIELD}, "baseline")
        points, largest = (len(BASELINE_SHARES),), 1e300

        def numbers(name: str, shape: tuple[int, ...] = points) -> Vector:
            return self.document.array(baseline[name], shape, f"baseline.{name}", least=0)

        def numbers_by_class(name: str) -> Vector:
            return numbers(name, (self.n_classes,))

        def number(name: str, low: float, high: float) -> float:
            return self.document.number(baseline[name], f"baseline.{name}", low, high)

        return Baseline(
            rows=self.document.count(baseline["rows"], "baseline.rows", 1),
            effective_rows=number("effective_rows", 0, largest),
            confidence_quantiles=numbers("confidence_quantiles"),
            confidence_shares=numbers("confidence_shares"),
            entropy_quantiles=numbers("entropy_quantiles"),
            entropy_shares=numbers("entropy_shares"),
            predicted_counts=numbers_by_class("predicted_counts"),
            mean_confidence=number("mean_confidence", 0, 1),
            mean_entropy=number("mean_entropy", 0, largest),
            accuracy=number("accuracy", 0, 1),
            mean_probabilities=(
                numbers_by_class(LATER_BASELINE_FIELD) if LATER_BASELINE_FIELD in baseline else None
            ),
        )

    def _unknown_fields(self) -> dict[str, dict[str, Any]]:
        """Return the fields that this version does not know, by the object they are in."""
        found = {"": {name: v for name, v in self.content.items() if name not in (*REQUIRED, *OPTIONAL)}}
        for place, known in _KNOWN.items():
            given = self.content.get(place, {})
            found[place] = {name: value for name, value in given.items() if name not in known}
        return {place: unknown for place, unknown in found.items() if unknown}
