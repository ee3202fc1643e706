"""The scores of scikit-learn's classifiers, with their classes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from temperance.core.arrays import Indices, Vector
from temperance.errors import InputError
from temperance.inputs.probabilities import floor_below

RESPONSES = ("auto", "decision_function", "predict_proba")

# Warn if more than this share of the rows could not be used for calibration.
MANY = 0.1


@dataclass(frozen=True, eq=False)
class Part:
    """Scores of some rows by one model: a column for each class that it knows."""

    rows: Indices
    scores: Vector
    columns: Indices
    """The positions of the model's classes among all classes."""

    def keep(self, rows: NDArray[np.bool_]) -> Part:
        """Return some of the rows."""
        return Part(self.rows[rows], self.scores[rows], self.columns)


def known_classes(estimator: Any) -> NDArray[Any]:
    """Return the labels of a fitted estimator, in the order of its scores."""
    classes = getattr(estimator, "classes_", None)
    if classes is None or isinstance(classes, list):
        raise InputError(
            "estimator must be a classifier of one label for each row, with classes_ once it is fitted; "
            f"{type(estimator).__name__} is not."
        )
    return np.asarray(classes)


def columns_of(labels: NDArray[Any], classes: NDArray[Any]) -> Indices:
    """Return the position of each label in `classes`, in any order; -1 if it is missing."""
    # By Python's equality: NumPy would find the number 1 among strings.
    places = {label: place for place, label in enumerate(classes.tolist())}
    different, inverse = np.unique(labels, return_inverse=True)
    return np.array([places.get(label, -1) for label in different.tolist()], np.intp)[inverse]


def choose_response(wanted: str, estimator: Any, X: Any) -> str:
    """Return the method that the logits of a fitted estimator are made from."""
    name = type(estimator).__name__
    has = [method for method in RESPONSES[1:] if hasattr(estimator, method)]
    if not has:
        raise InputError(f"estimator must have decision_function or predict_proba; {name} has neither.")
    if wanted not in ("auto", *has):
        raise InputError(f"response must be a method of the estimator, or 'auto'; {name} has no {wanted}.")
    if wanted == "predict_proba" or "decision_function" not in has:
        return "predict_proba"
    if _has_score_for_each_class(estimator, X):
        return "decision_function"
    if wanted == "auto" and "predict_proba" in has:
        return "predict_proba"
    raise InputError(
        f"decision_function must give (N, K), a score for each class, or (N,) for two; that of {name} does "
        "not. Set decision_function_shape='ovr' in a support vector machine."
    )


def _has_score_for_each_class(estimator: Any, X: Any) -> bool:
    n_classes = len(known_classes(estimator))
    if n_classes == 2:
        return True
    # Three classes have three pairs, so the shape alone does not show it.
    options = estimator.get_params() if hasattr(estimator, "get_params") else {}
    shapes = [value for name, value in options.items() if name.endswith("decision_function_shape")]
    shape = np.shape(estimator.decision_function(_safe_indexing(X, slice(1))))
    return "ovo" not in shapes and len(shape) == 2 and shape[1] == n_classes


def score(estimator: Any, X: Any, response: str, classes: NDArray[Any]) -> tuple[Vector, Indices]:
    """Return the scores (n, k) of a fitted estimator, and the columns of their classes among all."""
    known = known_classes(estimator)
    columns = columns_of(known, classes)
    if (columns < 0).any():
        raise InputError(
            f"the estimator must name its classes as y does; {type(estimator).__name__} has "
            f"{known[columns < 0].tolist()[0]!r} in its classes_, which is not in y."
        )
    scores = np.asarray(getattr(estimator, response)(X), np.float64)
    if response == "predict_proba":
        scores = _logarithms(scores, estimator)
    elif scores.shape[1:] in ((), (1,)):
        odds = scores.ravel()
        scores = np.column_stack([np.zeros_like(odds), odds])
    if scores.shape[1:] != known.shape:
        raise InputError(
            f"{response} must give a score for each class; found shape {scores.shape} for "
            f"{len(known)} classes."
        )
    return scores, columns


def _logarithms(probs: Vector, estimator: Any) -> Vector:
    wrong = probs[~((probs >= 0) & (probs <= 1 + 1e-6))]
    if wrong.size:
        raise InputError(
            f"predict_proba must give numbers from 0 to 1; that of {type(estimator).__name__} gave "
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
    if left_out > MANY * n_scored:
        warnings.warn(
            f"{left_out} of {n_scored} rows are not used for calibration: the model that scored them "
            "was not trained on their class. Use stratified folds, or merge rare classes.",
            UserWarning,
            stacklevel=4,
        )
    return [part for part in known if len(part.rows)]


def _count(parts: list[Part]) -> int:
    return len(np.unique(np.concatenate([part.rows for part in parts])))
