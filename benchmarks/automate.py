"""Measure whether the promise of `temperance.automate` holds, and how many rows it covers.

    python benchmarks/automate.py [--simulations 2000] [--write]

Held-out rows are drawn from simulated classifiers whose error rate at each confidence is known: calibrated;
raw, with logits twice too large; with 0.5 % of the labels replaced at random; and in groups of ten whose
labels are dependent (a row takes the random number of its group with probability 0.9). A promise is broken
if the error rate of all rows above the threshold, from 400,000 other rows, is larger than `max_error`; it may
be in 5 % of the simulations. "knowing all" is the largest share of rows with an error rate of at most
`max_error`. With --write, the table goes into docs/how-to/decisions.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from generated_blocks import fill_blocks
from numpy.typing import NDArray

from temperance import decisions
from temperance.data import simulate

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "decisions.md"
SIZES = {100: 0.1, 500: 0.05, 5000: 0.02}
"""Held-out rows, and the largest error to promise."""
DELTA, GROUP, SHARED, NOISE, SHARPNESS = 0.05, 10, 0.9, 0.005, 12.0
POPULATION = 400_000
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """A classifier, how its labels come about, and whether `groups` are passed."""

    name: str
    raw: bool = False
    noise: float = 0.0
    grouped: bool = False
    told: bool = False

    def rows(self, n_rows: int, seed: int) -> tuple[Vector, Vector]:
        """Return the confidence of rows and their true error rate."""
        task = simulate(
            n_rows,
            10,
            temperature=2.0,
            class_spread=0.0,
            entropy_slope=0.0,
            sharpness=SHARPNESS,
            random_state=seed,
        )
        probs = task.probabilities
        top = probs.argmax(axis=1)
        if self.raw:
            probs = np.exp(task.logits - task.logits.max(axis=1, keepdims=True))
            probs /= probs.sum(axis=1, keepdims=True)
        at = np.arange(n_rows), top
        return probs[at], self.noise + (1 - self.noise) * (1 - task.probabilities[at])


WORLDS = (
    World("calibrated"),
    World("raw, overconfident", raw=True),
    World("0.5% of the labels are wrong", noise=NOISE),
    World("dependent in groups of 10, `groups` passed", grouped=True, told=True),
    World("dependent in groups of 10, `groups` not passed", grouped=True),
)


def measure(world: World, n_rows: int, max_error: float, simulations: int) -> list[str]:
    """Return a line of the table."""
    confidence, error = world.rows(POPULATION, 10**6)
    order = np.argsort(-confidence)
    confidence, risk = confidence[order], np.cumsum(error[order]) / np.arange(1, POPULATION + 1)
    best = (np.flatnonzero(risk <= max_error).max(initial=-1) + 1) / POPULATION
    rng, broken, shares = np.random.default_rng(0), 0, []
    for seed in range(simulations):
        found, wrong = world.rows(n_rows, seed)
        draws = rng.random(n_rows)
        groups = np.arange(n_rows) // GROUP
        if world.grouped:
            draws = np.where(rng.random(n_rows) < SHARED, rng.random(n_rows // GROUP)[groups], draws)
        # The top class first; how the rest is divided changes nothing.
        probs = np.column_stack([found, np.repeat((1 - found)[:, None] / 9, 9, axis=1)])
        rule = decisions.automate(
            probs,
            (draws < wrong).astype(int),
            max_error,
            DELTA,
            groups=groups if world.told else None,
            positions=True,
        )
        covered = 0
        if rule.threshold is not None:
            covered = int(np.searchsorted(-confidence, -rule.threshold))
            broken += covered > 0 and risk[covered - 1] > max_error
        shares.append(covered / POPULATION)
    rate = broken / simulations
    half = 1.96 * np.sqrt(max(rate * (1 - rate), DELTA * (1 - DELTA)) / simulations)
    none = np.mean(np.array(shares) == 0)
    return [
        world.name, f"{n_rows:,}", f"{100 * max_error:g}%", f"{100 * rate:.1f}% ± {100 * half:.1f}",
        f"{100 * none:.0f}%", f"{100 * np.mean(shares):.0f}%", f"{100 * best:.0f}%",
    ]  # fmt: skip


def table(simulations: int) -> str:
    """Return all lines as Markdown."""
    decisions._CURVE_POINTS = 1  # curves take most of the time, and are not looked at here
    head = ["rows are", "N", "error ≤", "broken promises", "no threshold", "mean share", "knowing all"]
    lines = [head, ["---"] * len(head)]
    for world in WORLDS:
        for n_rows, max_error in SIZES.items():
            lines.append(measure(world, n_rows, max_error, simulations))
            print(" | ".join(lines[-1]), flush=True)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    text = table(given.simulations)
    if given.write:
        PAGE.write_text(fill_blocks(PAGE.read_text(encoding="utf-8"), {"promise": text}), encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
