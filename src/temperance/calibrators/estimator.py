"""What all calibrators share: the scikit-learn contract, the containers, the checks, the words of a summary.

A method's own file adds its fit: `_fit` (labelled rows -> fitted model); its formula is in `formulas`. The
estimator holds the model, which is frozen. Its numbers are attributes with a trailing underscore, each of
which says where in the model it is.
"""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import TransformerTags
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config

from temperance import loaders
from temperance.calibrators.fit_record import record_fit, warn_if_fitted_on
from temperance.calibrators.label_shift import adapt_to_priors, adapt_to_rows, describe_adaptation
from temperance.calibrators.registry import key_of
from temperance.core.arrays import AnyArray, Vector
from temperance.core.blocks import number_of_threads
from temperance.core.design_effect import number_groups
from temperance.core.objective import FitData
from temperance.core.solution import Solution
from temperance.errors import InputError, Remedy, warn_user
from temperance.formulas.automation import Automation, decide
from temperance.formulas.fit_record import Baseline, FittedOn
from temperance.formulas.model import (
    Formula,
    Model,
    TemperatureFormula,
    apply,
    apply_to_rows,
    are_plain_rows,
    axis_of_classes,
    logits_for,
)
from temperance.inputs.containers import as_numpy, framework_of, joined_batches, open_labelled
from temperance.inputs.labels import check_label_counts
from temperance.inputs.names import (
    check_class,
    check_columns_of,
    choose_columns,
    column_names,
    names_of,
    text_headers,
)
from temperance.inputs.probabilities import logits_from_probs, probability_floor
from temperance.inputs.validation import check_are_logits, check_choice

QUANTILES = np.array([0.05, 0.5, 0.95])
"""Quantile levels at which the temperatures of a fit are kept."""


def model_of(fitted: Any) -> Model:
    """Return the fitted model of a calibrator, or the model itself; raise if it has none."""
    if isinstance(fitted, Model):
        return fitted
    model: Model | None = vars(fitted).get("model_")
    if model is None:
        raise NotFittedError(
            f"this {type(fitted).__name__} is not fitted yet. Call fit(logits, labels) first, or read a "
            "fitted one with temperance.load(path)."
        )
    return model


def check_headers(fitted: Any, logits: Any) -> None:
    """Raise if a data frame has other columns than the logits of the fit; positions have no meaning."""
    model, of_fit, found = model_of(fitted), getattr(fitted, "feature_names_in_", None), text_headers(logits)
    is_same = found is not None and of_fit is not None and np.array_equal(found, of_fit)
    if not model.of_positions and not is_same:
        check_columns_of(logits, model.record.class_names, model.n_classes)


def fitted(place: str) -> Any:
    """Declare an attribute of fitted calibrators by its place in the model, such as "formula.intercept".

    It cannot be set, and is absent where the model has None.
    """
    value_in = attrgetter(place)

    def read(calibrator: Any) -> Any:
        value = value_in(model_of(calibrator))
        if value is None:
            raise AttributeError(f"the model of this {type(calibrator).__name__} has no {place}")
        return value

    return property(read)


