"""The page docs/coverage.md from the counts of the study of intervals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from coverage_worlds import FRESH, SCENARIOS, TUNED

from temperance.metrics.bootstrap import DRAWS

MONITORING = Path(__file__).resolve().parents[1] / "docs" / "monitoring.md"
LEAST, MOST = 93.0, 97.0

INTRODUCTION = f"""\
# Do the intervals cover?

`make coverage-of-intervals` writes this page. It draws rows with known probabilities, evaluates them with
{DRAWS} resamples, and counts how often a 95 % interval contains the true value. Each entry is the
coverage in percent; in brackets, how often the interval lay above and below the truth. Entries outside
93 to 97 % are bold.
"""

TRUTHS = """\
Logits are normal with standard deviation 2 unless a scenario says otherwise. The constructions of the
intervals were chosen on the first four scenarios; the last four check them. But some cells of each of the
last four had been looked at before the last choice among constructions. No temperature with class
biases corrects `wave` or `subgroup`.

The truth of `ece` and `debiased_ece` is that of the same 15 bins. The truth of the calibration and refinement
parts is that of the best recalibrator of their family. The difference is that of two classifiers on the same
rows, as `compare` shows it.

These have no interval: `mce`, whose worst bin is often the one with the fewest rows; `classwise_ece`, since
intervals of the kind of `ece`, tried before, covered its truth 88 % of the time with `subgroup`, 92 % with
`underconfident` and 99 % with `wave` (1000 rows, 20 classes); and the gain of the ECE that `compare` shows,
because noise adds more to the smaller of two calibration errors.

Where the truth is 0 no interval can lie below it. Intervals of calibration parts, which have two tails, then
cover 97.5 % of the time. Those of calibration errors have one tail there, and cover 95 %. Such cells are
counted apart.
"""

CONSERVATIVE = """\
Calibration errors are sums of absolute values. Noise adds to them; by how much depends on whether a few
residuals are large or many are small. The intervals take what a fitted temperature with class biases would
correct, and what exceeds noise in the rest. Where noise dominates and the true residuals have another shape,
they cover more or less often than 95 %. Entries above 97 % cost length. Entries below 93 % are intervals that
promise too much.
"""


def page(results, truths, fits, names):
    """Return the page: a summary, the fits, the monitoring, and a table for each metric."""
    scenarios = [f"| {name} | {words} |" for name, words in SCENARIOS.items()]
    parts = [
        f"{INTRODUCTION}{_numbers(results)}",
        "\n".join(["| scenario | what is evaluated |", "|---|---|", *scenarios]),
        TRUTHS.rstrip(),
        "\n".join(_summary(results, truths, names)),
        CONSERVATIVE.rstrip(),
        "\n".join(_fits(fits)),
        "\n".join(_monitoring()),
        *("\n".join(_table(results, name)) for name in names),
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


def _summary(results, truths, names):
    """Return for each metric how many cells are within the target, for both kinds of scenarios."""
    head = "| metric | mean coverage % | lowest | within 93 to 97 % | below | above | truth 0 |"
    lines = []
    for title, scenarios in (("The first four scenarios", TUNED), ("The last four scenarios", FRESH)):
        lines += [*([""] if lines else []), f"## {title}", "", head, "|---" * 7 + "|"]
        for name in names:
            cells = [cell for cell in results if cell[2] in scenarios]
            at_0 = [cell for cell in cells if _has_boundary(name) and abs(truths[cell[1:]][name]) < 1e-9]
            found = np.array([_coverage(results[cell], name) for cell in cells if cell not in at_0])
            if len(found):
                within = np.sum((found >= LEAST) & (found <= MOST))
                lines.append(
                    f"| {name} | {found.mean():.1f} | {found.min():.1f} | {within} of {len(found)} | "
                    f"{np.sum(found < LEAST)} | {np.sum(found > MOST)} | {_at_0(results, at_0, name)} |"
                )
    return lines


def _has_boundary(name):
    return name.endswith(("ece", "calibration"))


def _at_0(results, cells, name):
    found = [_coverage(results[cell], name) for cell in cells]
    return f"{min(found):.1f} to {max(found):.1f} ({len(found)})" if found else "-"


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


def _table(results, name):
    lines = [f"## {name}", "", "| N | K | simulations | " + " | ".join(SCENARIOS) + " |"]
    lines.append("|---" * (3 + len(SCENARIOS)) + "|")
    for n_rows, n_classes in sorted({cell[:2] for cell in results}):
        entries = [results.get((n_rows, n_classes, scenario)) for scenario in SCENARIOS]
        numbers = _span([entry["n"] for entry in entries if entry])
        cells = [_entry(entry, name) if entry else "" for entry in entries]
        lines.append(f"| {n_rows} | {n_classes} | {numbers} | " + " | ".join(cells) + " |")
    return lines


def _coverage(entry, name):
    return 100 * (1 - (entry["above"][name] + entry["below"][name]) / entry["n"])


def _entry(entry, name):
    covered = _coverage(entry, name)
    sides = "/".join(f"{100 * entry[side][name] / entry['n']:.1f}" for side in ("above", "below"))
    shown = f"{covered:.1f} ({sides})"
    return shown if LEAST <= covered <= MOST else f"**{shown}**"
