"""A calibrator file in a service: a small predictor that needs only NumPy.

    predictor = temperance.serving.load("cal.json")
    probs = predictor.predict_proba(logits)                   # or, fitted on probabilities:
    probs = predictor.predict_proba(probs, from_probs=True)

Its results are bit-identical to the estimator of `temperance.load`; it cannot be fitted or changed.
Loading it imports neither SciPy nor scikit-learn, which take ten times as long to import as NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from temperance.calibrator_file import opened, read_model
from temperance.errors import InputError
from temperance.formulas.automation import Automation, decide
from temperance.formulas.fit_record import FittedOn
from temperance.formulas.model import (
    Model,
    TemperatureFormula,
    apply,
    apply_to_rows,
    are_plain_rows,
    axis_of_classes,
)
from temperance.inputs.names import check_columns_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

__all__ = ["Predictor", "load"]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A fitted calibrator that only predicts; it is immutable and thread-safe.

    Logits are (N, K) arrays, or (N,) for a binary classifier, the logit of class 1. They can have more axes;
    the classes are on the axis of the fit, or the last. A calibrator that was fitted on probabilities takes
    these with from_probs=True, and rejects them as logits.

    Attributes
    ----------
    model : Model
        The fitted model: a frozen value.
    method : str
        The key of the method, such as "bayes".
    n_classes : int
        The number of columns of the logits.
    class_names : tuple of str or None
        The names of the classes, in the order of the columns, if the file has them.
    fitted_on : FittedOn or None
        How the rows of the fit were read: logits or probabilities, with the `floor` of these; if known.
    automation : Automation or None
        Which predictions need no person, if the file says so; `decide` follows it.

    Examples
    --------
    >>> import tempfile, pathlib, temperance
    >>> from temperance import serving
    >>> task = temperance.data.simulate(n_rows=500, n_classes=3)
    >>> calibrator = temperance.EntropyTemperatureScaling().fit(task.logits, task.labels)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.json"
    >>> calibrator.save(path)
    >>> predictor = serving.load(path)
    >>> predictor
    Predictor(method='hts', n_classes=3)
    >>> bool((predictor.predict_proba(task.logits) == calibrator.predict_proba(task.logits)).all())
    True
    """

    model: Model

    @property
    def method(self) -> str:
        """The key of the method."""
        return self.model.key

    @property
    def n_classes(self) -> int:
        """The number of columns of the logits."""
        return self.model.n_classes

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, in the order of the columns."""
        return self.model.record.class_names

    @property
    def fitted_on(self) -> FittedOn | None:
        """How the rows of the fit were read."""
        return self.model.record.fitted_on

    @property
    def automation(self) -> Automation | None:
        """Which predictions need no person."""
        return self.model.automation

    def predict_proba(self, logits: Any, *, from_probs: bool | None = None) -> Any:
        """Return calibrated probabilities, in the shape of the logits; (N, 2) for (N,) logits."""
        return self._apply("predict_proba", logits, from_probs)

    def transform(self, logits: Any, *, from_probs: bool | None = None) -> Any:
        """Return calibrated logits, or log-probabilities where the method has no temperature."""
        return self._apply("transform", logits, from_probs)

    def predict(self, logits: Any, *, from_probs: bool | None = None) -> Any:
        """Return the column of the predicted class of each row."""
        return self._apply("predict", logits, from_probs)

    def temperature(self, logits: Any, *, from_probs: bool | None = None) -> Any:
        """Return T(z) of each row."""
        if not isinstance(self.model.formula, TemperatureFormula):
            raise InputError(f"temperature needs a method that has one, such as ts; found {self.method}.")
        return self._apply("temperature", logits, from_probs)

    def decide(
        self,
        logits: Any,
        costs: ArrayLike | None = None,
        *,
        return_costs: bool = False,
        from_probs: bool | None = None,
    ) -> Any:
        """Return a decision on each row, as an array of columns: by the rule in the file, or by costs.

        By the rule (`Calibrator.automate`, `temperance automate`), it is the predicted class, or -1: ask a
        person. With costs[true class, decision], it is the column of least expected cost, whose first K
        columns are the classes; with return_costs=True, the expected costs are returned too.
        """
        probs = self.predict_proba(logits, from_probs=from_probs)
        return decide(self.model, probs, axis_of_classes(self.model, None, probs), costs, return_costs)

    def _apply(self, method: str, logits: Any, from_probs: bool | None) -> Any:
        if are_plain_rows(self.model, logits, None, from_probs):
            return apply_to_rows(self.model, method, logits)
        if not self.model.of_positions:
            names, expression = self.class_names, "predictor.class_names"
            check_columns_of(logits, names, self.n_classes, expression=expression)
        return apply(self.model, method, logits, from_probs=from_probs)

    def __repr__(self) -> str:
        return f"Predictor(method={self.method!r}, n_classes={self.n_classes})"


def load(path: str | Path) -> Predictor:
    """Read a calibrator file as a predictor.

    Parameters
    ----------
    path : path
        A calibrator file, as `Calibrator.save` and `temperance fit` write it.

    Examples
    --------
    >>> import tempfile, pathlib, temperance
    >>> task = temperance.data.simulate(n_rows=500, n_classes=3)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.json"
    >>> temperance.TemperatureScaling().fit(task.logits, task.labels).save(path)
    >>> load(path).predict([[2.0, 0.5, -1.0]])
    array([0])
    """
    with opened(path) as (content, method):
        return Predictor(read_model(content, method, content["options"]))
