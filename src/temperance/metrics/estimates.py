"""What `evaluate` returns: estimates by name, and their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass

_PERCENT = frozenset(
    {"accuracy", "aurc", "ece", "debiased_ece", "mce", "classwise_ece", "smooth_ece", "overconfidence"}
)


@dataclass(frozen=True)
class Estimate:
    """A metric's value on the rows given, with the ends of its interval.

    Attributes
    ----------
    value : float
        On all rows.
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
class Evaluation(Mapping[str, Estimate]):
    """All metrics of one set of predictions: a mapping from name to `Estimate`, printed as a table.

    Attributes
    ----------
    estimates : dict from str to Estimate
    n_rows, n_classes : int
        Size of what was evaluated; rows of weight 0 are not counted.
    bins : int
        Of the binned errors.
    confidence : float
        Level of the intervals.
    draws : int
        Bootstrap resamples behind them.

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
        return "\n".join([head, "", f"{'metric':<20}{'value':>12}{'low':>12}{'high':>12}", *lines])

    @staticmethod
    def shown(name: str, number: float) -> str:
        """Write a number for people: errors that are fractions in percent, losses as they are."""
        return f"{100 * number:.2f} %" if name in _PERCENT else f"{number:.4f}"

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return plain numbers in natural units, ready for JSON: name -> value, low, high."""
        return {name: asdict(estimate) for name, estimate in self.items()}