class Calibrator(BaseEstimator, ABC):  # type: ignore[misc]
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
    supports_masked_classes: ClassVar[bool] = True
    """Whether -inf can mark an impossible class."""

    model_: Model
    """The fitted model: a frozen value. All fitted attributes below are read from it."""
    feature_names_in_: NDArray[np.object_]
    """The names of the columns, if the logits of the fit had names that are text."""

    n_classes_: int = fitted("n_classes")
    n_rows_: int = fitted("n_rows")
    options_: Mapping[str, Any] = fitted("options")
    """The hyper-parameters of the fit, which `set_params` does not change."""
    solution_: Solution = fitted("solution")
    """How the solver ended. The formula holds the parameters, so the solution has none of its own."""
    standard_errors_: Mapping[str, Vector] = fitted("standard_errors")
    temperature_quantiles_: Vector = fitted("temperature_quantiles")
    """5%, 50% and 95% quantiles of T over the rows of the fit, of methods whose rows have a temperature."""
    n_parameters_: float = fitted("n_parameters")
    """The effective number of parameters: with a prior, less than their number."""
    n_groups_: int = fitted("n_groups")
    """How many groups the rows of the fit were in, if they had some."""
    design_effect_: float = fitted("design_effect")
    """With groups: how many of the rows tell as much about the gap of confidence and accuracy as one
    independent row."""
    class_counts_: Vector = fitted("class_counts")
    """Weighted label counts of the rows of the fit, (K,)."""
    log_prior_ratio_: Vector = fitted("log_prior_ratio")
    """Log ratios of the class frequencies it was adapted to and the frequencies of the fit, (K,)."""
    frequency_errors_: Vector = fitted("frequency_errors")
    """Standard errors of the class frequencies it was adapted to, if `adapt` estimated them, (K,)."""
    adaptation_rows_: int = fitted("adaptation_rows")
    """How many rows `adapt` estimated the class frequencies from."""
    automation_: Automation = fitted("automation")
    """Which predictions need no person, if `automate` found it."""
    class_names_: tuple[str, ...] = fitted("record.class_names")
    """The columns of the data frame it was fitted to, or the names in its file, if any."""
    positive_: int = fitted("record.positive")
    """The column of the class whose probability people act on, if `fit` was told."""
    fitted_on_: FittedOn = fitted("record.fitted_on")
    data_hash_: str = fitted("record.data_hash")
    date_: str = fitted("record.date")
    library_version_: str = fitted("record.library_version")
    baseline_: Baseline = fitted("record.baseline")
    """What calibrated predictions looked like on the rows of the fit."""
    metadata_: Mapping[str, Any] = fitted("record.metadata")
    """The user's own notes, as passed to `save`."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The names of the classes, in the order of the columns; their numbers if they have no names."""
        model = model_of(self)
        names = model.record.class_names
        return np.arange(model.n_classes) if names is None else np.array(names)

    @property
    def keeps_class(self) -> bool:
        """Whether the method never changes the predicted class; `adapt` can, whatever the method."""
        return True

    def fit(
        self,
        logits: Any,
        labels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        classes: Sequence[str] | Sequence[int] | None = None,
        dim: int = -1,
        ignore_index: int | None = None,
        from_probs: bool | None = None,
        renormalise: bool = False,
        positions: bool = False,
        positive: int | str | None = None,
    ) -> Self:
        """Fit to the logits and labels of held-out rows, which the classifier was not trained on.

        Parameters
        ----------
        logits : (N, K) array, memory map, tensor, DataFrame, or Dask array or frame
            The classifier's scores; (N,) or (N, 1) for a binary classifier, the logit of class 1. Arrays and
            tensors can have more axes: every token or pixel is a row.
        labels : (N,) integers, whole numbers as floats, or names
            The column of each row's true class; its name, if the columns of a DataFrame or `classes` have
            the names. For logits with more axes, their shape without the axis of the classes.
        sample_weight : numbers >= 0 in the shape of the labels, optional
            A weight k counts as the row repeated k times.
        groups : ids in the shape of the labels, optional
            Rows with the same id belong together, such as the pixels of an image or the visits of a patient,
            and are not independent. Standard errors are then by groups, and `bayes` and `bayes-bias` count
            rows by what they tell about new groups. Logits with more axes have groups without this: the
            entries of their first axis.
        classes : sequence of str or int, optional
            The names of the columns, in their order. Of a data frame with such columns, these are used, in
            this order.
        dim : int
            The axis of the classes: 1 for the (N, K, H, W) logits of pixels.
        ignore_index : int, optional
            Rows with this label are left out.
        from_probs : bool, optional
            Whether `logits` are probabilities, (N, K) or (N,), whose logarithms are calibrated. Then
            `predict_proba(probs, from_probs=True)` and the other methods take probabilities too, raise small
            ones to the same floor (`probability_floor`), and refuse them as logits. By default they are
            logits, and raise an error if they look like probabilities; with False, they are logits for sure.
        renormalise : bool
            With `from_probs`: whether each row, here and later, is divided by its sum. For probabilities that
            were rounded, percentages or votes.
        positions : bool
            Whether columns are positions without a meaning, such as the options of a multiple-choice question
            (-inf where a question has fewer). Then no term belongs to a column: LTS and HnLTS raise an
            error, and `bayes-bias` is `bayes`. All methods but PTS take any number of columns later.
        positive : int or str, optional
            The class whose probability people act on, such as the illness: its name, or its column where
            columns have no names. The calibrator stores it.

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

        Later pixels are read with the same `dim`, unless you pass another. The two images are two groups.

        >>> options = TemperatureScaling().fit(task.logits, task.labels, positions=True)
        >>> options.predict_proba([[2.0, 1.0, 0.5, 0.0]]).shape
        (1, 4)

        >>> from_probs = TemperatureScaling().fit(task.probabilities, task.labels, from_probs=True)
        >>> from_probs.predict_proba([[0.7, 0.3, 0.0]], from_probs=True).round(1)
        array([[0.7, 0.3, 0. ]])
        """
        self._check_options()
        number_of_threads()  # raises if the environment variable is not valid
        given = rows = choose_columns(logits, classes)
        floor, headers = None, text_headers(given)
        if renormalise and not from_probs:
            raise InputError(
                "renormalise is for probabilities; found logits.", remedy=Remedy("from_probs", (True,))
            )
        if positions and positive is not None:
            raise InputError("positive is for classes; found positions=True. Leave one of them out.")
        if from_probs:
            floor = probability_floor(given, renormalise=renormalise)
            rows = logits_from_probs(given, floor, renormalise=renormalise)
            classes = column_names(given) if classes is None else classes
        data, class_names, at = _open_rows(
            rows, labels, sample_weight, groups, classes, dim, ignore_index, from_probs
        )
        fitted_on = FittedOn(
            "probabilities" if from_probs else "logits",
            floor,
            positions=positions or None,
            dim=at,
            renormalised=renormalise or None,
        )
        data.positions = positions
        if data.in_memory and not positions:  # of a Dask collection, the record of the fit counts the labels
            assert data.rows.labels is not None  # rows of a fit
            counts = np.bincount(data.rows.labels, data.weights, data.n_classes)
            check_label_counts("fit", counts, class_names)
        column = None if positive is None else check_class("positive", positive, class_names, data.n_classes)
        for name in list(vars(self)):
            if name.endswith("_"):
                delattr(self, name)  # of an earlier fit
        as_logits = from_probs is None and not data.in_memory  # in memory, this was checked before the fit
        names_of_fit = None if positions else class_names
        model = record_fit(self._fit(data), data, fitted_on, names_of_fit, column, check=as_logits)
        # Later steps can read the rows again. The solver's own numbers are in the formula, and not in a file.
        solution = replace(model.solution, passes=data.passes, parameters=np.empty(0), covariance=None)
        self.model_ = replace(model, solution=solution)
        self.n_features_in_ = data.n_classes
        if headers is not None and not positions:
            self.feature_names_in_ = headers
        if not solution.converged:
            message = (
                f"{type(self).__name__} did not converge: {solution.message}. The result can be used; a "
                "slightly lower loss on these rows might exist, often with too few rows for the parameters. "
                "temperance.compare shows how well it predicts other rows."
            )
            warn_user(ConvergenceWarning(message))
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
        n_parameters: float | None = None,
    ) -> Model:
        """Return the model of a fit with the options of this estimator."""
        return Model(
            self.key,
            type(self).__name__,
            formula,
            self.get_params(),
            data.n_classes,
            data.n_rows,
            solution,
            standard_errors or {},
            temperature_quantiles,
            n_parameters=float(solution.parameters.size) if n_parameters is None else n_parameters,
        )

    def transform(self, logits: Any, *, dim: int | None = None, from_probs: bool | None = None) -> Any:
        """Return calibrated logits, in the shape of the input: z / T(z), or log-probabilities.

        ETS, bayes and adapted calibrators give log-probabilities.
        For the (N,) logits of a binary classifier, the log-odds of class 1.
        """
        result = self._apply("transform", logits, dim, from_probs)
        plain = dim in (None, -1, 1) and not framework_of(logits)
        return self._tabled(result, logits) if plain else result

    def predict_proba(self, logits: Any, *, dim: int | None = None, from_probs: bool | None = None) -> Any:
        """Return calibrated probabilities, (N, K), or in the shape of logits with more axes.

        As in all methods, `dim` is the axis of the classes, by default the fit's. With from_probs=True,
        `logits` are the classifier's probabilities, if the calibrator was fitted on such; with False, they
        are logits even if they look like probabilities.
        """
        return self._apply("predict_proba", logits, dim, from_probs)

    def predict(self, logits: Any, *, dim: int | None = None, from_probs: bool | None = None) -> Any:
        """Return the column of the predicted class, (N,), or the shape of the logits without the axis `dim`.

        A temperature or a map keeps the class of the largest logit, the classifier's own. With a class bias
        (`class_bias`, `bayes-bias`), or after `adapt`, it is the class of the largest calibrated probability,
        which can be another one.
        """
        return self._apply("predict", logits, dim, from_probs)

    def temperature(self, logits: Any, *, dim: int | None = None, from_probs: bool | None = None) -> Any:
        """Return T(z) of each row, in the shape of the logits without the axis `dim` of the classes.

        The rows of ETS and mono have none, which raises an error.
        """
        if not isinstance(model_of(self).formula, TemperatureFormula):
            raise AttributeError(
                f"{type(self).__name__} does not divide a row by a temperature, so a row has no temperature. "
                "Use bayes, ts, lts, hts, hnlts, bts or pts for T(z)."
            )
        return self._apply("temperature", logits, dim, from_probs)

    def _apply(self, method: str, logits: Any, dim: int | None, from_probs: bool | None) -> Any:
        """Return what `method` gives for these logits, or probabilities, in a container like theirs."""
        model = model_of(self)
        if are_plain_rows(model, logits, dim, from_probs):
            return apply_to_rows(model, method, logits)
        check_headers(self, logits)
        return apply(model, method, logits, dim, from_probs)

    # scikit-learn's own wrapper of `transform` supports neither tensors nor the keyword `logits`, so only its
    # table adapters are used.
    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns: "default" (like its input), "pandas" or "polars".

        A table has the columns and, with pandas, the index of the logits. Tensors, Dask arrays and the (N,)
        logits of a binary classifier are returned as usual.
        """
        if transform is not None:
            check_choice("transform", transform, tuple(sorted(ADAPTERS_MANAGER.supported_outputs)))
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the column names of the fit's logits; without any, the names in `classes_`."""
        if input_features is None:
            return getattr(self, "feature_names_in_", self.classes_.astype(str).astype(object))
        names = np.asarray(input_features, object)
        if names.shape != (self.n_classes_,):
            raise InputError(
                f"input_features must be {self.n_classes_} names, one per class; found {names.tolist()}."
            )
        return names

    def _tabled(self, result: Any, logits: Any) -> Any:
        """Return calibrated logits in the requested table, if any."""
        wanted = _get_output_config("transform", self)["dense"]
        if wanted == "default" or not isinstance(result, np.ndarray) or result.ndim != 2:
            return result
        columns = getattr(logits, "columns", None)
        if columns is None:
            own = result.shape[1] == self.n_classes_  # there can be more or fewer positions
            columns = self.get_feature_names_out() if own else range(result.shape[1])
        return ADAPTERS_MANAGER.adapters[wanted].create_container(result, logits, columns=columns)

    def adapt(
        self, logits: Any = None, *, priors: ArrayLike | None = None, from_probs: bool | None = None
    ) -> Self:
        """Return a calibrator for rows whose class frequencies differ from the fit's (label shift).

        It has the same formula; its probabilities follow from Bayes' rule with the new frequencies, and
        `transform` gives their logarithms. The predicted class can change. Adapting it again starts from the
        frequencies of the fit.

        The frequencies of unlabelled rows are estimated by maximum likelihood (Saerens, Latinne and
        Decaestecker, 2002), with a prior centred at the fit's frequencies. The rows set its strength. The
        estimate needs calibrated probabilities of each class: prefer `bayes-bias`, which has a class bias.
        A class with very few labels at fit keeps its frequency.

        Parameters
        ----------
        logits : as for `fit`, optional
            Unlabelled rows, from which the frequencies are estimated.
        priors : (K,) numbers > 0 that sum to 1, optional
            The frequencies, if they are known.
        from_probs : bool, optional
            Whether the rows are probabilities, as for `predict_proba`.

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
        if model.of_positions:
            raise InputError(
                f"adapt is for class frequencies; found a {model.name} that was fitted on positions, which "
                "are not classes. Use it as it is."
            )
        if logits is not None:
            check_headers(self, logits)
        adapted.model_ = (
            adapt_to_rows(model, logits, from_probs) if priors is None else adapt_to_priors(model, priors)
        )
        return adapted

    def automate(
        self,
        logits: Any,
        labels: ArrayLike,
        max_error: float = 0.02,
        delta: float = 0.05,
        *,
        positive: int | str | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        dim: int | None = None,
        ignore_index: int | None = None,
        from_probs: bool | None = None,
    ) -> Self:
        """Return a calibrator that knows which predictions need no person: its `automation_`.

        It predicts as before. `decide` and a service follow the rule, and `save` stores it. See
        `temperance.automate`, which also accepts probabilities without a calibrator.

        Parameters
        ----------
        logits, labels : as for `fit`
            Held-out rows, which the fit has not used.
        max_error, delta, positive : as for `temperance.automate`
            The promise: of the rows above the threshold at most `max_error` are wrong, except with
            probability `delta`.
        groups : one id per row, in the shape of the labels, optional
            Rows of a group can depend on each other. The pixels or tokens of logits with more axes are groups
            by their first axis, unless you pass others.
        sample_weight : numbers >= 0 in the shape of the labels, optional
            How much a row counts.
        ignore_index : int, optional
            Rows with this label are left out, such as pixels without a class.
        dim, from_probs : as for `predict_proba`

        Examples
        --------
        >>> import temperance
        >>> task = temperance.data.demo_task()
        >>> cal = temperance.make_calibrator("bayes").fit(task.val_logits, task.val_labels)
        >>> cal = cal.automate(task.test_logits[:5000], task.test_labels[:5000], max_error=0.05)
        >>> print(cal.automation_.words)
        Above ...% confidence: ...% of the rows, at most 5% of them wrong (95% confidence).
        >>> cal.decide(task.test_logits[5000:5004])  # -1: ask a person
        array([...])
        """
        model, automated, names = model_of(self), copy(self), model_of(self).record.class_names
        if positive is not None and model.of_positions:
            raise InputError("positive is for classes; found a calibrator of positions. Leave it out.")
        logits = joined_batches(logits)
        probs = as_numpy(self.predict_proba(logits, dim=dim, from_probs=from_probs))
        rows, _ = logits_for(model, logits, from_probs)
        dim = axis_of_classes(model, dim, rows)
        opened = open_labelled(rows, labels, classes=names, dim=dim, ignore_index=ignore_index)
        warn_if_fitted_on(model, opened.checked(), "automate", "The promise would be too good")
        rule: Automation = loaders.load("automate")(
            probs,
            labels,
            max_error,
            delta,
            positive=positive,
            groups=groups,
            sample_weight=sample_weight,
            classes=names,
            positions=model.of_positions,
            dim=dim if probs.ndim == np.ndim(rows) else -1,  # of one score per row there are two classes
            ignore_index=ignore_index,
        )
        automated.model_ = replace(model, automation=rule)
        return automated

    def decide(
        self,
        logits: Any,
        costs: ArrayLike | None = None,
        *,
        return_costs: bool = False,
        dim: int | None = None,
        from_probs: bool | None = None,
    ) -> Any:
        """Return a decision on each row, as an array of columns: by the rule of `automate`, or by costs.

        By the rule, a decision is the predicted class where its probability is above the threshold, else -1:
        ask a person. With `positive`, it is this class or -1.

        Parameters
        ----------
        logits : as for `predict_proba`
        costs : array of shape (K, D), D >= K, optional
            costs[true class, decision]. The decision is the column of least expected cost: the first K are
            the classes, others your own, such as asking a person.
        return_costs : bool
            Whether to return the expected cost of each decision too.
        dim, from_probs : as for `predict_proba`

        Examples
        --------
        Missing class 1 costs 5, a false alarm 1, and asking a person 0.3 in both cases:

        >>> import temperance
        >>> task = temperance.data.simulate(n_rows=1000, n_classes=2)
        >>> cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
        >>> decisions, expected = cal.decide(
        ...     [[9.0, 0.0], [0.0, 0.5], [0.0, 9.0]], [[0, 1, 0.3], [5, 0, 0.3]], return_costs=True)
        >>> decisions
        array([0, 2, 1])
        """
        probs = self.predict_proba(logits, dim=dim, from_probs=from_probs)
        return decide(model_of(self), probs, axis_of_classes(model_of(self), dim, probs), costs, return_costs)

    def threshold_for(self, threshold: float, *, inverse: bool = False) -> float:
        """Return the threshold on the calibrated P(class 1) with the same decisions; for two classes.

        Parameters
        ----------
        threshold : float
            A threshold on the classifier's own probability of class 1: on the softmax of its logits.
        inverse : bool
            Whether `threshold` is on the calibrated probability, and the result on the classifier's.

        Notes
        -----
        Where calibrated probabilities do not rise with the classifier's, as a class bias or a bend can make
        them, no threshold gives the same decisions, and this raises an error.

        Examples
        --------
        >>> from temperance import TemperatureScaling
        >>> from temperance.data import simulate
        >>> task = simulate(n_rows=1000, n_classes=2, temperature=2.0)
        >>> cal = TemperatureScaling().fit(task.logits, task.labels)
        >>> new = cal.threshold_for(0.9)
        >>> round(new, 2), round(cal.threshold_for(new, inverse=True), 2)
        (0.72, 0.9)
        """
        moved: float = loaders.load("moved threshold")(model_of(self), threshold, inverse=inverse)
        return moved

    def summary(self) -> str:
        """Describe the fitted calibrator as text."""
        model = model_of(self)
        formula, *numbers = self._describe()
        columns = "positions" if model.of_positions else "classes"
        errors = "; \u00b1 is one standard error" if model.standard_errors else ""
        lines = [
            f"{type(self).__name__} ({key_of(self)})",
            formula,
            f"{model.n_classes} {columns}, fitted on {model.n_rows} rows{errors}",
            *filter(None, [groups_in_words(model)]),
            *numbers,
        ]
        if model.temperature_quantiles is not None:
            low, middle, high = model.temperature_quantiles
            if low < high:
                quantiles = f"{low:.3g} / {middle:.3g} / {high:.3g} (5% / median / 95%)"
                lines.append(f"T of the calibration rows: {quantiles}")
        lines.append(f"{self._loss_name()} of the calibration rows: {model.solution.value:.4f}")
        lines.append(f"solver: {model.solution.summary}")
        if model.log_prior_ratio is not None:
            lines.append(describe_adaptation(model, list(self.get_feature_names_out())))
        if model.automation is not None:
            lines.append(f"decisions: {model.automation.words} {model.automation.missed_in_words}".rstrip())
        lines += model.record.describe().splitlines()
        return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)

    def _repr_html_(self) -> str:
        html: str = loaders.load("calibrator html")(self)
        return html

    def _repr_mimebundle_(self, **formats: Any) -> dict[str, str]:
        # A notebook asks for this first; scikit-learn's own shows the options, not the fitted numbers.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _describe(self) -> list[str]:
        """Return the formula, and the lines of the summary about the fitted numbers, of any length."""
        numbers = self.parameters().items()
        return [type(self).__name__, *(f"{name} = {np.array2string(v, precision=4)}" for name, v in numbers)]

    def _loss_name(self) -> str:
        """Return what the fit minimised, for the summary."""
        return "NLL"

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
            loaded calibrator. Without it, a loaded calibrator keeps the notes of its file.
        overwrite : bool
            Whether to replace an existing file.
        """
        loaders.load("save")(model_of(self), path, metadata=metadata, overwrite=overwrite)

    def to_torch(self, dim: int | None = None, *, output: str = "logits") -> Any:
        """Return `transform` as a PyTorch module: `torch.nn.Sequential(model, cal.to_torch())`.

        With output="probabilities" it is `predict_proba`, which is the default of `to_onnx` and `temperance
        export`.
        `dim` is the axis of the classes: 1 for the (N, K, H, W) logits of pixels; by default the fit's. A
        calibrator of probabilities gives a module that takes these.
        """
        model = model_of(self)
        try:
            return loaders.load("torch module")(model, dim, output)
        except ImportError as error:
            raise ImportError('to_torch needs PyTorch: pip install "temperance[torch]"') from error

    def to_onnx(
        self,
        path: str | Path,
        *,
        dim: int | None = None,
        model: str | Path | None = None,
        classifier_output: str | None = None,
        output: str = "probabilities",
        kind: str | None = None,
        floor: float | None = None,
        keep: bool = False,
        dtype: Any = "float32",
        overwrite: bool = False,
    ) -> None:
        """Write `predict_proba` as an ONNX model, or a classifier with it at its end.

        Alone, it takes `logits` (batch, K) and gives `probabilities` (batch, K), both of type `dtype`; fitted
        on probabilities, it takes `probabilities` and gives `calibrated_probabilities`. With
        dim=1, the default if the fit had it, both are (batch, K, H, W). With output="logits" it gives
        `calibrated_logits`, as `transform`. Given the file of a classifier, `model`,
        it calibrates the logits in its `classifier_output`, which `probabilities` replace: see
        `temperance.onnx.append_to_onnx` for the options.
        """
        fitted = model_of(self)
        if model is not None:
            if dim is not None:
                raise InputError("dim is for a calibrator alone; found model=... Leave one of them out.")
            options: dict[str, Any] = {
                "classifier_output": classifier_output,
                "kind": kind,
                "floor": floor,
            }
            options |= {"keep": keep, "output": output, "overwrite": overwrite}
            loaders.load("onnx append")(fitted, model, path, **options)
        elif keep or any(option is not None for option in (classifier_output, kind, floor)):
            raise InputError(
                "classifier_output, kind, floor and keep are about a classifier: name its file with "
                "model=..., or leave them out."
            )
        else:
            options = {"dim": dim, "output": output, "dtype": dtype, "overwrite": overwrite}
            loaders.load("onnx model")(fitted, path, **options)

    def parameters(self) -> dict[str, AnyArray]:
        """Return the fitted numbers by name, as they are saved and exported."""
        return model_of(self).formula.arrays()


