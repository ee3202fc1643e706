"""How calibrators and comparisons show themselves in a notebook."""

from __future__ import annotations

from temperance.calibrators import Calibrator
from temperance.comparison import Comparison
from temperance.report.markup import element, text
from temperance.report.sections import methods_table


def comparison_html(comparison: Comparison) -> str:
    """Return the verdict and the table of methods."""
    verdict = element("p", element("b", text(comparison.verdict)), " ", text(comparison.reason))
    return element("div", verdict, methods_table(comparison))


def calibrator_html(calibrator: Calibrator) -> str:
    """Return what the calibrator is, and what it has learnt if it is fitted."""
    name = element("b", text(repr(calibrator)))
    if not hasattr(calibrator, "n_classes_"):
        return element("p", name, ", not fitted yet")
    return element("div", element("p", name), element("pre", text(calibrator.summary())))
