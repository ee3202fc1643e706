"""The paper's four figures of one task: what temperatures a method gives, and which would be best.

The methods are fitted anew, to all validation rows and to the study's own subsamples of few; best are the
temperatures of TS fitted to groups of test rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrators import TemperatureCalibrator, method_style
from temperance.calibrators.linear_predictor import log_normalised_entropy
from temperance.core.arrays import Indices, Vector
from temperance.display import ClassTemperatureDisplay, TemperatureDisplay, colour_of, marker_of
from temperance.display.optima import LEAST_ROWS, as_rows, temperatures
from temperance.display.temperature_axes import Whiskers
from temperance.study.protocol import WorkUnit
from temperance.study.results import Results
from temperance.study.tasks import LoadedTask, TaskFile, load_task
from temperance.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Shown = ClassTemperatureDisplay | TemperatureDisplay

_FEW = 200  # the paper's
_BINS = 20
_LINES = 10  # draws of few rows, of a method that is a line
_LINE_POINTS = 200
_MOST_DOTS = 20_000
_RARE = 0.01  # of the dots may lie outside the axes: the odd one would flatten all else
_SURE = 2.0  # high over low of an interval that the axes must hold
_BEST: dict[str, Any] = {"color": "black", "linewidth": 0.8, "capsize": 2, "fmt": "o", "markersize": 3}


@dataclass(frozen=True, eq=False)
class ClassTemperatures:
    """T of LTS against the best, by true class of the test rows; T of TS, which is one for all."""

    shown: ClassTemperatureDisplay
    ts: float
    rows: int

    @property
    def lts(self) -> Vector:
        """Mean T of the test rows of each class."""
        return self.shown.mean["lts"]


@dataclass(frozen=True, eq=False)
class EntropyTemperatures:
    """T of one method against the log normalised entropy of test rows, fitted to all rows and to few.

    Attributes
    ----------
    method : str
        Its key.
    log_entropy : array of shape (P,)
        Of test rows, ascending.
    by_all : array of shape (P,)
        T of the method fitted to all validation rows.
    by_few : array of shape (D, P)
        T fitted to each of D subsamples. None if all rows are few.
    best : TemperatureDisplay
        Best temperatures of bins of equal width.
    ts : float
        T of TS, fitted to all validation rows.
    rows, few : int
        How many rows were fitted to.
    """

    method: str
    log_entropy: Vector
    by_all: Vector
    by_few: Vector
    best: TemperatureDisplay
    ts: float
    rows: int
    few: int

    @property
    def is_line(self) -> bool:
        """Whether T is a function of the entropy."""
        return self.method == "hts"


@dataclass(frozen=True, eq=False)
class TwoTemperatures:
    """T of all test rows by HTS and by PTS, both fitted to all validation rows."""

    hts: Vector
    pts: Vector
    rows: int

    @property
    def rank_correlation(self) -> float:
        """Spearman's; nan if one of the two is constant."""
        from scipy.stats import rankdata

        return _correlation(rankdata(self.hts), rankdata(self.pts))

    @property
    def correlation(self) -> float:
        """Pearson's; nan if one of the two is constant."""
        return _correlation(self.hts, self.pts)

    @property
    def slope(self) -> float:
        """Of PTS on HTS, by least squares: 1 if they rise together."""
        return self.correlation * float(self.pts.std() / self.hts.std()) if np.ptp(self.hts) else np.nan

    @property
    def limits(self) -> tuple[float, float]:
        """Limits for both axes, which leave out the odd row."""
        both = np.concatenate([self.hts, self.pts])
        low, high = np.quantile(both, [_RARE / 2, 1 - _RARE / 2])
        margin = 0.06 * (high - low) + 0.01
        return float(low - margin), float(high + margin)

    @property
    def outside(self) -> float:
        """The share of rows that these limits leave out."""
        low, high = self.limits
        lowest, highest = np.minimum(self.hts, self.pts), np.maximum(self.hts, self.pts)
        return float(np.mean((lowest < low) | (highest > high)))


def _correlation(x: Vector, y: Vector) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


# ---- computing


def class_temperatures(results: Results, task: TaskFile) -> ClassTemperatures:
    """Fit LTS and TS to all validation rows, and TS to the test rows of each class."""
    loaded = load_task(task)
    lts, ts = (_fitted(results, task, key) for key in ("lts", "ts"))
    shown = ClassTemperatureDisplay.from_calibrators({"lts": lts}, loaded.test.logits, loaded.test.labels)
    if not len(shown.classes):
        raise InputError(
            f"a figure by class needs a class with {LEAST_ROWS} test rows; {task.name} has none. "
            "Choose another task."
        )
    return ClassTemperatures(shown, _single(ts, loaded), task.rows)


