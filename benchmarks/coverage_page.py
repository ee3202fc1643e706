"""The tables of docs/benchmarks/coverage.md, from the counts of the study of intervals."""

from __future__ import annotations

LEAST = 93.0


def tables(results, fits, costs, names):
    """Return the tables by the names of their blocks: all metrics, too narrow intervals, fits and costs."""
    runs = [entry["n"] for entry in (*results.values(), *fits.values())]
    return {
        "runs": f"Each range covers all scenarios of a size, with {min(runs):,} simulations per scenario.",
        "metrics": "\n".join(_by_size(results, names)),
        "narrow": "\n".join(_narrow(results, names)),
        "fits": "\n".join(_fits(fits)),
        "costs": "\n".join(_costs(costs)),
    }


def _covered(entry, name):
    return 100 * (1 - (entry["above"][name] + entry["below"][name]) / entry["n"])


def _by_size(results, names):
    """Yield the lowest and the highest coverage of each metric over the scenarios, by size."""
    sizes = sorted({cell[:2] for cell in results})
    yield "| metric | " + " | ".join(f"{n:,} rows, {k} classes" for n, k in sizes) + " |"
    yield "|---" * (1 + len(sizes)) + "|"
    for name in names:
        spans = []
        for size in sizes:
            found = [_covered(entry, name) for cell, entry in results.items() if cell[:2] == size]
            spans.append(f"{min(found):.1f} to {max(found):.1f}%")
        yield f"| {name} | " + " | ".join(spans) + " |"


def _narrow(results, names):
    """Yield the scenarios in which an interval contains the truth too rarely."""
    yield f"| below {LEAST:g}% | scenario | rows | classes | coverage |"
    yield "|---|---|---|---|---|"
    for name in names:
        for (n_rows, n_classes, scenario), entry in results.items():
            covered = _covered(entry, name)
            if covered < LEAST:
                yield f"| {name} | {scenario} | {n_rows:,} | {n_classes} | {covered:.1f}% |"


def _fits(fits):
    """Yield how often the true parameter is within 1.96 standard errors of the fitted one."""
    yield "| method | rows | classes | coverage |"
    yield "|---|---|---|---|"
    for (method, n_rows, n_classes), entry in fits.items():
        shown = ", ".join(f"{name} {_covered(entry, name):.1f}%" for name in entry["above"])
        yield f"| `{method}` | {n_rows:,} | {n_classes} | {shown} |"


def _costs(costs):
    """Yield the lowest and the highest coverage of each kind of costs over the worlds of a size."""
    kinds = [*next(iter(costs.values()))["above"]]
    yield f"| rows are | rows | classes | {' | '.join(kinds)} |"
    yield "|---" * (3 + len(kinds)) + "|"
    for family, n_rows, n_classes in dict.fromkeys((cell[1], *cell[3:]) for cell in costs):
        entries = [
            entry for cell, entry in costs.items() if (cell[1], *cell[3:]) == (family, n_rows, n_classes)
        ]
        spans = []
        for kind in kinds:
            found = [_covered(entry, kind) for entry in entries]
            spans.append(f"{min(found):.1f} to {max(found):.1f}%")
        yield f"| {family} | {n_rows:,} | {n_classes} | {' | '.join(spans)} |"
