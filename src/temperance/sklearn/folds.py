"""Labels and folds, and the scores of scikit-learn classifiers with their classes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, column_or_1d, has_fit_parameter

from temperance.core.arrays import Indices, Vector
from temperance.errors import InputError
from temperance.inputs.containers import as_numpy, is_tensor
from temperance.inputs.probabilities import floor_below
from temperance.inputs.validation import check_number

Split = tuple[Indices, Indices]
RESPONSES = ("auto", "decision_function", "predict_proba")


def check_target(y: Any) -> NDArray[Any]:
    """Return `y` as an array of one label per row, of a sortable type."""
    if y is None:
        raise InputError("CalibratedClassifier requires y to be passed, but the target y is None.")
    y = as_numpy(y) if is_tensor(y) else y
    # NumPy would turn ["cat", nan, 1] into three strings, and so into three classes.
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
            f"y must have a label in every row; found {labels[missing[0]]!r} in row {missing[0]} "
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


def is_number_of_folds(cv: Any) -> bool:
    """Say whether `cv` is a number of folds, not a splitter."""
    return cv is None or isinstance(cv, (Integral, str))


def make_splitter(cv: Any, y: NDArray[Any], groups: Indices | None = None) -> Any:
    """Return the splitter for `cv`; all rows of a group are in one fold."""
    if not is_number_of_folds(cv):
        return check_cv(cv, y, classifier=True)
    folds = 5 if cv is None else cv
    check_number("cv", folds, ">= 2, a splitter, or 'prefit'", lambda folds: folds >= 2, whole=True)
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        raise InputError(
            f"folds need a class with two or more rows; found {len(y)} rows of {len(y)} classes. Add rows, "
            "or calibrate a fitted estimator with cv='prefit'."
        )
    if groups is None:
        return StratifiedKFold(min(int(folds), largest))
    return StratifiedGroupKFold(min(int(folds), largest, len(np.unique(groups))))


def split_rows(splitter: Any, X: Any, y: NDArray[Any], params: dict[str, Any]) -> list[Split]:
    """Return the rows to train on and to score, fold by fold."""
    with warnings.catch_warnings():
        # Classes that some folds lack are supported.
        warnings.filterwarnings("ignore", message="The least populated class in y")
        splits = [(_rows(train, y), _rows(test, y)) for train, test in splitter.split(X, y, **params)]
    if not any(len(test) for _, test in splits):
        raise InputError("cv gives no fold with rows to score. Pass a whole number, such as 5.")
    return splits


def _rows(index: Any, y: NDArray[Any]) -> Indices:
    """Return a splitter's choice of rows, indices or a mask, as indices."""
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
            "calibration. For a pipeline, also pass them as step__sample_weight, or enable metadata "
            "routing.",
            UserWarning,
            stacklevel=4,
        )
    return {}


@dataclass(frozen=True, eq=False)
class Part:
    """Scores of some rows by one model: one column per class that it knows."""

    rows: Indices
    scores: Vector
    columns: Indices
    """The positions of the model's classes among all classes."""
    estimator: Any = None
    """The model, if it is kept."""

    def keep(self, rows: NDArray[np.bool_]) -> Part:
        """Return some of the rows."""
        return replace(self, rows=self.rows[rows], scores=self.scores[rows])


def known_classes(estimator: Any) -> NDArray[Any]:
    """Return the labels of a fitted estimator, in the order of its scores."""
    classes = getattr(estimator, "classes_", None)
    if classes is None or isinstance(classes, list):
        raise InputError(
            "estimator must be a classifier with one label per row, and have classes_ after fitting; "
            f"{type(estimator).__name__} does not."
        )
    return as_numpy(classes)


def columns_of(labels: NDArray[Any], classes: NDArray[Any]) -> Indices:
    """Return the position of each label in `classes`, in any order; -1 if it is missing."""
    # By Python's equality: NumPy would find the number 1 among strings.
    places = {label: place for place, label in enumerate(classes.tolist())}
    different, inverse = np.unique(labels, return_inverse=True)
    return np.array([places.get(label, -1) for label in different.tolist()], np.intp)[inverse]


def choose_response(wanted: str, estimator: Any, X: Any, classes: NDArray[Any]) -> str:
    """Return the method that provides a fitted estimator's logits, the same in all folds."""
    name = type(estimator).__name__
    has = [method for method in RESPONSES[1:] if hasattr(estimator, method)]
    if not has:
        raise InputError(f"estimator must have decision_function or predict_proba; {name} has neither.")
    if wanted not in ("auto", *has):
        raise InputError(f"response must be a method of the estimator, or 'auto'; {name} has no {wanted}.")
    if wanted == "predict_proba" or "decision_function" not in has:
        return "predict_proba"
    if len(classes) == 2 or _has_score_for_each_class(estimator, X):
        return "decision_function"
    if wanted == "auto" and "predict_proba" in has:
        return "predict_proba"
    raise InputError(
        f"the decision_function of {name} must return (N, K), one score per class, or (N,) for two classes. "
        "Set decision_function_shape='ovr' in a support vector machine."
    )