def _open_rows(
    logits: Any,
    labels: Any,
    sample_weight: Any,
    groups: Any,
    classes: Any,
    dim: int,
    ignore_index: int | None,
    from_probs: bool | None,
) -> tuple[FitData, tuple[str, ...] | None, int | None]:
    """Return the rows of a fit, the names of their classes if any, and their axis if it is not the last."""
    if framework_of(logits) != "dask":
        opened = open_labelled(
            logits, labels, sample_weight, classes=classes, dim=dim, ignore_index=ignore_index, groups=groups
        ).examined()
        if from_probs is None:
            check_are_logits(opened.logits)
        together = None if opened.groups is None else number_groups(opened.groups)
        if together is not None and opened.n_groups == len(opened):
            together = None  # each row is a group of its own
        return FitData(opened.checked(), opened.weights, together), opened.class_names, opened.dim
    if groups is not None:
        raise InputError(
            "groups are for arrays in memory; found a Dask collection. Pass logits.compute() and "
            "labels.compute(), perhaps of a sample of the groups."
        )
    if dim not in (-1, 1) or ignore_index is not None:
        raise InputError(
            "dim and ignore_index are for arrays in memory; found a Dask collection. Put the classes last "
            "and leave out the rows to be ignored before the fit."
        )
    names = names_of(logits, classes, logits.shape[1] if logits.ndim == 2 else 2)
    data: FitData = loaders.load("dask fit data")(logits, labels, sample_weight, names)
    return data, None if names is None else tuple(map(str, names)), None


