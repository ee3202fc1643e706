"""False alarms and days until an alarm of `temperance check`, simulated with the code that it runs.

    python benchmarks/monitoring.py                    prints the tables
    python benchmarks/monitoring.py --write            puts each into docs/monitoring.md once it is done

A calibrator is fitted to 200 or 2000 rows, and then checked for a year against labelled rows drawn from a
large pool of the same classifier: the residuals, bets, windows, states and advice are those of the package.
The calibrators have the errors of their fits, so none is exactly right.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.special import softmax

from temperance import make_calibrator
from temperance.data import simulate
from temperance.metrics.predictions import check_rows
from temperance.monitoring.change import LAST, is_other_data, recent_gaps
from temperance.monitoring.evidence import cumulate, evidence_of
from temperance.monitoring.repairs import compare_repairs
from temperance.monitoring.shift import compare_with_baseline
from temperance.monitoring.sums import (
    LabelledSums,
    Limits,
    allowed,
    residuals,
    sum_labelled,
    sum_predictions,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "monitoring.md"
ALARM = np.log(20.0)
CLASSES, SHARPNESS, METHOD = 4, 4.0, "bayes"
POOL = 10_000
CHANGES_AFTER = 30  # days
YEAR = ((10, 365), (100, 52), (1000, 52))  # rows of a check, checks

Draw = Callable[["World", np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]
"""(world, random numbers, day, rows) -> which rows of the pool, and their labels."""


@dataclass(frozen=True, eq=False)
class World:
    """A fitted calibrator, and a pool of rows of its classifier."""

    calibrator: object
    limits: Limits
    logits: np.ndarray
    probs: np.ndarray
    truth: np.ndarray
    labels: np.ndarray
    hard: np.ndarray
    """Rows of a subgroup: a tenth of all."""

    @classmethod
    def make(cls, fit_rows: int, seed: int) -> World:
        """Draw a classifier, fit a calibrator, and apply it to the pool."""
        task = simulate(fit_rows + POOL, CLASSES, sharpness=SHARPNESS, random_state=seed)
        calibrator = make_calibrator(METHOD).fit(task.logits[:fit_rows], task.labels[:fit_rows])
        logits = task.logits[fit_rows:]
        probs = calibrator.predict_proba(logits)
        hard = np.random.default_rng(seed).random(POOL) < 0.1
        truth, labels = task.probabilities[fit_rows:], task.labels[fit_rows:]
        return cls(calibrator, allowed(calibrator.model_), logits, probs, truth, labels, hard)


def stable(world: World, rng: np.random.Generator, day: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Change nothing."""
    at = rng.integers(0, POOL, rows)
    return at, world.labels[at]


def overconfidence(world: World, rng: np.random.Generator, day: int, rows: int):
    """Let the temperature that would be right grow by 2% a day, up to twice what it was."""
    at = rng.integers(0, POOL, rows)
    temperature = min(1 + 0.02 * max(day - CHANGES_AFTER, 0), 2.0)
    return at, _drawn(softmax(np.log(world.truth[at] + 1e-300) / temperature, axis=1), rng)


def class_frequencies(world: World, rng: np.random.Generator, day: int, rows: int):
    """Make the first class three times as frequent relative to the others."""
    if day < CHANGES_AFTER:
        return stable(world, rng, day, rows)
    weight = np.where(world.labels == 0, 3.0, 1.0)
    at = rng.choice(POOL, rows, p=weight / weight.sum())
    return at, world.labels[at]


def subgroup(world: World, rng: np.random.Generator, day: int, rows: int):
    """Let a subgroup grow from 10% to 40% of the rows; half of its labels have no relation to p."""
    if day < CHANGES_AFTER:
        return stable(world, rng, day, rows)
    weight = np.where(world.hard, 0.4 / world.hard.mean(), 0.6 / (1 - world.hard.mean()))
    at = rng.choice(POOL, rows, p=weight / weight.sum())
    lost = world.hard[at] & (rng.random(rows) < 0.5)
    return at, np.where(lost, rng.integers(0, CLASSES, rows), world.labels[at])


