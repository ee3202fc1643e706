"""The formula of each method that a file can name, for predictions without the estimators.

The estimators name their own formula (`formula_type`); a test compares the two. A formula is imported when a
file needs it: a service waits for what it loads.
"""

from __future__ import annotations

from typing import NamedTuple

from temperance.formulas.model import Formula
from temperance.loaders import load_object


class StoredMethod(NamedTuple):
    """A method as files refer to it: the name of its estimator, and where its formula is."""

    name: str
    place: str

    @property
    def formula(self) -> type[Formula]:
        """The formula of the method."""
        found: type[Formula] = load_object(f"temperance.formulas.{self.place}")
        return found


STORED_METHODS: dict[str, StoredMethod] = {
    "ts": StoredMethod("TemperatureScaling", "temperature:SingleTemperatureFormula"),
    "lts": StoredMethod("LinearTemperatureScaling", "linear_predictor:LinearFormula"),
    "hts": StoredMethod("EntropyTemperatureScaling", "linear_predictor:EntropyFormula"),
    "hnlts": StoredMethod("EntropyLinearTemperatureScaling", "linear_predictor:EntropyLinearFormula"),
    "pts": StoredMethod("ParametrizedTemperatureScaling", "network:NetworkFormula"),
    "bts": StoredMethod("BinwiseTemperatureScaling", "binwise:BinwiseFormula"),
    "ets": StoredMethod("EnsembleTemperatureScaling", "ensemble:EnsembleFormula"),
    "mono": StoredMethod("MonotoneScaling", "monotone:MonotoneFormula"),
    "bayes": StoredMethod("BayesianTemperatureScaling", "bayes:BayesianFormula"),
}
"""Methods by the key in the field `method` of a file."""