def _has_score_for_each_class(estimator: Any, X: Any) -> bool:
    # Three classes have three pairs, so the shape does not tell classes from pairs.
    options = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if "ovo" in [value for name, value in options.items() if name.endswith("decision_function_shape")]:
        return False
    n_classes = len(known_classes(estimator))  # a fold can lack some classes
    shape = np.shape(estimator.decision_function(_safe_indexing(X, slice(1))))
    return n_classes == 2 or shape[1:] == (n_classes,)


def score(estimator: Any, X: Any, response: str, classes: NDArray[Any]) -> tuple[Vector, Indices]:
    """Return the scores (n, k) of a fitted estimator, and the columns of their classes among all."""
    known = known_classes(estimator)
    columns = columns_of(known, classes)
    if (columns < 0).any():
        raise InputError(
            f"the estimator must name its classes as y does; {type(estimator).__name__} has "
            f"{known[columns < 0].tolist()[0]!r} in its classes_, which is not in y."
        )
    scores = np.asarray(as_numpy(getattr(estimator, response)(X)), np.float64)
    if response == "predict_proba":
        scores = _logarithms(scores, estimator)
    elif scores.shape[1:] in ((), (1,)):
        odds = scores.ravel()
        scores = np.column_stack([np.zeros_like(odds), odds])
    if scores.shape[1:] != known.shape:
        raise InputError(
            f"{response} must return one score per class; found shape {scores.shape} for "
            f"{len(known)} classes."
        )
    return scores, columns


def _logarithms(probs: Vector, estimator: Any) -> Vector:
    wrong = probs[~((probs >= 0) & (probs <= 1 + 1e-6))]
    if wrong.size:
        raise InputError(
            f"predict_proba must return numbers from 0 to 1; {type(estimator).__name__} returned "
            f"{wrong[0]}. Correct the estimator, or choose another response."
        )
    with np.errstate(divide="ignore"):
        return np.log(probs)


def log_floor(parts: list[Part], n_classes: int) -> float:
    """Return the value that replaces the logarithm of 0, and of probabilities below the floor."""
    smallest = min(part.scores[np.isfinite(part.scores)].min() for part in parts)
    return float(np.log(floor_below(float(np.exp(smallest)), n_classes)))


def keep_known(parts: list[Part], labels: Indices, weights: Vector | None) -> list[Part]:
    """Leave out rows of weight 0, and rows whose label is unknown to the model that scored them."""
    if weights is not None:
        parts = [part.keep(weights[part.rows] > 0) for part in parts]
    n_scored = _count(parts)
    known = [part.keep(np.isin(labels[part.rows], part.columns)) for part in parts]
    left_out = n_scored - _count(known)
    if left_out == n_scored:
        raise InputError(
            f"none of {n_scored} rows can be used to calibrate: no training fold has the classes of its test "
            "fold. Use stratified folds, or add rows."
        )
    if left_out > 0.1 * n_scored:  # too many to stay silent
        warnings.warn(
            f"{left_out} of {n_scored} rows are not used for calibration: the model that scored them "
            "was not trained on their class. Use stratified folds, or merge rare classes.",
            UserWarning,
            stacklevel=4,
        )
    return [part for part in known if len(part.rows)]


def _count(parts: list[Part]) -> int:
    return len(np.unique(np.concatenate([part.rows for part in parts])))


def score_fold(
    estimator: Any,
    split: Split,
    X: Any,
    y: NDArray[Any],
    target: Any,
    weights: Vector | None,
    fit_params: dict[str, Any],
    response: str,
    classes: NDArray[Any],
    keep: bool,
) -> Part:
    """Train on the training rows of a fold and score its test rows; `keep` also returns the model.

    `target` is y in the container for the estimator, which can be a tensor, as X can.
    """
    train, test = split
    counted = train if weights is None else train[weights[train] > 0]
    if len(np.unique(y[counted])) < 2:
        # A model of one class has no scores to calibrate, and most estimators cannot fit one.
        return Part(test, np.empty((len(test), 0)), np.empty(0, np.intp))
    X_train, y_train = _safe_split(estimator, X, target, train)
    X_test, _ = _safe_split(estimator, X, target, test, train)
    estimator.fit(X_train, y_train, **_check_method_params(X, params=fit_params, indices=train))
    method = choose_response(response, estimator, X_test, classes)
    return Part(test, *score(estimator, X_test, method, classes), estimator if keep else None)
