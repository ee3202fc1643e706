"""Weekly checks of events: false alarms, weeks until watch and alarm, and which repair is advised.

    python benchmarks/monitoring_events.py                          prints the tables
    python benchmarks/monitoring_events.py --write                  puts them into docs/monitoring.md
    python benchmarks/monitoring_events.py --part weeks --share 0.1   one, of a tenth of the histories

A calibrator (`bayes-bias`) is fitted to rows of a classifier, and checked for 26 weeks. From week 6 on,
something is different. Then repairs are compared, by the log loss of 20,000 new rows after the advice.
"""

from __future__ import annotations

import argparse

import numpy as np
from monitoring import ALARM, on_watch, write
from scipy.special import expit, softmax

from temperance import make_calibrator
from temperance.metrics.predictions import check_rows
from temperance.monitoring.evidence import cumulate, evidence_of
from temperance.monitoring.repairs import compare_repairs
from temperance.monitoring.sums import LabelledSums, Limits, allowed, sum_labelled

WEEKS, CHANGE = 26, 6
POPULATION = {"2%": (-5.0, 1.5), "24%": (-1.9, 1.9), "50%": (0.0, 1.8)}
SCALE = {3: 1.8, 10: 2.5, 30: 3.0}
NEW_ROWS = 20_000

Rows = tuple[np.ndarray, np.ndarray]

# Population or number of classes, change, rows of the fit, rows of a week or window, histories.
WEEKLY = (
    ("2%", "", 5000, 1600, 600),
    ("2%", "", 1000, 1600, 600),
    ("24%", "", 3000, 800, 600),
    ("24%", "", 300, 800, 600),
    ("50%", "", 1000, 800, 600),
    ("2%", "risk x 1.6", 5000, 1600, 300),
    ("2%", "labels 3.2%", 5000, 1600, 300),
    ("24%", "log-odds +0.8", 3000, 800, 300),
    ("24%", "labels 31.4%", 3000, 800, 300),
    ("24%", "slope 0.55", 3000, 800, 300),
    ("24%", "inputs", 3000, 800, 300),
    (3, "", 3000, 1000, 80),
    (10, "", 2000, 800, 80),
    (30, "", 3000, 1000, 80),
    (3, "class 0 + log 2", 3000, 1000, 40),
    (10, "class 0 + log 2", 2000, 800, 40),
    (30, "class 0 + log 2", 3000, 1000, 40),
)
WINDOWS = (
    ("24%", "labels 31.4%", 3000, 800, 60),
    ("24%", "labels 31.4%", 3000, 2400, 60),
    ("24%", "labels 50%", 3000, 800, 60),
    ("24%", "log-odds +0.8", 3000, 800, 60),
    ("24%", "log-odds +0.8", 3000, 2400, 60),
    ("24%", "slope 0.55", 3000, 2400, 60),
    ("50%", "labels 30%", 1000, 500, 60),
    ("2%", "labels 3.2%", 5000, 6400, 60),
    ("2%", "labels 6%", 5000, 1600, 60),
    ("2%", "risk x 1.6", 5000, 6400, 60),
    (3, "labels", 2000, 500, 60),
    (3, "labels", 2000, 2000, 60),
    (3, "class 0 + 0.8", 2000, 500, 60),
    (3, "class 0 + 0.8", 2000, 2000, 60),
    (3, "slope 0.6", 2000, 500, 60),
    (3, "slope 0.6", 2000, 2000, 60),
    (10, "labels", 2000, 2000, 60),
    (10, "class 0 + 0.8", 2000, 2000, 60),
    (10, "slope 0.6", 2000, 2000, 60),
)


def draw(kind: str | int, change: str, rows: int, rng: np.random.Generator, *, rare: bool = False) -> Rows:
    """Return scores and labels, the scores those of a calibrated classifier before the change."""
    return _of_two(kind, change, rows, rng) if isinstance(kind, str) else _of(kind, change, rows, rng, rare)


def _of_two(kind: str, change: str, rows: int, rng: np.random.Generator) -> Rows:
    mean, deviation = POPULATION[kind]
    x = rng.normal(mean + 0.5 * (change == "inputs"), deviation, rows)
    if change.startswith("labels"):
        x = rng.normal(mean, deviation, 40 * rows)
        labels = rng.random(40 * rows) < expit(x)
        positive = rng.binomial(rows, float(change.split()[1].rstrip("%")) / 100)
        x = np.concatenate([rng.choice(x[labels], positive), rng.choice(x[~labels], rows - positive)])
        return x, (np.arange(rows) < positive).astype(int)
    true = mean + 0.55 * (x - mean) if change.startswith("slope") else x + 0.8 * change.startswith("log-odds")
    risk = expit(true) * (1.6 if change.startswith("risk") else 1.0)
    return x, (rng.random(rows) < np.minimum(risk, 1)).astype(int)


def _of(n_classes: int, change: str, rows: int, rng: np.random.Generator, rare: bool) -> Rows:
    drawn = 30 * rows if change == "labels" else rows
    z = rng.normal(0, SCALE[n_classes], (drawn, n_classes))
    z[:, 0] -= 4.5 * rare
    true = 0.6 * z if change.startswith("slope") else z.copy()
    if change.startswith("class 0"):
        true[:, 0] += np.log(2) if change.endswith("log 2") else 0.8
    labels = (softmax(true, axis=1).cumsum(axis=1) < rng.random((drawn, 1))).sum(axis=1)
    labels = np.minimum(labels, n_classes - 1)
    if change != "labels":
        return z, labels
    share = np.ones(n_classes)
    share[0] = 3  # times as frequent as the others
    counts = rng.multinomial(rows, share / share.sum())
    at = [rng.choice(np.flatnonzero(labels == k), count) for k, count in enumerate(counts)]
    return z[np.concatenate(at)], labels[np.concatenate(at)]


