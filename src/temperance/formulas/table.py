"""The formula of each method that a file can name, for predictions without the estimators.

The estimators name their own formula (`formula_type`); a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple

from temperance.formulas.bayes import BayesianFormula
from temperance.formulas.binwise import BinwiseFormula
from temperance.formulas.ensemble import EnsembleFormula
from temperance.formulas.linear_predictor import EntropyFormula, EntropyLinearFormula, LinearFormula
from temperance.formulas.model import Formula
from temperance.formulas.monotone import MonotoneFormula
from temperance.formulas.network import NetworkFormula
from temperance.formulas.temperature import SingleTemperatureFormula


class StoredMethod(NamedTuple):
    """A method as files refer to it: the name of its estimator, and its formula."""

    name: str
    formula: type[Formula]


STORED_METHODS: dict[str, StoredMethod] = {
    "ts": StoredMethod("TemperatureScaling", SingleTemperatureFormula),
    "lts": StoredMethod("LinearTemperatureScaling", LinearFormula),
    "hts": StoredMethod("EntropyTemperatureScaling", EntropyFormula),
    "hnlts": StoredMethod("EntropyLinearTemperatureScaling", EntropyLinearFormula),
    "pts": StoredMethod("ParametrizedTemperatureScaling", NetworkFormula),
    "bts": StoredMethod("BinwiseTemperatureScaling", BinwiseFormula),
    "ets": StoredMethod("EnsembleTemperatureScaling", EnsembleFormula),
    "mono": StoredMethod("MonotoneScaling", MonotoneFormula),
    "bayes": StoredMethod("BayesianTemperatureScaling", BayesianFormula),
}
"""Methods by the key in the field `method` of a file."""
