"""A fitted calibrator's methods on logits, in whatever container and shape they come."""

from __future__ import annotations

from typing import Any

from temperance import loaders
from temperance.calibrators.fitted import model_of
from temperance.calibrators.output import OutputMixin
from temperance.formulas.applying import apply_opened, apply_to_rows
from temperance.inputs.containers import (
    check_column_names,
    column_names,
    framework_of,
    is_matrix,
    open_logits,
)
from temperance.inputs.validation import warn_of_probabilities


class PredictMixin(OutputMixin):
    """What a calibrator gives for logits, with `dim` the axis of the classes."""

    def transform(self, logits: Any, *, dim: int = -1) -> Any:
        """Return calibrated logits, in the shape of the input: z / T(z), or log-probabilities.

        ETS, bayes and adapted calibrators give log-probabilities.
        For the (N,) logits of a binary classifier, the log-odds of class 1.
        """
        result = self._apply("transform", logits, dim)
        return result if framework_of(logits) or dim not in (-1, 1) else self._tabled(result, logits)

    def predict_proba(self, logits: Any, *, dim: int = -1) -> Any:
        """Return calibrated probabilities, (N, K), or in the shape of logits with more axes."""
        return self._apply("predict_proba", logits, dim)

    def predict(self, logits: Any, *, dim: int = -1) -> Any:
        """Return the column of the predicted class, (N,), or the shape of the logits without the axis `dim`.

        A temperature or a map keeps the class of the largest logit, the classifier's own. With a class bias
        (`class_bias`, `bayes-bias`), or after `adapt`, it is the class of the largest calibrated probability,
        which may be another one.
        """
        return self._apply("predict", logits, dim)

    def _apply(self, method: str, logits: Any, dim: int = -1) -> Any:
        """Return what `method` gives for these logits, in a container like theirs."""
        model = model_of(self)
        if is_matrix(logits, model.n_classes) and dim in (-1, 1):  # no container to open, as for single rows
            warn_of_probabilities(logits)
            return apply_to_rows(model, method, logits)
        self._check_names(logits)
        framework = framework_of(logits)
        if framework is not None:
            return loaders.load(f"{framework} apply")(model, method, logits, dim)
        opened = open_logits(logits, dim)
        warn_of_probabilities(opened.values)
        return apply_opened(model, method, opened)

    def _check_names(self, logits: Any) -> None:
        """Raise if a data frame has other columns than the logits of the fit."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            # A file keeps the names of the classes, which need not be those of the columns.
            names = getattr(self, "class_names_", None)
            columns = column_names(logits)
            if columns is None or names is None or not {*names} & {*columns}:
                return
        check_column_names(names, logits)

    def _check_fitted(self) -> None:
        model_of(self)
