"""What all calibrators share: the scikit-learn contract, the containers, the checks.

A method's own file adds its formula and its fit: `_fit` (labelled rows -> fitted model). The estimator holds
the model, which is frozen; its numbers are attributes with a trailing underscore.
"""

from __future__ import annotations

import textwrap
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import TransformerTags

from temperance import loaders
from temperance.calibrators.adapting import adapt_to_priors, adapt_to_rows, describe_adaptation
from temperance.calibrators.descriptions import name_with_options
from temperance.calibrators.fitted import model_of
from temperance.calibrators.opening import open_fit_data
from temperance.calibrators.predicting import PredictMixin
from temperance.calibrators.recording import record_fit
from temperance.core.arrays import AnyArray, Vector
from temperance.core.fit_data import FitData
from temperance.core.solution import Solution
from temperance.core.threads import number_of_threads
from temperance.formulas.fit_record import Baseline, FittedOn
from temperance.formulas.model import Formula, Model
from temperance.inputs.frames import column_names
from temperance.inputs.validation import InputError

QUANTILES = np.array([0.05, 0.5, 0.95])
"""Quantile levels at which the temperatures of a fit are kept."""

_SET_BY_FIT = ("model_", "n_features_in_", "feature_names_in_")


class Calibrator(PredictMixin, BaseEstimator):  # type: ignore[misc]
    """A function from logits to probabilities, fitted to labelled rows: the base of all methods.

    Fitted attributes end in an underscore.

    Examples
    --------
    >>> from temperance import make_calibrator
    >>> from temperance.calibrators import Calibrator
    >>> isinstance(make_calibrator("ets"), Calibrator)
    True
    """

    key: ClassVar[str]
    """The key in the registry and in saved files: the paper's acronym."""

    formula_type: ClassVar[type[Formula]]
    """The class that holds the fitted numbers and the formula."""

    model_: Model
    """The fitted model: a frozen value. Other attributes with a trailing underscore are read from it."""

    n_classes_: int
    n_rows_: int
    options_: Mapping[str, Any]
    """The hyper-parameters of the fit, which `set_params` does not change."""
    solution_: Solution
    standard_errors_: Mapping[str, Vector]
    n_parameters_: float
    """The effective number of parameters: with a prior, less than their number."""
    class_counts_: Vector
    """Weighted label counts of the rows of the fit, (K,)."""
    log_prior_ratio_: Vector
    """Log ratios of the class frequencies it was adapted to and those of the fit, (K,)."""
    frequency_errors_: Vector
    """Standard errors of the class frequencies it was adapted to, if `adapt` estimated them, (K,)."""
    class_names_: tuple[str, ...]
    """The columns of the data frame it was fitted to, or the names in its file, if any."""
    fitted_on_: FittedOn
    data_hash_: str
    date_: str
    library_version_: str
    baseline_: Baseline
    """What calibrated predictions looked like on the rows of the fit."""
    metadata_: Mapping[str, Any]
    """The user's own notes, as passed to `save`."""

    def __getattr__(self, name: str) -> Any:
        model = self.__dict__.get("model_")
        if model is not None and name.endswith("_"):
            for holder in (model, model.formula, model.record):
                value = getattr(holder, name[:-1], None)
                if value is not None:
                    return value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.endswith("_") and not name.startswith("_") and name not in _SET_BY_FIT:
            raise AttributeError(
                f"{name} is a number of the fitted model, which cannot be changed. Fit again."
            )
        super().__setattr__(name, value)

    @property
    def supports_masked_classes(self) -> bool:
        """Whether -inf may mark an impossible class."""
        return True

    @property
    def keeps_class(self) -> bool:
        """Whether the method never changes the predicted class; `adapt` may, whatever the method."""
        return True

    def fit(
        self,
        logits: Any,
        labels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        classes: Sequence[str] | Sequence[int] | None = None,
        dim: int = -1,
        ignore_index: int | None = None,
    ) -> Self:
        """Fit to the logits and labels of rows that the classifier was not trained on.

        Parameters
        ----------
        logits : (N, K) array, memory map, tensor, DataFrame, or Dask array or frame
            The classifier's scores; (N,) for a binary classifier, the logit of class 1. Arrays and tensors
            may have more axes: every token or pixel is a row.
        labels : (N,) integers or names
            The column of each row's true class; its name, if the columns of a DataFrame or `classes` have
            the names. For logits with more axes, the shape without that of the classes.
        sample_weight : numbers >= 0 in the shape of the labels, optional
            A weight k counts as the row repeated k times.
        classes : sequence of str or int, optional
            The names of the columns, in their order.
        dim : int
            The axis of the classes: 1 for the (N, K, H, W) logits of pixels.
        ignore_index : int, optional
            Rows with this label are left out.

        Examples
        --------
        >>> from temperance import TemperatureScaling
        >>> from temperance.data import simulate
        >>> task = simulate(n_rows=600, n_classes=3, random_state=0)
        >>> pixels, labels = task.logits.reshape(2, 15, 20, 3).transpose(0, 3, 1, 2), task.labels.copy()
        >>> labels[:50] = 255  # rows to ignore
        >>> labels = labels.reshape(2, 15, 20)
        >>> cal = TemperatureScaling().fit(pixels, labels, dim=1, ignore_index=255)
        >>> cal.n_rows_, cal.predict_proba(pixels, dim=1).shape, cal.temperature(pixels, dim=1).shape
        (550, (2, 3, 15, 20), (2, 15, 20))
        """
        self._check_options()
        number_of_threads()  # raises if the environment variable is not valid
        data, class_names = open_fit_data(logits, labels, sample_weight, classes, dim, ignore_index)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # of an earlier fit
        names = column_names(logits)
        model = record_fit(self._fit(data), data, class_names)
        # Later steps may read the rows again.
        self.model_ = replace(model, solution=replace(model.solution, passes=data.passes))
        self.n_features_in_ = data.n_classes
        if names is not None:
            self.feature_names_in_ = names
        if not self.solution_.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge: {self.solution_.message}. With too few rows for "
                "its parameters a method can diverge. Fit more rows, or a simpler method (ts, hts).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=["float64", "float32"])
        tags.target_tags.required = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def _check_options(self) -> None:
        """Raise if a hyper-parameter is not valid."""

    @abstractmethod
    def _fit(self, data: FitData) -> Model:
        """Fit the method to labelled rows."""

    def _model(
        self,
        data: FitData,
        formula: Formula,
        solution: Solution,
        *,
        standard_errors: Mapping[str, AnyArray] | None = None,
        temperature_quantiles: Vector | None = None,
    ) -> Model:
        """Return the model of a fit with the options of this estimator."""
        return Model(
            self.key,
            name_with_options(self),
            formula,
            self.get_params(),
            data.n_classes,
            data.n_rows,
            solution,
            standard_errors or {},
            temperature_quantiles,
        )

    def adapt(self, logits: Any = None, *, priors: ArrayLike | None = None) -> Self:
        """Return a calibrator for rows whose class frequencies differ from those of the fit (label shift).

        It has the same formula; its probabilities follow from Bayes' rule with the new frequencies, and
        `transform` gives their logarithms. The predicted class may change. Adapting it again starts from the
        frequencies of the fit.

        The frequencies of unlabelled rows are estimated by maximum likelihood (Saerens, Latinne and
        Decaestecker, 2002), with a prior centred at those of the fit; the rows determine its strength. The
        estimate needs calibrated probabilities of each class: prefer `bayes-bias`, which has a class bias.
        A class with very few labels at fit keeps its frequency.

        Parameters
        ----------
        logits : as for `fit`, optional
            Unlabelled rows, from which the frequencies are estimated.
        priors : (K,) numbers > 0 that sum to 1, optional
            The frequencies, if they are known.

        Examples
        --------
        >>> from temperance import BayesianTemperatureScaling
        >>> from temperance.data import simulate
        >>> task = simulate(n_rows=2000, n_classes=3, random_state=0)
        >>> cal = BayesianTemperatureScaling(class_bias=True).fit(task.logits, task.labels)
        >>> adapted = cal.adapt(priors=[0.8, 0.1, 0.1])
        >>> before, after = (c.predict_proba(task.logits).mean(axis=0) for c in (cal, adapted))
        >>> bool(after[0] > before[0])
        True
        """
        if (logits is None) == (priors is None):
            found = "neither" if logits is None else "both"
            raise InputError(f"adapt takes unlabelled logits or priors; found {found}. Pass one of them.")
        model, adapted = model_of(self), copy(self)
        if logits is not None:
            self._check_names(logits)
        adapted.model_ = adapt_to_rows(model, logits) if priors is None else adapt_to_priors(model, priors)
        return adapted

    def summary(self) -> str:
        """Describe the fitted calibrator in words and numbers."""
        model = model_of(self)
        lines = self._summary().splitlines()
        if model.log_prior_ratio is not None:
            lines.append(describe_adaptation(model, list(self.get_feature_names_out())))
        lines += model.record.describe().splitlines()
        return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)

    def _repr_html_(self) -> str:
        html: str = loaders.load("calibrator html")(self)
        return html

    def _repr_mimebundle_(self, **formats: Any) -> dict[str, str]:
        # A notebook asks for this first; scikit-learn's own shows the options, not the fitted numbers.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @abstractmethod
    def _summary(self) -> str:
        """Return the lines of the summary, of any length."""

    def save(
        self, path: str | Path, *, metadata: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> None:
        """Write the fitted calibrator as a JSON file; `temperance.load` reads it back bit for bit.

        Parameters
        ----------
        path : path
            The file to write.
        metadata : mapping, optional
            Notes of your own that JSON can hold, such as the name of the classifier: `metadata_` of the
            loaded calibrator. Without it, those of the file that this calibrator was loaded from are kept.
        overwrite : bool
            Whether a file that exists may be replaced.
        """
        loaders.load("save")(self, path, metadata=metadata, overwrite=overwrite)

    def to_torch(self, dim: int = -1) -> Any:
        """Return `transform` as a PyTorch module: `torch.nn.Sequential(model, cal.to_torch())`.

        `dim` is the axis of the classes: 1 for the (N, K, H, W) logits of pixels.
        """
        model = model_of(self)
        try:
            return loaders.load("torch module")(model, dim)
        except ImportError as error:
            raise ImportError('to_torch needs PyTorch: pip install "temperance[torch]"') from error

    def to_onnx(
        self,
        path: str | Path,
        *,
        model: str | Path | None = None,
        output: str | None = None,
        from_probs: bool | None = None,
        floor: float | None = None,
        keep: bool = False,
        dtype: Any = "float32",
        overwrite: bool = False,
    ) -> None:
        """Write `predict_proba` as an ONNX model, or a classifier with it at its end.

        Alone, it takes `logits` (batch, K) and gives `probabilities` (batch, K), both of type `dtype`. Given
        the file of a classifier, `model`, it calibrates the logits in its `output`, which `probabilities`
        replace: see `temperance.onnx.append_to_onnx` for the options.
        """
        fitted = model_of(self)
        if model is not None:
            options = {"output": output, "from_probs": from_probs, "floor": floor, "keep": keep}
            loaders.load("onnx append")(fitted, model, path, **options, overwrite=overwrite)
        elif keep or any(option is not None for option in (output, from_probs, floor)):
            words = "output, from_probs, floor and keep are about a classifier: name its file with model=..."
            raise InputError(f"{words}, or leave them out.")
        else:
            loaders.load("onnx model")(fitted, path, dtype=dtype, overwrite=overwrite)

    def parameters(self) -> dict[str, AnyArray]:
        """Return the fitted numbers by name, as they are saved and exported."""
        return model_of(self).formula.arrays()


class TemperatureCalibrator(Calibrator):
    """A member of the Adaptive Temperature Scaling family: softmax(z / T(z)).

    Dividing a row by a positive number keeps the order of its classes, so the predicted class stays the same,
    unless a method adds a class bias.

    Examples
    --------
    >>> from temperance import CALIBRATORS
    >>> from temperance.calibrators import TemperatureCalibrator
    >>> [key for key, method in CALIBRATORS.items() if not issubclass(method.build, TemperatureCalibrator)]
    ['ets', 'mono', 'ets-brier']
    """

    temperature_quantiles_: Vector
    """5 %, 50 % and 95 % quantiles of T over the rows of the fit."""

    def temperature(self, logits: Any, *, dim: int = -1) -> Any:
        """Return T(z) of each row, in the shape of the logits without the axis `dim` of the classes."""
        return self._apply("temperature", logits, dim)

    def _summary(self) -> str:
        numbers = [
            f"{name} = {np.array2string(value, precision=4)}" for name, value in self.parameters().items()
        ]
        return "\n".join([self._headline(type(self).__name__), *numbers, self._describe_fit()])

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
        lines.append(f"solver: {s.summary}")
        return "\n".join(lines)
