"""The container of calibrated logits, where a user of scikit-learn has asked for data frames.

`set_output(transform="pandas")`, or scikit-learn's own setting `transform_output`, makes `transform` give a
table with the columns and the index of its input. scikit-learn would do this by wrapping `transform`, but its
wrapper supports neither tensors nor the keyword `logits`, so only its table adapters are used here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config

from temperance.errors import InputError
from temperance.inputs.validation import check_choice


class OutputMixin(ABC):
    """scikit-learn's `set_output` and `get_feature_names_out`, for calibrators."""

    n_classes_: int
    feature_names_in_: NDArray[np.object_]
    """The names of the columns, if the logits of the fit had names that are text."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns: "default" (like its input), "pandas" or "polars".

        A table has the columns and, with pandas, the index of the logits. Tensors, Dask arrays and the (N,)
        logits of a binary classifier are returned as usual.
        """
        if transform is not None:
            check_choice("transform", transform, tuple(sorted(ADAPTERS_MANAGER.supported_outputs)))
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The names of the classes, in the order of the columns; their numbers if they have no names."""
        self._check_fitted()
        names = getattr(self, "class_names_", None)
        return np.arange(self.n_classes_) if names is None else np.array(names)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns: those of the logits of the fit, else those in `classes_`."""
        self._check_fitted()
        if input_features is None:
            return getattr(self, "feature_names_in_", self.classes_.astype(str).astype(object))
        names = np.asarray(input_features, object)
        if names.shape != (self.n_classes_,):
            raise InputError(
                f"input_features must be one name for each of {self.n_classes_} classes; found "
                f"{names.tolist()}."
            )
        return names

    @abstractmethod
    def _check_fitted(self) -> None:
        """Raise unless the calibrator is fitted."""

    def _tabled(self, result: Any, logits: Any) -> Any:
        """Return calibrated logits in the requested table, if any."""
        wanted = _get_output_config("transform", self)["dense"]
        if wanted == "default" or not isinstance(result, np.ndarray) or result.ndim != 2:
            return result
        columns = getattr(logits, "columns", None)
        names = self.get_feature_names_out() if columns is None else columns
        return ADAPTERS_MANAGER.adapters[wanted].create_container(result, logits, columns=names)
