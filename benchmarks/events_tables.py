"""Tables of simulations: shares with their Monte Carlo errors, as text and in a page of the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from generated_blocks import BLOCK, fill_blocks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "calibration-tests.md"


@dataclass(frozen=True)
class Table:
    """A table in Markdown, with the name of its block in the page."""

    name: str
    head: tuple[str, ...]
    rows: list[tuple[object, ...]]
    simulations: str

    def __str__(self) -> str:
        lines = [self.head, ("---",) * len(self.head), *self.rows]
        shown = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
        return f"{self.simulations}\n\n{shown}"


def share(hits):
    """Return how often something happened in percent, with the standard error of the simulation.

    Of no hit, or only hits, the error is that of a share of one more.
    """
    hits = np.asarray(hits, float)
    hits = hits[np.isfinite(hits)]
    if not len(hits):
        return "-"
    smoothed = (hits.sum() + 0.5) / (len(hits) + 1)
    return f"{100 * hits.mean():.1f} \u00b1 {100 * np.sqrt(smoothed * (1 - smoothed) / len(hits)):.1f}"


def mean(values, digits=2):
    """Return a mean with its standard error."""
    values = np.asarray(values, float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}f} \u00b1 {error:.{digits}f}"


def goal(number):
    """Return a target, or a dash where there is none."""
    return "-" if number is None else f"{number:g}" if isinstance(number, (int, float)) else str(number)


def in_brackets(number):
    """Return a target in brackets; nothing where there is none."""
    return "" if number is None else f" ({number:g})"


def samples(n):
    """Say how many samples a table is from."""
    return f"{n:,} samples per row."


def write(tables):
    """Put tables into their blocks of the page; a table without one is only printed."""
    text = PAGE.read_text(encoding="utf-8")
    kept = {found["name"]: found[0][len(found[1]) : -len(found[3])] for found in BLOCK.finditer(text)}
    PAGE.write_text(fill_blocks(text, kept | {table.name: str(table) for table in tables}), encoding="utf-8")
