"""What is compared, and on what: methods with their adapters and environments, and the sizes of the tasks.

`make bench-peers` makes the environment of LIBRARY in build/peers/LIBRARY from requirements/LIBRARY.txt.
"""

from __future__ import annotations

from typing import NamedTuple


class Contender(NamedTuple):
    """A method of a library."""

    library: str
    method: str
    adapter: str
    single_temperature: bool = True
    n_classes: int | None = None  # the only number of classes that it takes

    @property
    def key(self) -> str:
        """Return the name of its folder of results."""
        return f"{self.library}--{self.method}"

    @property
    def label(self) -> str:
        """Return its name in a table."""
        return f"{self.library} `{self.method}`"


OURS = "temperance_estimators"
REFERENCE = Contender("temperance", "ts", OURS)
CONTENDERS = (
    REFERENCE,
    Contender("temperance-fast", "ts", OURS),  # with the extra `fast`
    Contender("temperance", "hts", OURS, single_temperature=False),
    Contender("temperance", "bayes", OURS, single_temperature=False),
    Contender("scipy", "minimize_scalar", "scipy_minimize"),
    Contender("scikit-learn", "temperature", "scikit_learn"),
    Contender("probmetrics", "temp-scaling", "probmetrics_temperature"),
    Contender("netcal", "TemperatureScaling", "netcal_temperature"),
    Contender("torch-uncertainty", "TemperatureScaler", "torch_uncertainty_scaler"),
    Contender(
        "calibre", "NearlyIsotonicRegression", "calibre_isotonic", single_temperature=False, n_classes=2
    ),
)

SIZES = ((200, 10), (2_000, 2), (2_000, 10), (10_000, 10), (10_000, 100), (50_000, 1_000))
LARGEST = SIZES[-1]  # fitted once, with one thread
MEASUREMENTS = [(1, size) for size in SIZES] + [(2, size) for size in SIZES if size != LARGEST]


def name_of(size: tuple[int, int]) -> str:
    """Return the name of a task's files."""
    return f"{size[0]}x{size[1]}"