def entropy_temperatures(results: Results, task: TaskFile, method: str) -> EntropyTemperatures:
    """Fit a method to all validation rows and to few, and TS to the test rows of each bin of entropy."""
    test = load_task(task).test
    entropy = log_normalised_entropy(as_rows(test))
    index = _along(entropy) if method == "hts" else _many(entropy)
    few = _FEW if _FEW in results.sizes else results.sizes[0]
    draws = 0 if few >= task.rows else _LINES if method == "hts" else 1
    by_few = [temperatures(_fitted(results, task, method, few, i), test, index) for i in range(draws)]
    return EntropyTemperatures(
        method,
        entropy[index],
        temperatures(_fitted(results, task, method), test, index),
        np.reshape(by_few, (draws, len(index))),
        TemperatureDisplay.from_calibrators({}, test.logits, test.labels, bins=_BINS, strategy="width"),
        _single(_fitted(results, task, "ts"), load_task(task)),
        task.rows,
        few,
    )


def two_temperatures(results: Results, task: TaskFile) -> TwoTemperatures:
    """Fit HTS and PTS to all validation rows."""
    test = load_task(task).test
    every = np.arange(len(test))
    hts, pts = (temperatures(_fitted(results, task, key), test, every) for key in ("hts", "pts"))
    return TwoTemperatures(hts, pts, task.rows)


def _fitted(
    results: Results, task: TaskFile, method: str, n: int | None = None, draw: int = 0
) -> TemperatureCalibrator:
    """Fit a method as the study does: to the same rows, with the same chance. By default to all rows."""
    unit = WorkUnit(task, task.rows if n is None else n, draw, results.seed, (method,))
    rows = load_task(task).val.take(unit.rows())
    calibrator = unit.calibrator(method)
    assert isinstance(calibrator, TemperatureCalibrator)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # with few rows methods say so each time; here the figure says it
            return calibrator.fit(rows.logits, rows.labels)
    except InputError as error:
        raise InputError(
            f"{method_style(method).label} cannot be fitted to {len(rows)} rows of {task.name}: {error}"
        ) from error


def _single(ts: TemperatureCalibrator, task: LoadedTask) -> float:
    """Return the one temperature of TS."""
    return float(temperatures(ts, task.test, np.arange(1))[0])


def _along(entropy: Vector) -> Indices:
    """Return rows at about equal steps of entropy, ascending: enough for a smooth line."""
    order = np.argsort(entropy, kind="stable")
    steps = np.linspace(entropy.min(), entropy.max(), _LINE_POINTS)
    at = np.minimum(np.searchsorted(entropy[order], steps), len(order) - 1)
    return order[np.unique(at)]


def _many(entropy: Vector) -> Indices:
    """Return all rows, ascending, or as many as can be drawn."""
    order = np.argsort(entropy, kind="stable")
    return order[np.linspace(0, len(order) - 1, min(len(order), _MOST_DOTS)).astype(np.intp)]


# ---- drawing


def draw_classes(ax: Axes, data: ClassTemperatures) -> None:
    """Draw the best T of each class with its interval, the mean T of LTS beside it, and T of TS."""
    shown = data.shown
    at = np.arange(len(shown.classes), dtype=np.float64)
    _draw_best(ax, at - 0.12, shown, ("class", "classes"))
    look: dict[str, Any] = {"color": colour_of("lts"), "marker": marker_of("lts"), "linestyle": ""}
    ax.plot(at + 0.12, data.lts, markersize=5, label=f"mean T of LTS, all {data.rows} rows", **look)
    ax.set_xticks(at, [str(k) for k in shown.classes], rotation=90 if len(at) > 15 else 0)
    ax.set(xlabel=_classes_label(shown), xlim=(-0.6, len(at) - 0.4))
    _finish(ax, at, shown, data.ts, [data.lts], rare=0.0)


def _classes_label(shown: ClassTemperatureDisplay) -> str:
    if len(shown.classes) == shown.n_classes:
        return "true class, by its best T"
    return f"true class, by its best T ({len(shown.classes)} of {shown.n_classes})"


def draw_entropy(ax: Axes, data: EntropyTemperatures) -> None:
    """Draw T against entropy: light for few rows, dark for all, with the best T of bins on top."""
    draw = _draw_lines if data.is_line else _draw_dots
    name = method_style(data.method).label
    if len(data.by_few):
        drawn = f", {len(data.by_few)} draws" if len(data.by_few) > 1 else ""
        draw(ax, data, data.by_few, f"{name}, {data.few} rows{drawn}", dark=False)
    draw(ax, data, data.by_all[None], f"{name}, all {data.rows} rows", dark=True)
    _draw_best(ax, data.best.centre, data.best, ("bin", "bins"))
    ax.set_xlabel(r"log normalised entropy, $\log(H / \log K)$")
    _finish(ax, data.best.centre, data.best, data.ts, [data.by_all, *data.by_few], rare=_RARE)


