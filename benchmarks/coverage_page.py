"""The page docs/coverage.md from the counts of the study of intervals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from coverage_worlds import ACCURATE, FRESH, SCENARIOS, TUNED

from temperance.metrics.bootstrap import DRAWS

MONITORING = Path(__file__).resolve().parents[1] / "docs" / "monitoring.md"
LEAST, MOST = 93.0, 97.0

INTRODUCTION = f"""\
# Do the intervals cover?

`make coverage-of-intervals` writes this page. It draws rows with known probabilities, evaluates them with
{DRAWS} resamples, and counts how often a 95 % interval contains the true value. Each entry is the
coverage in percent. Entries outside 93 to 97 % are bold, with how often the interval lay above and below the
truth in brackets.
"""

TRUTHS = """\
Logits are normal with standard deviation 2 in the first eight scenarios. In the last six the classes are
normal with equal variances. No temperature with class biases corrects `wave` or `subgroup`.
The constructions of the intervals were chosen on scenarios of this list, so that none of them is a fresh
check.

The truth of `ece` and `debiased_ece` is that of the same 15 bins. The truth of the calibration and refinement
parts is that of the best recalibrator of their family. The difference is that of two classifiers on the same
rows, as `compare` shows it.

These have no interval: `mce`, whose worst bin is often the one with the fewest rows; `classwise_ece`, since
intervals of the kind of `ece`, tried before, covered its truth 87 to 99.7 % of the time; and the gain of the
ECE that `compare` shows, because noise adds more to the smaller of two calibration errors.

Where the truth is 0 no interval can lie below it. Intervals of calibration parts then cover 97.5 % of the
time or more, and those of calibration errors 95 % or more.
"""

CONSERVATIVE = """\
An accurate classifier makes few errors, and rows without one do not show what one would cost. Its intervals
contain one pseudo-error (see `metrics.intervals`), and cover more often than 95 %: that costs length. Entries
below 93 % are intervals that promise too much. The worst is `aurc` of a very overconfident classifier that is
nearly always right: the pseudo-error is at a row of low confidence, where an error hardly moves the curve.

Calibration errors are sums of absolute values. Noise adds to them; by how much depends on whether a few
residuals are large or many are small. The intervals take what a fitted temperature with class biases would
correct, and what exceeds noise in the rest. Where noise dominates and the true residuals have another shape,
they cover more or less often than 95 %.
"""


def page(results, fits, names):
    """Return the page: the scenarios, a table for each size, the fits, and the monitoring."""
    scenarios = [f"| {name} | {words} |" for name, words in SCENARIOS.items()]
    parts = [
        f"{INTRODUCTION}{_numbers(results)}",
        "\n".join(["| scenario | what is evaluated |", "|---|---|", *scenarios]),
        TRUTHS.rstrip(),
        *("\n".join(_table(results, size, names)) for size in sorted({cell[:2] for cell in results})),
        CONSERVATIVE.rstrip(),
        "\n".join(_fits(fits)),
        "\n".join(_monitoring()),
    ]
    return "\n\n".join(parts) + "\n"


def _numbers(results):
    by_size = {}
    for (n_rows, _, _), entry in results.items():
        by_size.setdefault(n_rows, []).append(entry["n"])
    said = [f"{_span(numbers)} for N = {n_rows}" for n_rows, numbers in sorted(by_size.items())]
    fewest = min(min(numbers) for numbers in by_size.values())
    error = 100 * np.sqrt(0.05 * 0.95 / fewest)
    return (
        f"\nSimulations of a cell: {', '.join(said)}.\nThe standard error of an entry is about {error:.1f} "
        f"with {fewest} simulations, so that some entries are outside by chance."
    )


def _span(numbers):
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _fits(fits):
    """Return how often the true parameter is within 1.96 standard errors of the fitted one."""
    lines = [
        "## Standard errors of fits",
        "",
        "How often the true parameter is within 1.96 standard errors of the fitted one. Labels are drawn",
        "from the model that is fitted. The prior of `bayes` is part of its standard errors: they are those",
        "of a population of classifiers, and one truth, here a single temperature, may be covered more or",
        "less often.",
        "",
        "| method | N | K | simulations | coverage in percent |",
        "|---|---|---|---|---|",
    ]
    for (method, n_rows, n_classes), entry in fits.items():
        shown = ", ".join(f"{name} {_entry(entry, name)}" for name in entry["above"])
        lines.append(f"| {method} | {n_rows} | {n_classes} | {entry['n']} | {shown} |")
    return lines


def _monitoring():
    """Return the false alarms that `make monitoring` has measured."""
    text = MONITORING.read_text(encoding="utf-8")
    table = re.search(r"<!-- false alarms -->\n(.*?)\n<!-- end of false alarms -->", text, re.DOTALL)[1]
    return [
        "## False alarms of `temperance check`",
        "",
        "Nominal: at most 5 % of unchanged calibrators ever have an alarm, however often they are checked.",
        "Measured by `make monitoring` over 1000 checks of each calibrator, see [monitoring](monitoring.md):",
        "",
        table,
    ]


def _table(results, size, names):
    """Return the coverage of each metric in each scenario, of sets of one size."""
    n_rows, n_classes = size
    lines = [f"## {n_rows} rows, {n_classes} classes"]
    for scenarios in (TUNED | FRESH, ACCURATE):
        shown = [scenario for scenario in scenarios if (*size, scenario) in results]
        if shown:
            lines += ["", "| metric | " + " | ".join(shown) + " |", "|---" * (1 + len(shown)) + "|"]
            for name in names:
                cells = [_entry(results[*size, scenario], name) for scenario in shown]
                lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _entry(entry, name):
    above, below = (100 * entry[side][name] / entry["n"] for side in ("above", "below"))
    covered = 100 - above - below
    return f"{covered:.1f}" if LEAST <= covered <= MOST else f"**{covered:.1f} ({above:.1f}/{below:.1f})**"