def groups_in_words(model: Model) -> str:
    """Say how many groups the rows of a fit were in, and how many independent rows they are worth."""
    if model.n_groups is None or model.design_effect is None:
        return ""
    worth = float(f"{model.n_rows / model.design_effect:.2g}")
    return (
        f"{model.n_groups:,} groups; design effect {model.design_effect:.2g}: worth about {worth:,.0f} "
        "independent rows"
    )


def estimate(value: float, error: Vector | float | None) -> str:
    """Format a number and its standard error, if any; a standard error of 0 means: not identified."""
    if error is not None and float(error) == 0:
        return f"{value:.4g}, not identified by the rows"
    return f"{value:.4g}" if error is None else f"{value:.4g} \u00b1 {float(error):.2g}"


def confidence_in_words(temperature: float, n_classes: int) -> str:
    """Say what a single temperature means: of two classes, for the probability of either."""
    over, under = "the classifier is overconfident; its", "the classifier is underconfident; its"
    neither = "the classifier is neither over- nor underconfident on average"
    if n_classes == 2:
        over, under = "predictions are too extreme; the", "predictions are not extreme enough; the"
        neither = "the logits have the right scale on average"
    if temperature > 1.005:
        return f"{over} logits are {temperature:.3g} times too large"
    if temperature < 0.995:
        return f"{under} logits are {1 / temperature:.3g} times too small"
    return neither