def label_noise(world: World, rng: np.random.Generator, day: int, rows: int):
    """Replace a tenth of the labels by any class."""
    at, labels = stable(world, rng, day, rows)
    wrong = (rng.random(rows) < 0.1) & (day >= CHANGES_AFTER)
    return at, np.where(wrong, rng.integers(0, CLASSES, rows), labels)


KINDS: dict[str, Draw] = {
    "overconfidence grows": overconfidence,
    "class frequencies shift": class_frequencies,
    "a subgroup gets worse": subgroup,
    "10% label noise": label_noise,
}


def _drawn(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    below = probs.cumsum(axis=1) < rng.random((len(probs), 1))
    return np.minimum(below.sum(axis=1), probs.shape[1] - 1)


def draw_days(world: World, draw: Draw, days: int, rows: int, seed: int) -> list:
    """Draw the rows of all days, and their labels."""
    rng = np.random.default_rng((seed, rows, days))
    return [draw(world, rng, day, rows) for day in range(days)]


def live(world: World, drawn: list) -> list[LabelledSums]:
    """Sum what the check of each day sums."""
    return [sum_labelled(world.probs[at], labels, world.limits) for at, labels in drawn]


def advice(world: World, window: LabelledSums, at: np.ndarray, labels: np.ndarray) -> str:
    """Return what the check of a day advises whose alarm is about these sums."""
    if is_other_data(window, world.limits):
        return "inspect"
    frequencies = (window.labels + 0.5) / (window.labels + 0.5).sum()
    rows = check_rows(world.probs[at], labels)
    found = compare_repairs(
        world.calibrator.model_, world.limits, window, frequencies, rows, world.logits[at]
    )
    return "adapt" if found.adapts else "refit"


def looks(world: World, history: list[LabelledSums]) -> Iterator[tuple[float, int]]:
    """Yield the evidence after each check, and the first check of the clearest window."""
    cumulated = cumulate(history)
    for day in range(len(history)):
        so_far = [column[: day + 2] for column in cumulated]
        yield evidence_of(so_far, world.limits.low, world.limits.high)


def on_watch(limits: Limits, history: list[LabelledSums]) -> bool:
    """Say whether the last check, or the last three, are outside the allowed range beyond chance."""
    records = [SimpleNamespace(name="", date="", labelled=one) for one in history[-LAST:]]
    return any(gap.outside for gap in recent_gaps(records, limits))


def false_alarms(fit_rows: int, repeats: int, plans=YEAR) -> list[tuple[float, float, float]]:
    """Return for each plan the shares of alarms, of weeks on watch, and of calibrators outside the limits."""
    found = np.zeros((len(plans), repeats, 3))
    for seed in range(repeats):
        world = World.make(fit_rows, seed)
        mean = residuals(world.probs, world.labels).mean(axis=0)
        outside = ((mean < world.limits.low) | (mean > world.limits.high)).any()
        for i, (rows, checks) in enumerate(plans):
            history = live(world, draw_days(world, stable, checks, rows, seed))
            evidence = list(looks(world, history))
            weekly = range(0, checks, max(1, checks // 52))
            watched = [on_watch(world.limits, history[: day + 1]) for day in weekly]
            found[i, seed] = max(evidence)[0] >= ALARM, np.mean(watched), outside
    return [tuple(shares) for shares in found.mean(axis=1).tolist()]


def detection(kind: str, fit_rows: int, rows: int, repeats: int, days: int) -> dict[str, object]:
    """Return the share of histories with an alarm after the change, days until watch and alarm, advice."""
    delays, advised = np.full((2, repeats), np.inf), Counter()
    for seed in range(repeats):
        world = World.make(fit_rows, 1000 + seed)
        drawn = draw_days(world, KINDS[kind], days, rows, seed)
        history = live(world, drawn)
        for day, (log_e, start) in enumerate(looks(world, history)):
            after = day - CHANGES_AFTER + 1
            if 0 < after < delays[1, seed] and (log_e >= ALARM or on_watch(world.limits, history[: day + 1])):
                delays[1, seed] = after
            if log_e >= ALARM:
                if after > 0:
                    delays[0, seed] = after
                    advised[advice(world, reduce(add, history[start : day + 1]), *drawn[day])] += 1
                break
    alarm, watch = np.median(delays, axis=1)
    return {
        "seen": float(np.isfinite(delays[0]).mean()),
        "median": float(alarm),
        "watch": float(watch),
        "advice": advised,
    }


def shift_looks(kind: str | None, fit_rows: int, rows: int, repeats: int, days: int) -> dict[str, float]:
    """Return the same for rows without labels."""
    alarms = np.full(repeats, -1)
    for seed in range(repeats):
        world = World.make(fit_rows, 2000 + seed)
        rng, baseline, checks = np.random.default_rng((seed, 7)), world.calibrator.baseline_, []
        for day in range(days):
            at, _ = (stable if kind is None else KINDS[kind])(world, rng, day, rows)
            checks.append(sum_predictions(world.probs[at], baseline))
            if compare_with_baseline(checks, baseline, 0.05).alarm:
                alarms[seed] = day
                break
    delays = np.where(alarms >= CHANGES_AFTER, alarms - CHANGES_AFTER + 1, np.inf)
    return {"alarms": float((alarms >= 0).mean()), "median": float(np.median(delays))}


# ---- Classifiers for which a false alarm is likeliest


def confident(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return exact logits of two classes with an accuracy of 0.99."""
    labels = rng.integers(0, 2, rows)
    x = rng.normal(size=rows) + 4.65 * (labels - 0.5)
    return np.stack([np.zeros(rows), 4.65 * x], axis=1), labels


def rare(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return logits of one frequent class and nine rare ones that look alike, with wrong class biases."""
    frequencies, is_rare = np.array([0.82] + [0.02] * 9), np.arange(10) > 0
    labels = rng.choice(10, rows, p=frequencies)
    apart, within = rng.normal(size=(rows, 1)) + 4 * is_rare[labels, None], rng.normal(size=(rows, 10))
    within[np.arange(rows), labels] += 0.7
    logits = np.log(frequencies) + is_rare * (4 * apart - 8 + 0.7 * within - 0.245)
    return logits + 1.5 * is_rare * np.random.default_rng(5).normal(size=10), labels


def in_turn(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return exact logits whose labels are 0, 1, 2, 3, 0, 1, ..."""
    labels = np.arange(rows) % 4
    x = rng.normal(size=(rows, 4)) + 2 * np.eye(4)[labels]
    return 2 * x, labels


def stuck(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one of eight rows of logits, the same in the whole batch, with labels drawn from it."""
    logits = np.random.default_rng(8).normal(size=(8, 3))[rng.integers(0, 8, rows if rows > 1000 else 1)]
    logits = np.broadcast_to(logits, (rows, 3))
    return logits, _drawn(softmax(logits, axis=1), rng)


NULLS = {
    "confident, accuracy 0.99": (confident, "ts", 1000, True),
    "confident, few rows": (confident, "bayes", 100, True),
    "rare classes that look alike": (rare, "bayes-bias", 100, True),
    "labels in turn": (in_turn, "ts", 16_000, True),
    "equal batches": (stuck, "ts", 2000, False),
}
"""Rows, method, rows of the fit, and whether rows of a day are independent: then shifts are tested, too."""


def hard_cases(name: str, repeats: int, days: int, rows: int) -> tuple[float, float]:
    """Return the shares of unchanged calibrators with an alarm in a year, with labels and without."""
    draw, method, fit_rows, independent = NULLS[name]
    alarms = np.zeros((repeats, 2), bool)
    for seed in range(repeats):
        rng = np.random.default_rng((seed, 11))
        calibrator = make_calibrator(method).fit(*draw(rng, fit_rows))
        limits, labelled, seen = allowed(calibrator.model_), [], []
        logits, labels = zip(*(draw(rng, rows) for _ in range(days)), strict=True)
        probs = np.split(calibrator.predict_proba(np.concatenate(logits)), days)
        for own, truth in zip(probs, labels, strict=True):
            labelled.append(sum_labelled(own, truth, limits))
            seen.append(sum_predictions(own, limits.baseline))
            if independent and not alarms[seed, 1]:
                alarms[seed, 1] = compare_with_baseline(seen, limits.baseline, 0.05).alarm
        cumulated = cumulate(labelled)
        for day in range(days):
            so_far = [column[: day + 2] for column in cumulated]
            if evidence_of(so_far, limits.low, limits.high)[0] >= ALARM:
                alarms[seed, 0] = True
                break
    with_labels, without = alarms.mean(axis=0)
    return float(with_labels), float(without) if independent else np.nan


def hard_table(repeats: int, days: int, rows: int) -> str:
    """Return false alarms of the classifiers for which they are likeliest."""
    lines = [
        "| classifier | method | rows of the fit | calibrators | alarm with labels | without |",
        "|---|---|---|---|---|---|",
    ]
    for name, (_, method, fit_rows, independent) in NULLS.items():
        with_labels, without = hard_cases(name, repeats, days, rows)
        told = f"{without:.1%}" if independent else "-"
        lines.append(f"| {name} | `{method}` | {fit_rows:,} | {repeats:,} | {with_labels:.1%} | {told} |")
    return "\n".join(lines)


def stable_table(repeats: int) -> str:
    """Return false alarms by rows of the fit and rows of a check."""
    lines = [
        "| rows of the fit | rows of a check | checks | calibrators | with an alarm | weeks on watch "
        "| outside the limits |",
        "|---|---|---|---|---|---|---|",
    ]
    for fit_rows in (200, 2000):
        for (rows, checks), shares in zip(YEAR, false_alarms(fit_rows, repeats), strict=True):
            told = " | ".join(f"{share:.1%}" for share in shares)
            lines.append(f"| {fit_rows:,} | {rows:,} | {checks} | {repeats:,} | {told} |")
    return "\n".join(lines)


def power_table(repeats: int, days: int) -> str:
    """Return days until an alarm by kind of change, and what was advised."""
    lines = [
        "| change | rows of the fit | rows a day | seen | median days until watch | until the alarm "
        "| advice |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for fit_rows, rows in ((2000, 10), (2000, 100), (2000, 1000), (200, 100)):
            found = detection(kind, fit_rows, rows, repeats, days)
            told = ", ".join(f"{name} {n / repeats:.0%}" for name, n in found["advice"].most_common())
            watch, alarm = (
                f"{found[name]:.0f}" if np.isfinite(found[name]) else "-" for name in ("watch", "median")
            )
            lines.append(
                f"| {kind} | {fit_rows:,} | {rows:,} | {found['seen']:.0%} | {watch} | {alarm} "
                f"| {told or '-'} |"
            )
    return "\n".join(lines)


def shift_table(repeats: int, days: int) -> str:
    """Return alarms without labels by kind of change."""
    lines = ["| change | alarms without labels | median days until the alarm |", "|---|---|---|"]
    for kind in (None, *KINDS):
        found = shift_looks(kind, 2000, 100, repeats, days)
        median = f"{found['median']:.0f}" if np.isfinite(found["median"]) else "-"
        lines.append(f"| {kind or 'none'} | {found['alarms']:.0%} | {median} |")
    return "\n".join(lines)


def write(name: str, content: str) -> None:
    """Put a table between its marks in the page."""
    text = PAGE.read_text(encoding="utf-8")
    mark = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
    text = re.sub(mark, lambda found: f"{found[1]}{content}\n{found[2]}", text, flags=re.S)
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description="Figures of docs/monitoring.md.")
    parser.add_argument("--write", action="store_true", help="put them into docs/monitoring.md")
    parser.add_argument("--repeats", type=int, default=1000, help="unchanged calibrators in each case")
    arguments = parser.parse_args()
    tables = {
        "false alarms": lambda: stable_table(arguments.repeats),
        "hard cases": lambda: hard_table(arguments.repeats, 52, 100),
        "power": lambda: power_table(arguments.repeats // 10, CHANGES_AFTER + 200),
        "shift": lambda: shift_table(arguments.repeats // 10, CHANGES_AFTER + 100),
    }
    for name, make in tables.items():
        content = make()
        print(f"{name}\n\n{content}\n", flush=True)
        if arguments.write:
            write(name, content)


if __name__ == "__main__":
    main()
