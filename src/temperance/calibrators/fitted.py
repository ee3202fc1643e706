"""The fitted model that a calibrator holds."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError

from temperance.formulas.model import Model


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
