"""The terms on the page and their meaning."""

from __future__ import annotations

from markupsafe import Markup

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, Method
from temperance.metrics import METRICS
from temperance.report.markup import element

_MEANINGS = {
    **{metric.label: metric.help for metric in METRICS.values() if metric.tables != "evaluation"},
    "confidence": "the probability of the predicted class",
    "temperature T": "the number by which logits are divided: above 1 if the classifier is overconfident",
    "log entropy": "uncertainty of a row: 0 if all classes are equally likely, very low if one is certain",
    "standard error": "of the mean difference of two methods over the same rows",
    "gain that matters": "an NLL lower by at least 1 % and two standard errors; 2 % if decisions change",
    "decision": "the class with the highest probability",
}

_VARIANTS = {
    "pts-ece": "fitted to the ECE, not to the NLL",
    "bayes-bias": "and with a bias for each class, which may change decisions",
}


def glossary() -> Markup:
    """Return the terms on the page, and the methods by their keys."""
    words = {
        **_MEANINGS,
        **{key: _about(method) for key, method in CALIBRATORS.items() if method.in_comparison},
        UNCALIBRATED: "the classifier as it is",
    }
    return element("dl", *(element("dt", k) + element("dd", v) for k, v in words.items()))


def _about(method: Method) -> str:
    """Return what a method does; one class may have several methods."""
    variant = _VARIANTS.get(method.key)
    return method.summary if variant is None else f"{method.summary}, {variant}"
