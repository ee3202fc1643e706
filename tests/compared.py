"""The methods of a comparison, and those of them that property tests run over."""

from temperance import CALIBRATORS

COMPARED = [key for key, method in CALIBRATORS.items() if method.in_comparison]
CLASS_KEEPING = [key for key in COMPARED if CALIBRATORS[key].keeps_class]
"""Methods for which the property tests check that no decision changes; `bayes-bias` has its own tests."""