def _draw_lines(ax: Axes, data: EntropyTemperatures, values: Vector, label: str, *, dark: bool) -> None:
    look: dict[str, Any] = {"color": colour_of(data.method), "linewidth": 2.0 if dark else 0.8, "zorder": 2}
    for at, line in enumerate(values):
        ax.plot(data.log_entropy, line, alpha=1.0 if dark else 0.4, label="_" if at else label, **look)


def _draw_dots(ax: Axes, data: EntropyTemperatures, values: Vector, label: str, *, dark: bool) -> None:
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "markeredgewidth": 0, "zorder": 2}
    look["color"] = colour_of(data.method) if dark else _light(colour_of(data.method))
    for dots in values:
        ax.plot(data.log_entropy, dots, markersize=1.1, alpha=0.5, rasterized=True, **look)
    ax.plot([], [], markersize=4, label=label, **look)  # the dots are too small to be known again


def _light(colour: str) -> tuple[float, ...]:
    """Return a tint of a colour."""
    from matplotlib.colors import to_rgb

    return tuple(0.65 + 0.35 * part for part in to_rgb(colour))


def draw_two(ax: Axes, data: TwoTemperatures) -> None:
    """Draw T of PTS against T of HTS, a dot for each test row, with the diagonal."""
    look: dict[str, Any] = {"marker": "o", "markeredgewidth": 0, "linestyle": "", "color": colour_of("pts")}
    ax.plot(data.hts, data.pts, markersize=1.2, alpha=0.5, rasterized=True, **look)
    ax.axline((1.0, 1.0), slope=1.0, linestyle=":", color="black", linewidth=1.0, zorder=3)
    ax.set(
        xlim=data.limits,
        ylim=data.limits,
        aspect="equal",
        xlabel="temperature T of HTS",
        ylabel="temperature T of PTS",
    )
    figure = ax.get_figure()
    assert figure is not None
    figure.supxlabel(_two_in_words(data), fontsize=7)  # below the axes, where it hides no dot


def _two_in_words(data: TwoTemperatures) -> str:
    spearman, pearson = data.rank_correlation, data.correlation
    if np.isnan(spearman):
        return "no correlation: one of them gives all rows the same T"
    words = f"correlation: of ranks {spearman:.2f}, Pearson's {pearson:.2f} (slope {data.slope:.2f})"
    return f"{words}\n{100 * data.outside:.1f} % of {len(data.hts)} rows lie outside"


def _draw_best(ax: Axes, at: Vector, shown: _Shown, group: tuple[str, str]) -> None:
    """Draw the best temperatures with their intervals; one that the rows cannot tell is left out."""
    known = _whiskers(shown).telling
    label = f"best T of a {group[0]}"
    if not known.all():
        label += f"\n({(~known).sum()} of {len(known)} {group[1]} cannot tell)"
    spread = np.stack([shown.optimum - shown.low, shown.high - shown.optimum])
    ax.errorbar(at[known], shown.optimum[known], spread[:, known], label=label, zorder=3, **_BEST)


def _finish(ax: Axes, at: Vector, shown: _Shown, ts: float, values: list[Vector], rare: float) -> None:
    """Add T of TS, the legend, and limits that let nothing flatten all else."""
    ax.axhline(
        ts, linestyle="--", color=colour_of("ts"), linewidth=1.0, label=f"TS: T = {ts:.3g}", zorder=2.5
    )
    low, high = _whiskers(shown, sure=True).limits(ts, values, rare)
    ax.set(ylim=(low, high), ylabel="temperature T")
    for x, best, known in zip(at, shown.optimum, _whiskers(shown).telling, strict=True):
        if known and not low < best < high:
            up = best >= high
            where: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "va": "top" if up else "bottom"}
            ax.annotate(f" {'↑' if up else '↓'} {best:.2g}", (x, 0.98 if up else 0.02), fontsize=7, **where)
    # Below the axes: among the dots there is no room.
    ax.figure.legend(loc="outside lower center", ncols=2, frameon=False)


def _whiskers(shown: _Shown, *, sure: bool = False) -> Whiskers:
    """Return the best temperatures, all or those with a short interval, if most have one."""
    every = Whiskers(shown.optimum, shown.low, shown.high)
    chosen = every.high < _SURE * every.low
    if not sure or 2 * chosen.sum() < every.telling.sum():
        return every
    return Whiskers(every.optimum[chosen], every.low[chosen], every.high[chosen])
