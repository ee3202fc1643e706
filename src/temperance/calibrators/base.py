"""What all calibrators share: the scikit-learn contract, the containers, the checks.

A method's own file adds its formula: `_fit` (labelled rows -> fitted attributes), `_temperature` (rows
-> T) and `_temperature_formula`, the same for frameworks. Its fitted numbers are listed in `_shapes`, which
is all that saving, loading and exporting need to know.
"""

from __future__ import annotations

import textwrap
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import TransformerTags

from temperance.calibrators.output import OutputMixin, column_names
from temperance.containers import Logits, as_numpy, framework_of, open_logits
from temperance.core.arrays import Floats, Vector
from temperance.core.fisher import Solution
from temperance.core.fit_data import FitData, InMemoryFitData
from temperance.core.formulas import divide
from temperance.core.logit_rows import LogitRows
from temperance.core.ops import Array, Ops
from temperance.validation import InputError, check_labels, check_sample_weight, inspector

if TYPE_CHECKING:
    from temperance.torch import CalibratorModule

__all__ = ["Calibrator", "TemperatureCalibrator"]

Shape = tuple[int | str, ...]


class Calibrator(OutputMixin, BaseEstimator):  # type: ignore[misc]
    """A function from logits to probabilities, fitted to labelled rows."""

    key: ClassVar[str]
    """The name in the registry and in saved files: the paper's acronym."""

    @property
    def supports_masked_classes(self) -> bool:
        """Whether -inf may mark an impossible class."""
        return True

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own."""
        return True

    @property
    def n_parameters_(self) -> float:
        """How many parameters the rows have determined: with a prior, fewer than there are."""
        return float(self.solution_.parameters.size)

    n_classes_: int
    n_rows_: int
    options_: dict[str, Any]
    """The hyper-parameters of the fit, which `set_params` does not change."""
    solution_: Solution
    standard_errors_: dict[str, Vector]

    def fit(self, logits: Any, labels: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to the logits and labels of rows that the classifier was not trained on.

        Parameters
        ----------
        logits : (N, K) array, memory map, tensor, DataFrame, or Dask array or frame
            The classifier's scores; (N,) for a binary classifier, the logit of class 1.
        labels : (N,) integers
            The column of each row's true class.
        sample_weight : (N,) numbers >= 0, optional
            A weight k counts as the row repeated k times.
        """
        self._check_options()
        sample = _open_fit_data(logits, labels, sample_weight)
        self._forget()
        self.n_classes_ = self.n_features_in_ = sample.n_classes
        self.n_rows_ = sample.n_rows
        names = column_names(logits)
        if names is not None:
            self.feature_names_in_ = names
        self.options_ = self.get_params()
        self.standard_errors_ = {}
        try:
            self._fit(sample)
        except BaseException:
            self._forget()  # half a fit is none
            raise
        if not self.solution_.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge: {self.solution_.message}. With too few rows for "
                "its parameters a method can drift: fit more rows, or a simpler method (ts, hts).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=["float64", "float32"])
        tags.target_tags.required = True
        return tags

    def _forget(self) -> None:
        """Remove what an earlier fit has left: all that ends in _."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _check_options(self) -> None:
        """Raise if a hyper-parameter is not valid."""

    @abstractmethod
    def _fit(self, sample: FitData) -> None:
        """Set the fitted attributes and `solution_`."""

    @abstractmethod
    def _transform(self, rows: LogitRows) -> Floats:
        """Return calibrated logits, (N, K)."""

    @abstractmethod
    def _predict_proba(self, rows: LogitRows) -> Floats:
        """Return calibrated probabilities, (N, K)."""

    @abstractmethod
    def _formula(self, z: Array, ops: Ops) -> Array:
        """Return what `_transform` gives, of logits (..., K): once, for every framework that has the ops."""

    def _decision_formula(self, z: Array, ops: Ops) -> Array:
        """Return numbers of which the largest is at the predicted class."""
        return z

    def _predict(self, rows: LogitRows) -> NDArray[np.intp]:
        """Return the column of the largest logit."""
        return rows.top

    def transform(self, logits: Any) -> Any:
        """Return calibrated logits, in the shape of the input: z / T(z), or log-probabilities (ETS, bayes).

        For the (N,) logits of a binary classifier, the log-odds of class 1.
        """
        return self._apply("transform", logits)

    def predict_proba(self, logits: Any) -> Any:
        """Return calibrated probabilities, (N, K)."""
        return self._apply("predict_proba", logits)

    def predict(self, logits: Any) -> Any:
        """Return the column of the predicted class, (N,).

        This is the column of the largest logit, the classifier's own decision; a class bias may change it.
        """
        return self._apply("predict", logits)

    def _apply(self, method: str, logits: Any) -> Any:
        """Return what `method` gives for these logits, in a container like theirs."""
        framework = framework_of(logits)
        if framework is not None:
            return import_module(f"temperance.{framework}").apply(self, method, logits)
        opened, rows = self._open(logits)
        result = getattr(self, f"_{method}")(rows)
        rows.check()  # the temperature of TS needs no row, but bad ones are spoken of all the same
        if method == "transform" and opened.binary:
            result = result[:, 1] - result[:, 0]
        result = opened.wrap(result)
        return self._tabled(result, logits) if method == "transform" else result

    def summary(self) -> str:
        """Describe the fitted calibrator in words and numbers."""
        self._check_fitted()
        lines = self._summary().splitlines()
        return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)

    def _repr_html_(self) -> str:
        from temperance.report.notebook import calibrator_html

        return calibrator_html(self)

    def _repr_mimebundle_(self, **formats: Any) -> dict[str, str]:
        # A notebook asks for this first; scikit-learn's own shows the options and not what was learnt.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @abstractmethod
    def _summary(self) -> str:
        """Return the lines of the summary, of any length."""

    @abstractmethod
    def _shapes(self) -> Mapping[str, Shape]:
        """Name the fitted numbers and their shapes; "K" is the number of classes, other letters any size."""

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted calibrator as a JSON file; `temperance.load` reads it back to the bit."""
        from temperance.persistence import save

        save(self, path, overwrite=overwrite)

    def to_torch(self, dim: int = -1) -> CalibratorModule:
        """Return `transform` as a PyTorch module: `torch.nn.Sequential(model, cal.to_torch())`.

        `dim` is the axis of the classes: 1 for the (N, K, H, W) logits of pixels.
        """
        self._check_fitted()
        try:
            from temperance.torch import CalibratorModule
        except ImportError as error:
            raise ImportError('to_torch needs PyTorch: pip install "temperance[torch]"') from error
        return CalibratorModule(self, dim)

    def to_onnx(
        self,
        path: str | Path,
        *,
        model: str | Path | None = None,
        output: str | None = None,
        from_probs: bool = False,
        keep: bool = False,
        dtype: Any = "float32",
        overwrite: bool = False,
    ) -> None:
        """Write `predict_proba` as an ONNX model, or a classifier with it at its end.

        Alone, it takes `logits` (batch, K) and gives `probabilities` (batch, K), both of type `dtype`. Given
        the file of a classifier, `model`, it calibrates the logits in its `output`, which `probabilities`
        replace: see `temperance.onnx.append_to_onnx` for the options.
        """
        self._check_fitted()
        from temperance.onnx import append_to_onnx, to_onnx

        if model is None:
            if output is not None or from_probs or keep:
                raise InputError(
                    "output, from_probs and keep are about a classifier: name its file with model=..., or "
                    "leave them out."
                )
            to_onnx(self, path, dtype=dtype, overwrite=overwrite)
            return
        append_to_onnx(
            self, model, path, output=output, from_probs=from_probs, keep=keep, overwrite=overwrite
        )

    def _open(self, logits: Any) -> tuple[Logits, LogitRows]:
        opened = open_logits(logits)
        self._check_columns(opened.values.shape[1])
        return opened, LogitRows(opened.values, inspect=inspector(opened.values))

    def _check_columns(self, n_classes: int) -> None:
        self._check_fitted()
        if n_classes != self.n_classes_:
            raise InputError(
                f"this {type(self).__name__} was fitted on {self.n_classes_} classes, so logits must have "
                f"{self.n_classes_} columns; got {n_classes}. Use the calibrator of this classifier."
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_classes_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet. Call fit(logits, labels) first, or read a "
                "fitted one with temperance.load(path)."
            )

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Return the fitted numbers by name, as they are saved and exported."""
        self._check_fitted()
        return {name: np.asarray(getattr(self, f"{name}_")) for name in self._shapes()}

    def _check_parameters(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        """Raise if numbers of the right shapes cannot be those of a fitted calibrator."""

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        """Set the fitted numbers from what `parameters` gave; shapes and types are checked by then."""
        for name, value in parameters.items():
            setattr(self, f"{name}_", value if value.ndim else float(value))


def _open_fit_data(logits: Any, labels: Any, sample_weight: Any) -> FitData:
    if framework_of(logits) == "dask":
        sample: FitData = import_module("temperance.dask").open_fit_data(logits, labels, sample_weight)
        return sample
    opened = open_logits(logits)
    n_rows, n_classes = opened.values.shape
    if n_rows == 0:
        raise InputError("fit needs labelled rows; got none. Pass the logits of a validation set.")
    columns = check_labels(as_numpy(labels), n_rows, n_classes)
    weights = check_sample_weight(None if sample_weight is None else as_numpy(sample_weight), n_rows)
    inspect = inspector(opened.values, columns)
    return InMemoryFitData(LogitRows(opened.values, columns, inspect=inspect), weights)


class TemperatureCalibrator(Calibrator):
    """A member of the Adaptive Temperature Scaling family: softmax(z / T(z)).

    Dividing a row by a positive number keeps the order of its classes, so the predicted class stays the same,
    unless a method adds a class bias.
    """

    temperature_quantiles_: Vector
    """5 %, 50 % and 95 % quantiles of T over the rows of the fit."""

    @abstractmethod
    def _temperature(self, rows: LogitRows) -> Vector:
        """Return T of each row."""

    @abstractmethod
    def _temperature_formula(self, z: Array, ops: Ops) -> Array:
        """Return T of each row, (..., 1) or one number for all."""

    def _formula(self, z: Array, ops: Ops) -> Array:
        return divide(z, self._temperature_formula(z, ops), ops)

    def temperature(self, logits: Any) -> Any:
        """Return T(z) of each row, (N,)."""
        return self._apply("temperature", logits)

    def _transform(self, rows: LogitRows) -> Floats:
        return rows.scaled(1 / self._temperature(rows))

    def _predict_proba(self, rows: LogitRows) -> Floats:
        return rows.softmax(1 / self._temperature(rows))

    def _set_quantiles(self, objective: Any, theta: Vector) -> None:
        self.temperature_quantiles_ = objective.temperature_quantiles(theta, np.array([0.05, 0.5, 0.95]))

    def _headline(self, formula: str) -> str:
        errors = "; \u00b1 is one standard error" if self.standard_errors_ else ""
        return (
            f"{type(self).__name__} ({self.key.upper()})\n{formula}\n"
            f"{self.n_classes_} classes, fitted on {self.n_rows_} rows{errors}"
        )

    def _describe_fit(self, loss: str = "NLL") -> str:
        lines = []
        low, middle, high = self.temperature_quantiles_
        if low < high:
            lines.append(
                f"T of the calibration rows: {low:.3g} / {middle:.3g} / {high:.3g} (5 % / median / 95 %)"
            )
        s = self.solution_
        lines.append(f"{loss} of the calibration rows: {s.value:.4f}")
        lines.append(f"solver: {s.message} after {s.iterations} iterations, {s.passes} passes over the rows")
        return "\n".join(lines)
