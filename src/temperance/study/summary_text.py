"""Ranks, win rates and improvements as sheets of cells, for Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np

from temperance.calibrators import method_style
from temperance.study.improvements import LEVEL, RESAMPLES, Improvements
from temperance.study.markup import LATEX, MARKDOWN, MINUS, aligned, latex_line, latex_table
from temperance.study.names import task_name
from temperance.study.paired_scores import Over, PairedScores
from temperance.study.ranks import ALPHA, Ranks
from temperance.study.tables import unit_of
from temperance.study.wins import WinRates

Summary = Ranks | WinRates | Improvements
_BLOCK = {"tasks": "task", "datasets": "data set"}


@dataclass(frozen=True)
class Sheet:
    """A table as text: with notes for people, caption first, and with all digits for programs."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    csv_head: Sequence[str]
    csv_rows: Sequence[Sequence[object]]

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [[MARKDOWN.text(cell) for cell in line] for line in (self.head, *self.rows)]
        return "\n\n".join([aligned(lines, left=1), *map(MARKDOWN.text, self.notes)]) + "\n"

    def to_latex(self) -> str:
        """Return a table for a paper."""
        head, *lines = ([LATEX.text(cell) for cell in line] for line in (self.head, *self.rows))
        columns = "l" + "r" * (len(self.head) - 1)
        return latex_table(columns, head, [list(map(latex_line, lines))], list(map(LATEX.text, self.notes)))

    def to_csv(self) -> str:
        """Return the numbers with all their digits; missing ones are empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.csv_head)
        writer.writerows([_for_program(value) for value in row] for row in self.csv_rows)
        return text.getvalue()


def sheet_of(summary: Summary) -> Sheet:
    """Return a summary as a sheet."""
    if isinstance(summary, Ranks):
        return _ranks_sheet(summary)
    return _wins_sheet(summary) if isinstance(summary, WinRates) else _improvements_sheet(summary)


def _ranks_sheet(ranks: Ranks) -> Sheet:
    letters = {
        key: "".join(
            letter for letter, group in zip(ascii_lowercase, ranks.groups, strict=False) if key in group
        )
        for key in ranks.methods
    }
    rows = list(zip(ranks.methods, map(float, ranks.mean), letters.values(), strict=True))
    test = (
        f"Friedman test: chi-squared = {ranks.statistic:.1f} with {len(ranks.methods) - 1} degrees of "
        f"freedom, {_p_value(ranks.p_value)}. "
    )
    if ranks.p_value < ALPHA:
        test += (
            f"Nemenyi's critical difference at {ALPHA:.0%}: {ranks.critical_difference:.2f}; methods that "
            "share a letter differ by less."
        )
    else:
        test += f"It finds no difference at {ALPHA:.0%}, so all methods share a letter."
    caption = f"Mean rank by {_about(ranks.scores)} over {_blocks(ranks.scores, ranks.over)}; 1 is the best."
    return Sheet(
        ["Method", "Mean rank", "Group"],
        [[method_style(key).label, f"{mean:.2f}", words] for key, mean, words in rows],
        [caption, test, *_dependence(ranks.scores, ranks.over), *_left_out(ranks.scores)],
        ["method", "mean_rank", "groups", "tasks", "friedman", "p_value", "critical_difference"],
        [
            [*row, ranks.blocks, ranks.statistic, ranks.p_value, ranks.critical_difference]
            for row in rows
        ],
    )  # fmt: skip


def _wins_sheet(wins: WinRates) -> Sheet:
    scores = wins.scores
    order = np.argsort(-wins.overall, kind="stable")
    labels = [method_style(scores.methods[i]).label for i in order]
    rows = []
    for i, label in zip(order, labels, strict=True):
        pairs = ["" if i == j else _percent(wins.rate[i, j]) for j in order]
        rows.append([label, _percent(wins.overall[i]), _percent(wins.overall_of_draws[i]), *pairs])
    caption = (
        f"Win rates by {_about(scores)} over {_blocks(scores, wins.over)}: how often, in %, the method of a "
        "row beats that of a column, by its mean over draws. A tie counts half."
    )
    overall = "All: against all others. Draws: the same for single draws, each with the same rows for all."
    return Sheet(
        ["Method", "All", "Draws", *labels],
        rows,
        [caption, overall, *_left_out(scores)],
        ["method", "opponent", "won", "tied", "win_rate", "win_rate_of_draws"],
        [
            [scores.methods[i], scores.methods[j], *(x[i, j] for x in _win_columns(wins))]
            for i in order
            for j in order
            if i != j
        ],
    )


def _win_columns(wins: WinRates) -> tuple[np.ndarray, ...]:
    return wins.won, wins.tied, wins.rate, wins.of_draws


def _improvements_sheet(found: Improvements) -> Sheet:
    scores, rows = found.scores, []
    at = scores.methods.index(found.reference)
    losses = scores.losses
    better = scores.mean_over((losses < losses[:, [at]]).astype(np.float64), found.over)
    order = [i for i in np.argsort(-found.improvement(found.ratio), kind="stable") if i != at]
    ends = np.sort(np.stack([found.improvement(found.low), found.improvement(found.high)]), axis=0)
    for i in order:
        interval = [_signed_percent(end) for end in ends[:, i]] if np.isfinite(ends[:, i]).all() else []
        cells = [_signed_percent(found.improvement(found.ratio)[i]), " to ".join(interval) or "—"]
        rows.append([method_style(scores.methods[i]).label, *cells, _percent(better[i])])
    reference = method_style(found.reference).label
    caption = (
        f"Mean improvement over {reference} in %, by {_about(scores)} over {_blocks(scores, found.over)}: "
        f"geometric mean of the ratios of scores, positive where the method is better than {reference}."
    )
    columns = ("ratio", "low", "high")
    return Sheet(
        ["Method", "Improvement", f"{LEVEL:.0%} interval", "Better on"],
        rows,
        [caption, _resampling(found), f"Better on: how often, in %, the method beats {reference}.",
         *_left_out(scores)],
        ["method", "reference", *columns, "better_on"],
        [
            [scores.methods[i], found.reference, *(getattr(found, name)[i] for name in columns), better[i]]
            for i in order
        ],
    )  # fmt: skip


def _resampling(found: Improvements) -> str:
    if found.resampled is None:
        return "Interval: none, since one task has no spread."
    percentiles = f"Interval: percentiles of {RESAMPLES} bootstrap samples of the"
    if found.resampled == "datasets":
        return f"{percentiles} {found.scores.datasets} data sets, each drawn with all its tasks."
    return (
        f"{percentiles} {len(found.scores.tasks)} tasks, as there are too few data sets to draw from: it "
        "speaks of further tasks on the same data sets."
    )


def _about(scores: PairedScores) -> str:
    direction = "" if scores.better == "lower" else ", higher is better,"
    return f"{unit_of(scores.metric).title.replace(' in %', '')}{direction} with {scores.n} rows"


def _blocks(scores: PairedScores, over: Over) -> str:
    tasks, datasets = _count(len(scores.tasks), "task"), _count(scores.datasets, "data set")
    if over == "tasks":
        return f"{tasks} of {datasets}"
    return f"{datasets}, each counting once whatever its number of tasks ({tasks})"


def _dependence(scores: PairedScores, over: Over) -> list[str]:
    if over == "datasets" or scores.datasets == len(scores.tasks):
        return []
    return [
        "The test assumes independent tasks. Tasks of one data set are not independent, so p is too small. "
        "Count each data set once to avoid this."
    ]


def _left_out(scores: PairedScores) -> list[str]:
    names = "; ".join(map(task_name, scores.left_out))
    return [f"Left out, since a score is missing or has no ratio: {names}."] if names else []


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _signed_percent(change: float) -> str:
    if np.isinf(change):
        return f"{MINUS if change < 0 else '+'}∞"
    return "—" if np.isnan(change) else f"{100 * change:+.1f}".replace("-", MINUS)


def _for_program(value: object) -> object:
    if isinstance(value, float):
        return "" if np.isnan(value) else repr(float(value))
    return value
