"""What `evaluate` returns: estimates by name, and their table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from temperance import loaders

_PERCENT = frozenset(
    {"accuracy", "aurc", "ece", "debiased_ece", "mce", "classwise_ece", "smooth_ece", "overconfidence"}
)


@dataclass(frozen=True)
class Estimate:
    """A metric's value on the rows given, with the ends of its interval.

    Attributes
    ----------
    value : float
        Value on all rows.
    low, high : float
        Ends of the interval.

    Examples
    --------
    >>> from temperance.metrics import evaluate
    >>> nll = evaluate([[0.9, 0.1], [0.2, 0.8]] * 20, [0, 1] * 20, draws=20)["nll"]
    >>> nll.low <= nll.value <= nll.high
    True
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CalibrationTest:
    """A test of calibration, with the null hypothesis "calibrated".

    Attributes
    ----------
    statistic : float
        The test statistic.
    p_value : float
        P-value of the null hypothesis.
    words : str
        The result in words.

    Examples
    --------
    >>> CalibrationTest(1.2, 0.23, "z = 1.20, p = 0.230: compatible with calibration.").p_value
    0.23
    """

    statistic: float
    p_value: float
    words: str


@dataclass(frozen=True)
class Evaluation(Mapping[str, Estimate]):
    """All metrics of one set of predictions: a mapping from name to `Estimate`, printed as a table.

    Attributes
    ----------
    estimates : dict from str to Estimate
    n_rows, n_classes : int
        Size of what was evaluated; rows of weight 0 are not counted.
    bins : int
        Number of bins of the calibration errors.
    confidence : float
        Level of the intervals.
    draws : int
        Bootstrap resamples behind them.
    tests : dict from str to CalibrationTest
        Tests of calibration of the top label; not part of the mapping.

    Examples
    --------
    >>> result = Evaluation({"ece": Estimate(0.02, 0.01, 0.03)}, 100, 3, 15, 0.95, 1000)
    >>> result["ece"].value, list(result)
    (0.02, ['ece'])
    >>> print(result)
    100 rows, 3 classes, 15 bins; 95 % intervals from 1000 resamples
    <BLANKLINE>
    metric                     value         low        high
    ece                       2.00 %      1.00 %      3.00 %
    """

    estimates: dict[str, Estimate]
    n_rows: int
    n_classes: int
    bins: int
    confidence: float
    draws: int
    tests: Mapping[str, CalibrationTest] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __str__(self) -> str:
        head = (
            f"{self.n_rows} rows, {self.n_classes} classes, {self.bins} bins; "
            f"{100 * self.confidence:g} % intervals from {self.draws} resamples"
        )
        lines = [
            f"{name:<20}" + "".join(f"{self.shown(name, number):>12}" for number in astuple(estimate))
            for name, estimate in self.items()
        ]
        table = [head, "", f"{'metric':<20}{'value':>12}{'low':>12}{'high':>12}", *lines]
        return "\n".join([*table, *(["", *self._test_lines()] if self.tests else [])])

    def _test_lines(self) -> list[str]:
        rows = [("test of calibration", "statistic", "p-value"), *self.shown_tests()]
        lines = [f"{name:<20}{statistic:>12}{p_value:>12}" for name, statistic, p_value in rows]
        cox = self.tests.get("cox")
        return lines if cox is None else [*lines, "", *textwrap.wrap(f"Cox: {cox.words}", 80)]

    def shown_tests(self) -> list[tuple[str, str, str]]:
        """Return name, statistic and p-value of each test as a table shows them."""
        return [
            (name, f"{test.statistic:.2f}", f"{test.p_value:.3f}" if test.p_value >= 0.001 else "< 0.001")
            for name, test in self.tests.items()
        ]

    @staticmethod
    def shown(name: str, number: float) -> str:
        """Format a number: fractions in percent, losses unchanged, "-" if unknown."""
        if number != number:
            return "-"
        return f"{100 * number:.2f} %" if name in _PERCENT else f"{number:.4f}"

    def _repr_html_(self) -> str:
        html: str = loaders.load("evaluation html")(self)
        return html

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Return plain numbers in natural units, ready for JSON: name -> value, low, high; None for nan."""
        return {name: _without_nan(asdict(estimate)) for name, estimate in self.items()}

    def tests_to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the tests as plain numbers, ready for JSON: name -> statistic, p_value, words and others."""
        return {name: _without_nan(asdict(test)) for name, test in self.tests.items()}


def _without_nan(fields: dict[str, Any]) -> dict[str, Any]:
    """Return None for nan, which JSON does not have."""
    return {
        name: _without_nan(value) if isinstance(value, dict) else None if value != value else value
        for name, value in fields.items()
    }
