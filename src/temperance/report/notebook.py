"""How calibrators and comparisons show themselves in a notebook."""

from __future__ import annotations

from temperance.calibrators import Calibrator
from temperance.comparison import Comparison
from temperance.report.markup import element
from temperance.report.sections import methods_table


def comparison_html(comparison: Comparison) -> str:
    """Return the verdict and the table of methods."""
    verdict = element("p", element("b", str(comparison.verdict)), " ", comparison.reason)
    return str(element("div", verdict, methods_table(comparison)))


def calibrator_html(calibrator: Calibrator) -> str:
    """Return what the calibrator is, and what it has learnt if it is fitted."""
    name = element("b", repr(calibrator))
    if not hasattr(calibrator, "n_classes_"):
        return str(element("p", name, ", not fitted yet"))
    return str(element("div", element("p", name), element("pre", calibrator.summary())))