def fit(kind: str | int, rows: int, rng: np.random.Generator, *, rare: bool = False):
    """Return a calibrator, fitted to rows with at least one label of every class of two."""
    x, labels = draw(kind, "", rows, rng, rare=rare)
    while len(np.unique(labels)) < 2:
        x, labels = draw(kind, "", rows, rng, rare=rare)
    return make_calibrator("bayes-bias").fit(x, labels)


def follow(kind, change, fit_rows, rows, rng) -> tuple[float, np.ndarray]:
    """Return the week of the alarm, and in which weeks there was a watch, of one history."""
    rare = kind == 3
    calibrator = fit(kind, fit_rows, rng, rare=rare)
    limits, history, watched, alarm = allowed(calibrator.model_), [], np.zeros(WEEKS), np.inf
    for week in range(WEEKS):
        x, labels = draw(kind, change if week + 1 >= CHANGE else "", rows, rng, rare=rare)
        history.append(sum_labelled(calibrator.predict_proba(x), labels, limits))
        watched[week] = on_watch(limits, history)
        if alarm == np.inf and evidence_of(cumulate(history), limits.low, limits.high)[0] >= ALARM:
            alarm = week + 1
    return alarm, watched


def weeks_table(share: float) -> str:
    """Return alarms and weeks on watch."""
    lines = [
        "| positives or classes | change | rows of the fit | rows a week | histories | alarm "
        "| median weeks to it | weeks on watch | median weeks to the first |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, change, fit_rows, rows, histories in WEEKLY:
        rng, number = np.random.default_rng(0), max(4, round(share * histories))
        found = [follow(kind, change, fit_rows, rows, rng) for _ in range(number)]
        begin = CHANGE - 1 if change else 0
        alarms = np.array([alarm for alarm, _ in found])
        watched = np.array([weeks[begin:] for _, weeks in found])
        first = np.where(watched.any(axis=1), watched.argmax(axis=1) + 1, np.inf)
        delays = np.where(alarms > begin, alarms - begin, np.inf)
        told = [f"{np.isfinite(alarms).mean():.1%}", _median(delays) if change else "-"]
        told += [f"{watched.mean():.1%}", _median(first) if change else "-"]
        lines.append(
            f"| {kind} | {change or 'none'} | {fit_rows:,} | {rows:,} | {number} | {' | '.join(told)} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def _median(weeks: np.ndarray) -> str:
    return f"{np.median(weeks):g}" if np.isfinite(np.median(weeks)) else "-"


def advice_table(share: float) -> str:
    """Return how often adapting is advised, and the excess of the log loss over the best of three."""
    lines = [
        "| positives or classes | change | rows of the fit | window | samples | implied | test | adapt "
        "| keep | adapt | refit | as advised |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, change, fit_rows, rows, samples in WINDOWS:
        rng, number = np.random.default_rng(0), max(4, round(share * samples))
        advised, excess = [], []
        for _ in range(number):
            calibrator = fit(kind, fit_rows, rng)
            x, labels = draw(kind, change, rows, rng)
            found, frequencies = _repairs(calibrator, allowed(calibrator.model_), x, labels)
            advised.append((found.is_implied, found.p_value >= 0.05, found.adapts))
            again = make_calibrator("bayes-bias").fit(x, labels)
            x, labels = draw(kind, change, NEW_ROWS, rng)
            adapted = calibrator.adapt(priors=frequencies)
            losses = [
                float(-np.log(np.maximum(one.predict_proba(x)[np.arange(NEW_ROWS), labels], 1e-15)).mean())
                for one in (calibrator, adapted, again)
            ]
            chosen = losses[1 if found.adapts else 2]
            excess.append(np.array([*losses, chosen]) / min(losses) - 1)
        shares = " | ".join(f"{value:.0%}" for value in np.mean(advised, axis=0))
        told = " | ".join(f"{value:.2%}" for value in np.mean(excess, axis=0))
        lines.append(f"| {kind} | {change} | {fit_rows:,} | {rows:,} | {number} | {shares} | {told} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def _repairs(calibrator, limits: Limits, x: np.ndarray, labels: np.ndarray):
    """Compare repairs as the check of these rows does."""
    logits = np.stack([np.zeros(len(x)), x], axis=1) if x.ndim == 1 else x
    probs = calibrator.predict_proba(x)
    window: LabelledSums = sum_labelled(probs, labels, limits)
    frequencies = (window.labels + 0.5) / (window.labels + 0.5).sum()
    rows = check_rows(probs, labels)
    return compare_repairs(calibrator.model_, limits, window, frequencies, rows, logits), frequencies


TABLES = {"weeks": weeks_table, "advice": advice_table}


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description="Figures of docs/monitoring.md.")
    parser.add_argument("--write", action="store_true", help="put them into docs/monitoring.md")
    parser.add_argument("--part", choices=TABLES, help="one of the tables")
    parser.add_argument("--share", type=float, default=1.0, help="of the histories")
    arguments = parser.parse_args()
    for name in [arguments.part] if arguments.part else TABLES:
        content = TABLES[name](arguments.share)
        if arguments.write:
            write(name, content)


if __name__ == "__main__":
    main()
