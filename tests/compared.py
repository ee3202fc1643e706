"""The methods that property tests run over: those of a comparison. Variants only fix options of these."""

from temperance import CALIBRATORS

COMPARED = [key for key, method in CALIBRATORS.items() if method.in_comparison]
