"""Labels and folds: the rows that each model is trained on, and those that it scores."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, column_or_1d, has_fit_parameter

from temperance.core.arrays import Indices, Vector
from temperance.errors import InputError
from temperance.inputs.validation import check_number
from temperance.sklearn.scores import Part, score

Split = tuple[Indices, Indices]


def check_target(y: Any) -> NDArray[Any]:
    """Return `y` as an array of one label for each row, of a type that can be sorted."""
    if y is None:
        raise InputError("CalibratedClassifier requires y to be passed, but the target y is None.")
    # NumPy would make ["cat", nan, 1] three strings, and so three classes.
    labels = column_or_1d(np.array(y, object) if isinstance(y, (list, tuple)) else y, warn=True)
    if labels.dtype.kind == "O":
        _check_objects(labels)
        labels = np.array(labels.tolist()) if isinstance(y, (list, tuple)) else labels
    if labels.dtype.kind == "T":  # NumPy's StringDType, which scikit-learn does not support
        labels = labels.astype(object)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return np.asarray(labels)


def _check_objects(labels: NDArray[Any]) -> None:
    missing = [row for row, label in enumerate(labels) if _is_missing(label)]
    if missing:
        raise InputError(
            f"y must hold a label for each row; found {labels[missing[0]]!r} in row {missing[0]} "
            f"({len(missing)} such rows). Drop the rows without a label."
        )
    is_text = [isinstance(label, str) for label in labels]
    if any(is_text) and not all(is_text):
        text, other = labels[is_text.index(True)], labels[is_text.index(False)]
        raise InputError(
            f"the labels in y must be all text or all numbers; found {str(text)!r} and {other!r}. Convert "
            "them, for example with [str(label) for label in y]."
        )


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA is neither true nor false
        return True


def make_splitter(cv: Any, y: NDArray[Any]) -> Any:
    """Return the splitter that `cv` stands for."""
    if not (cv is None or isinstance(cv, (Integral, str))):
        return check_cv(cv, y, classifier=True)
    folds = 5 if cv is None else cv
    check_number("cv", folds, ">= 2, a splitter, or 'prefit'", lambda folds: folds >= 2, whole=True)
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        raise InputError(
            f"folds need a class with two or more rows; found {len(y)} rows of {len(y)} classes. Add rows, "
            "or calibrate a fitted estimator with cv='prefit'."
        )
    return StratifiedKFold(min(int(folds), largest))


def split_rows(splitter: Any, X: Any, y: NDArray[Any], params: dict[str, Any]) -> list[Split]:
    """Return the rows to train on and to score, fold by fold."""
    with warnings.catch_warnings():
        # A class that some folds lack is handled.
        warnings.filterwarnings("ignore", message="The least populated class in y")
        splits = [(_rows(train, y), _rows(test, y)) for train, test in splitter.split(X, y, **params)]
    if not any(len(test) for _, test in splits):
        raise InputError("cv must give folds with rows to score; found none. Pass a whole number, such as 5.")
    return splits


def _rows(index: Any, y: NDArray[Any]) -> Indices:
    """Return a splitter's choice of rows, which may be a mask, as indices."""
    chosen = np.asarray(index)
    try:
        return np.arange(len(y))[chosen if chosen.size else chosen.astype(np.intp)]
    except IndexError as error:
        raise InputError(
            f"cv must give row indices from 0 to {len(y) - 1}, or a mask of all rows; {error}. Make the "
            "folds from these rows."
        ) from None


def weights_for(estimator: Any, weights: Vector | None, fit_params: dict[str, Any]) -> dict[str, Any]:
    """Return the weights as an argument of the estimator's fit, if it takes them."""
    if weights is None:
        return {}
    if has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weights}
    if not any(name.endswith("__sample_weight") for name in fit_params):
        warnings.warn(
            f"the fit of {type(estimator).__name__} takes no sample_weight, so the weights only affect the "
            "calibration. For a pipeline pass them as step__sample_weight too, or enable metadata "
            "routing.",
            UserWarning,
            stacklevel=5,
        )
    return {}


def score_fold(
    estimator: Any,
    split: Split,
    X: Any,
    y: NDArray[Any],
    weights: Vector | None,
    fit_params: dict[str, Any],
    response: str,
    classes: NDArray[Any],
) -> Part:
    """Train on the training rows of a fold and score its test rows."""
    train, test = split
    counted = train if weights is None else train[weights[train] > 0]
    if len(np.unique(y[counted])) < 2:
        # A model of one class has no scores to calibrate, and most estimators refuse to fit one.
        return Part(test, np.empty((len(test), 0)), np.empty(0, np.intp))
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, _ = _safe_split(estimator, X, y, test, train)
    estimator.fit(X_train, y_train, **_check_method_params(X, params=fit_params, indices=train))
    return Part(test, *score(estimator, X_test, response, classes))
