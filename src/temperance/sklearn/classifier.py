"""A scikit-learn classifier with calibrated probabilities: `CalibratedClassifier`."""

from __future__ import annotations

import warnings
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from temperance.calibrators import Calibrator
from temperance.calibrators.external_methods import find_method, fit
from temperance.calibrators.fit_record import record_source
from temperance.core.arrays import Indices, Vector
from temperance.errors import InputError, InputWarning, excerpt
from temperance.formulas.fit_record import FittedOn
from temperance.inputs.containers import as_numpy, is_tensor, wrap_like
from temperance.inputs.groups import check_groups
from temperance.inputs.validation import check_choice, check_sample_weight
from temperance.sklearn.folds import (
    RESPONSES,
    Part,
    check_target,
    choose_response,
    columns_of,
    is_number_of_folds,
    keep_known,
    known_classes,
    log_floor,
    make_splitter,
    score,
    score_fold,
    split_rows,
    weights_for,
)


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are calibrated.

    A calibrator needs scores of held-out rows: on its own training rows every classifier looks better than it
    is. So the rows are split into folds. A copy of the estimator, trained on the other folds, scores each
    fold, and ONE calibrator is fitted to all these scores. Prediction averages the calibrated probabilities
    of these copies or, with `ensemble=False`, calibrates the scores of one more copy, trained on all rows.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier with `decision_function` or `predict_proba`; None is a logistic regression.
    calibrator : key, Calibrator, or any object with fit(logits, labels) and predict_proba(logits)
        A key of `temperance.CALIBRATORS`, or a calibrator of your own; it is copied. "bayes-bias" also
        corrects how often each class is predicted, which can change the predicted class; "bayes" keeps the
        class with the highest score of each classifier.
    cv : int, splitter, iterable of (train, test), or "prefit"
        An int is the number of stratified folds, in the order of the rows, and at most the number of rows of
        the largest class. With `groups`, all rows of a group are in one fold. Rows that a splitter tests more
        than once count once. "prefit" and a `FrozenEstimator` do not train the estimator, and use all rows to
        calibrate it.
    ensemble : "auto", True or False
        True averages the classifiers of the folds. False trains one classifier on all rows: prediction is
        faster, and "bayes" or "ts" keep its decisions. "auto" is True, unless X is a precomputed kernel,
        whose columns are the training rows. A fitted estimator is always one classifier.
    response : "auto", "decision_function" or "predict_proba"
        The method that provides the logits. "auto" is `decision_function` if there is one with one column per
        class (one score for two classes), else `predict_proba`.
    n_jobs : int, optional
        Number of folds trained in parallel, as in scikit-learn.

    Attributes
    ----------
    estimators_ : list of the fitted classifiers
        One per fold that was used; a single one without an ensemble.
    estimator_ : the fitted classifier, without an ensemble
    calibrator_ : the fitted calibrator, of all classifiers
    classes_ : (K,) array
        The labels, in the order of the columns.
    response_ : "decision_function" or "predict_proba"
    log_floor_ : float
        Smaller logarithms of probabilities are raised to this value; -inf for a decision function.
    n_rows_ : int
        Number of rows that the calibrator was fitted to.
    n_features_in_, feature_names_in_ : if the estimator has them.

    Notes
    -----
    The outputs of a decision function are used as logits. The margins of a support vector machine are not
    log-odds, but they order the rows, and a temperature gives them the scale that fits the labels best.
    One-vs-one scores (`decision_function_shape="ovo"`) are not supported.

    The logits of probabilities are their logarithms. The logarithm of 0 is not finite, and its replacement
    matters: forests and nearest neighbours return 0 where they mean less than one vote, and one error among
    such zeros would flatten all other rows. So all zeros of a row together count as at most half of the
    smallest probability above 0 in the calibration rows, each as this half divided by K. No probability
    counts as less than 2.2e-16, the precision of a float; naive Bayes returns smaller ones.

    A class can be too rare to be in all training folds. In the scores of a fold that lacks it, it is an
    impossible class (-inf) or, for a calibrator without support for masks, as unlikely as the least likely
    class of the row. Rows of that class in such a fold are not used for calibration, since no temperature can
    correct what the model cannot know. An ensemble gives a class that no fold trains on, as with
    `TimeSeriesSplit`, probability 0, or the probability of the least likely class; `ensemble=False` trains on
    all classes.

    scikit-learn's `CalibratedClassifierCV(ensemble=True)` fits one calibrator per fold, to the rows of that
    fold. A single calibrator for all folds is fitted to more rows, and has one `summary()`.

    `sample_weight` is passed to the estimator, if it accepts weights, and to the calibrator. Other arguments
    of `fit` are passed to the estimator; with metadata routing enabled, to the estimator and the splitter as
    requested. `groups` go to the splitter and to the calibrator; with metadata routing, pipelines and
    searches pass them on, unless you call `set_fit_request(groups=False)`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import log_loss
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from temperance import CalibratedClassifier
    >>> X, y = make_classification(n_samples=600, n_redundant=10, random_state=0)
    >>> round(log_loss(y[300:], GaussianNB().fit(X[:300], y[:300]).predict_proba(X[300:])), 2)
    0.41
    >>> model = CalibratedClassifier(GaussianNB(), "ts", cv=3).fit(X[:300], y[:300])
    >>> round(log_loss(y[300:], model.predict_proba(X[300:])), 2)
    0.23
    >>> round(model.calibrator_.temperature_, 1), len(model.estimators_)
    (2.9, 3)
    """

    __metadata_request__fit = MappingProxyType({"groups": True})  # as scikit-learn's group splitters do

    def __init__(
        self,
        estimator: Any = None,
        calibrator: Any = "bayes-bias",
        *,
        cv: Any = 5,
        ensemble: bool | str = "auto",
        response: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response = response
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any) -> Self:
        """Train the classifiers, and fit the calibrator to their scores of held-out rows.

        Parameters
        ----------
        X : input of the estimator
        y : (N,) labels of any type
        sample_weight : (N,) numbers >= 0, optional
            Passed to the estimator, if it accepts weights, and to the calibrator.
        groups : (N,) ids, optional
            Rows with the same id belong together, such as the images of a patient. Passed to the splitter and
            to the calibrator (`groups` of `Calibrator.fit`).
        **fit_params
            Passed to the estimator and, with metadata routing enabled, to the splitter.
        """
        check_choice("response", self.response, RESPONSES)
        if not isinstance(self.ensemble, bool) and self.ensemble != "auto":
            raise InputError(f"ensemble must be True, False or 'auto'; found {excerpt(self.ensemble)}.")
        calibrator = find_method(self.calibrator)()
        target = y if is_tensor(y) else None
        X, y = indexable(X, check_target(y))
        weights = check_sample_weight(None if sample_weight is None else as_numpy(sample_weight), len(y))
        together = None if groups is None else check_groups(as_numpy(groups), len(y))
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a failed fit leaves no attributes
        if isinstance(self.estimator, FrozenEstimator) or (isinstance(self.cv, str) and self.cv == "prefit"):
            parts = self._score_prefit(X, y, weights, fit_params)
        else:
            parts = self._score_folds(X, y, y if target is None else target, weights, together, fit_params)
        self._calibrate(calibrator, parts, columns_of(y, self.classes_), weights, together)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def set_params(self, **params: Any) -> Self:
        """Set options; names such as `estimator__C` set options of the estimator or of the calibrator."""
        calibrator = params.get("calibrator", self.calibrator)
        options = [name for name in params if name.startswith("calibrator__")]
        if options and isinstance(calibrator, str):
            raise InputError(
                f"{options[0]} needs a calibrator object; found the key {calibrator!r}. Pass "
                f"calibrator=temperance.make_calibrator({calibrator!r})."
            )
        return super().set_params(**params)

    def _get_estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        default = LogisticRegression()
        return default.set_fit_request(sample_weight=True) if _routing() else default

    def _score_prefit(
        self, X: Any, y: NDArray[Any], weights: Vector | None, fit_params: dict[str, Any]
    ) -> list[Part]:
        if fit_params:
            raise InputError(
                "a fitted estimator is not trained, so fit takes only X, y, sample_weight and groups; found "
                f"{', '.join(fit_params)}. Leave it out, or choose folds with cv."
            )
        if self.estimator is None:
            raise InputError("cv='prefit' needs a fitted estimator, but estimator is None. Pass one.")
        if hasattr(self.estimator, "fit"):  # otherwise it is a fitted model of another library
            check_is_fitted(self.estimator)
        classes = known_classes(self.estimator)
        labels = columns_of(y, classes)
        unknown = labels < 0
        if unknown.any():
            raise InputError(
                f"y must hold labels of the fitted estimator, such as {classes.tolist()[0]!r}; found "
                f"{y[unknown].tolist()[0]!r} ({unknown.sum()} such rows). Drop these rows, or check "
                "the type of y."
            )
        self.estimators_, self.classes_ = [self.estimator], classes
        self.response_ = choose_response(self.response, self.estimator, X, classes)
        scored = Part(np.arange(len(y)), *score(self.estimator, X, self.response_, classes))
        return keep_known([scored], labels, weights)

    def _score_folds(
        self,
        X: Any,
        y: NDArray[Any],
        target: Any,
        weights: Vector | None,
        groups: Indices | None,
        fit_params: dict[str, Any],
    ) -> list[Part]:
        n_classes = len(np.unique(y if weights is None else y[weights > 0]))
        if n_classes < 2:
            raise InputError(
                "a classifier needs rows of two or more classes, of weight > 0; found "
                f"{'one class' if n_classes else 'no rows'}. Check y."
            )
        estimator = self._get_estimator()
        splitter = make_splitter(self.cv, y, groups)
        for_split = {} if groups is None else {"groups": groups}
        if _routing():
            metadata = fit_params if groups is None else fit_params | {"groups": groups}
            routed = process_routing(self, "fit", sample_weight=weights, **metadata)
            for_fit = dict(routed.estimator.fit)
            if not is_number_of_folds(self.cv):
                for_split = routed.splitter.split
        else:
            for_fit = fit_params | weights_for(estimator, weights, fit_params)
        splits = split_rows(splitter, X, y, for_split)
        ensemble = self._averages(estimator)
        self.classes_ = np.unique(y)
        given = X, y, target, weights, for_fit, self.response, self.classes_, ensemble
        jobs = (delayed(score_fold)(clone(estimator), split, *given) for split in splits)
        parts = keep_known(Parallel(n_jobs=self.n_jobs)(jobs), columns_of(y, self.classes_), weights)
        if ensemble:
            self.estimators_ = [part.estimator for part in parts]
        else:
            self.estimators_ = [clone(estimator).fit(X, target, **for_fit)]
        self.response_ = choose_response(self.response, self.estimators_[0], X, self.classes_)
        return parts

    def _averages(self, estimator: Any) -> bool:
        """Return whether to average the classifiers of the folds."""
        pairwise = hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.pairwise
        if pairwise and self.ensemble is True:
            raise InputError(
                "ensemble must be False or 'auto' for a precomputed kernel, because the classifier of a fold "
                "knows only some of its columns; found True."
            )
        return bool(self.ensemble) and not pairwise

    def _calibrate(
        self,
        calibrator: Any,
        parts: list[Part],
        labels: Indices,
        weights: Vector | None,
        groups: Indices | None,
    ) -> None:
        rows = np.concatenate([part.rows for part in parts])
        by_probability = self.response_ == "predict_proba"
        self.log_floor_ = log_floor(parts, len(self.classes_)) if by_probability else -np.inf
        self.calibrator_ = calibrator
        logits = np.concatenate([self._logits_of(part.scores, part.columns) for part in parts])
        # A row that was scored more than once counts as one.
        shares = (1.0 if weights is None else weights[rows]) / np.bincount(rows)[rows]
        shares = None if (shares == 1).all() else shares
        together = None if groups is None or len(np.unique(groups[rows])) < 2 else groups[rows]
        with warnings.catch_warnings():
            if len(np.unique(rows)) < len(rows):  # the copies and their weights are ours
                warnings.simplefilter("ignore", InputWarning)
            fit(self.calibrator_, logits, labels[rows], shares, groups=together)
        if isinstance(self.calibrator_, Calibrator):  # it has only seen logits
            floor = float(np.exp(self.log_floor_))
            fitted_on = FittedOn("probabilities", floor) if by_probability else FittedOn("logits")
            names = [str(label) for label in self.classes_]
            self.calibrator_.model_ = record_source(self.calibrator_.model_, fitted_on, names)
        self.n_rows_ = len(np.unique(rows))

    def _logits_of(self, scores: Vector, columns: Indices) -> Vector:
        """Return the logits of all classes from the scores of the classes that a model knows."""
        scores = np.maximum(scores, self.log_floor_)
        masks = getattr(self.calibrator_, "supports_masked_classes", False)
        logits = np.empty((len(scores), len(self.classes_)))
        logits[:] = -np.inf if masks else scores.min(axis=1, keepdims=True)
        logits[:, columns] = scores
        return logits

    def _logits(self, X: Any) -> list[Vector]:
        """Return the logits of each classifier."""
        check_is_fitted(self)
        given = X, self.response_, self.classes_
        return [self._logits_of(*score(estimator, *given)) for estimator in self.estimators_]

    @property
    def estimator_(self) -> Any:
        """The fitted classifier, without an ensemble."""
        if len(self.estimators_) > 1:
            raise AttributeError(
                f"estimator_ exists only without an ensemble; this model averages {len(self.estimators_)} "
                "classifiers, which are in estimators_. Pass ensemble=False to train one classifier on all "
                "rows."
            )
        return self.estimators_[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest calibrated probability.

        Without an ensemble, a temperature keeps the class with the highest score; a class bias (`bayes-bias`)
        can change it. Some estimators, such as `SVC`, have a `predict` that can disagree with their scores;
        this method never does.
        """
        logits = self._logits(X)
        if len(logits) == 1 and hasattr(self.calibrator_, "predict"):  # where probabilities of 1 tie
            return _like(X, self.classes_[self.calibrator_.predict(logits[0])])
        return _like(X, self.classes_[np.argmax(self._mean_probs(logits), axis=1)])

    def predict_proba(self, X: Any) -> Vector:
        """Return the calibrated probabilities, (N, K), in the order of `classes_`."""
        return _like(X, self._mean_probs(self._logits(X)))

    def _mean_probs(self, logits: list[Vector]) -> Vector:
        return np.mean([self.calibrator_.predict_proba(one) for one in logits], axis=0)

    def _calibrated(self, X: Any) -> Vector:
        each = [self._transform(logits) for logits in self._logits(X)]
        if len(each) == 1:
            return each[0]
        return logsumexp([log_softmax(one, axis=1) for one in each], axis=0) - np.log(len(each))

    def _transform(self, logits: Vector) -> Vector:
        if hasattr(self.calibrator_, "transform"):
            return np.asarray(self.calibrator_.transform(logits))
        with np.errstate(divide="ignore"):
            return np.log(self.calibrator_.predict_proba(logits))

    def predict_log_proba(self, X: Any) -> Vector:
        """Return the logarithms of the calibrated probabilities, finite even where these underflow."""
        return _like(X, np.asarray(log_softmax(self._calibrated(X), axis=1)))

    def decision_function(self, X: Any) -> Vector:
        """Return the calibrated logits, (N, K); for two classes (N,), the log-odds of the second.

        The logits of an ensemble are the logarithms of its probabilities.
        """
        calibrated = self._calibrated(X)
        return _like(X, calibrated[:, 1] - calibrated[:, 0] if len(self.classes_) == 2 else calibrated)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the output of the transformers inside the estimator: "default", "pandas" or "polars".

        The labels and probabilities that this class returns are always arrays.
        """
        for estimator in (self.estimator, *getattr(self, "estimators_", ())):
            if hasattr(estimator, "set_output"):
                estimator.set_output(transform=transform)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_rows_")

    def get_metadata_routing(self) -> MetadataRouter:
        """Return scikit-learn's metadata routing."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping().add(caller="fit", callee="fit")
        split = MethodMapping().add(caller="fit", callee="split")
        router.add(estimator=self._get_estimator(), method_mapping=fit)
        return router.add(splitter=self.cv, method_mapping=split)

    def __sklearn_tags__(self) -> Any:
        tags, estimator = super().__sklearn_tags__(), self._get_estimator()
        if not hasattr(estimator, "__sklearn_tags__"):
            return tags
        inner = get_tags(estimator)
        tags.input_tags = deepcopy(inner.input_tags)
        tags.no_validation, tags.non_deterministic = inner.no_validation, inner.non_deterministic
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        return tags


def _like(X: Any, result: NDArray[Any]) -> Any:
    """Return numbers as a tensor if X is one and scikit-learn dispatches by the type of arrays."""
    dispatches = get_config()["array_api_dispatch"] and result.dtype.kind in "iufb"
    return wrap_like(X, result) if dispatches else result


def _routing() -> bool:
    return bool(get_config()["enable_metadata_routing"])
