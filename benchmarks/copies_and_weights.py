"""Tell copies from rows of equal scores; cover with weights, and where few predictions are correct.

    python benchmarks/copies_and_weights.py                     runs the simulations and fills coverage.md
    python benchmarks/copies_and_weights.py --simulations 50    a quick look, which fills the page too

Labels are drawn from known probabilities; scores have these logits times a factor, so that ties of rows that
are too even or too extreme are among them.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product

import numpy as np
from coverage_of_intervals import LEVEL, PAGE
from scipy.special import softmax

from temperance.inputs.copies import find_copies
from temperance.metrics.intervals import proportion_interval
from temperance.metrics.predictions import check_rows

FACTORS = (0.4, 1.0, 3.0)
STATED = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
WEIGHTS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal, s.d. 1 of the logarithm": lambda rng, n: np.exp(rng.normal(size=n)),
    "lognormal, s.d. 1.5": lambda rng, n: np.exp(1.5 * rng.normal(size=n)),
    "20 in one of five rows, else 1": lambda rng, n: np.where(rng.uniform(size=n) < 0.2, 20.0, 1.0),
    "20 in one of fifty rows, else 1": lambda rng, n: np.where(rng.uniform(size=n) < 0.02, 20.0, 1.0),
}
ACCURACIES, SIZES = (0.05, 0.5, 0.8, 0.95, 0.99, 0.998), (30, 100, 1000)
SELDOM = {(100, 0.4): "2.6%", (100, 0.6): "4%", (500, 0.8): "1.5%"}
"""The accuracy by number of classes and standard deviation of the logits."""


def draw(rng, n_rows, n_classes, factor=1.0, offset=0.0, spread=2.0):
    """Return probabilities of classes, the k-th with a logit lower by k times `offset`, and labels."""
    logits = spread * rng.normal(size=(n_rows, n_classes)) - offset * np.arange(n_classes)
    below = softmax(logits, axis=1).cumsum(axis=1) < rng.uniform(size=(n_rows, 1))
    return softmax(factor * logits, axis=1), np.minimum(below.sum(axis=1), n_classes - 1)


def votes(trees, n_classes, offset=0.0):
    """Return a way to draw the shares of votes."""

    def drawn(rng, n_rows, factor):
        probs, labels = draw(rng, n_rows, n_classes, factor, offset)
        return rng.multinomial(trees, probs) / trees, labels

    return drawn


def rounded(decimals):
    """Return a way to draw rounded probabilities of two classes."""

    def drawn(rng, n_rows, factor):
        probs, labels = draw(rng, n_rows, 2, factor)
        return probs.round(decimals), labels

    return drawn


def stated(rng, n_rows, factor):
    """Draw answers, each with one of seven confidences."""
    probs, labels = draw(rng, n_rows, 2, factor)
    said = STATED[np.abs(probs.max(axis=1)[:, None] - STATED).argmin(axis=1)]
    first = probs[:, 0] >= 0.5
    return np.where((first[:, None] == [True, False]), said[:, None], 1 - said[:, None]), labels


def repeated(times, n_classes):
    """Return a way to draw rows, each several times."""

    def drawn(rng, n_rows, factor):
        probs, labels = draw(rng, n_rows // times, n_classes, factor)
        return np.repeat(probs, times, axis=0), np.repeat(labels, times)

    return drawn


def bootstrapped(rng, n_rows, factor):
    """Draw rows, and as many of these with replacement."""
    probs, labels = draw(rng, n_rows, 3, factor)
    rows = rng.integers(n_rows, size=n_rows)
    return probs[rows], labels[rows]


def oversampled(rng, n_rows, factor):
    """Draw rows, about one in 50 of the second class, and repeat these until both classes are as frequent."""
    probs, labels = draw(rng, n_rows, 2, factor, 7.0)
    rare, others = np.flatnonzero(labels), np.flatnonzero(labels == 0)
    rows = np.concatenate([others, rng.choice(rare, len(others))])
    return probs[rows], labels[rows]


DIFFERENT = {
    "votes of 3 trees": votes(3, 2),
    "votes of 20 trees": votes(20, 2),
    "votes of 100 trees": votes(100, 2),
    "votes of 20 trees, 5% positives": votes(20, 2, 6.0),
    "votes of 20 trees, 5 classes": votes(20, 5),
    "votes of 100 trees, 10 classes": votes(100, 10),
    "two decimals": rounded(2),
    "one decimal": rounded(1),
    "stated confidences": stated,
}
COPIES = {
    "each row twice": repeated(2, 2),
    "each row twice, 10 classes": repeated(2, 10),
    "each row ten times": repeated(10, 3),
    "bootstrap": bootstrapped,
    "oversampled, 2% positives": oversampled,
}


def share_called(drawn, n_rows, simulations):
    """Return the lowest and the highest share of samples that are called copies, over the factors."""
    shares = []
    for factor in FACTORS:
        rngs = map(np.random.default_rng, range(simulations))
        samples = (drawn(rng, n_rows, factor) for rng in rngs)
        shares.append(np.mean([find_copies(*one, lambda p: p.max(axis=1)) is not None for one in samples]))
    return min(shares), max(shares)


def covered_accuracy(kind, accuracy, n_rows, simulations):
    """Return how often the interval of a weighted accuracy contains it."""
    inside = 0
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        correct = (rng.uniform(size=n_rows) < accuracy).astype(float)
        found = proportion_interval(correct, WEIGHTS[kind](rng, n_rows), LEVEL)
        inside += found.low <= accuracy <= found.high
    return inside / simulations


def covered_gap(n_classes, spread, n_rows, simulations):
    """Return how often the interval of the gap of a calibrated classifier contains 0, and lies above it."""
    inside = above = 0
    for seed in range(simulations):
        found = check_rows(*draw(np.random.default_rng(seed), n_rows, n_classes, spread=spread)).gap(LEVEL)
        inside += found.low <= 0 <= found.high
        above += found.low > 0
    return inside / simulations, above / simulations


def tables(simulations):
    """Yield the lines of the tables."""
    yield f"{simulations:,} samples of each kind, size and factor of the logits (0.4, 1 and 3)."
    yield ""
    yield "| rows | called copies, 500 rows | 2,000 rows |"
    yield "|---|---|---|"
    for name, drawn in (DIFFERENT | COPIES).items():
        spans = (share_called(drawn, n, simulations) for n in (500, 2000))
        cells = (
            f"{100 * low:.1f} to {100 * high:.1f}%" if low < high else f"{100 * low:g}%"
            for low, high in spans
        )
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    yield f"| weights | accuracy covered, {' | '.join(f'{n:,} rows' for n in SIZES)} |"
    yield "|---" * (1 + len(SIZES)) + "|"
    for kind in WEIGHTS:
        cells = []
        for n_rows in SIZES:
            found = [100 * covered_accuracy(kind, one, n_rows, simulations) for one in ACCURACIES]
            cells.append(f"{min(found):.1f} to {max(found):.1f}%")
        yield f"| {kind} | {' | '.join(cells)} |"
    yield ""
    yield "| classes, accuracy | rows | gap covered | called overconfident |"
    yield "|---|---|---|---|"
    for (at, accuracy), n_rows in product(SELDOM.items(), SIZES):
        covered, above = covered_gap(*at, n_rows, simulations)
        yield f"| {at[0]}, {accuracy} | {n_rows:,} | {100 * covered:.1f}% | {100 * above:.1f}% |"


def main() -> None:
    """Run the simulations and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = "\n".join(tables(options.simulations))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- copies and weights -->\n")
    _, _, after = rest.partition("<!-- end of copies and weights -->\n")
    marks = "<!-- copies and weights -->", "<!-- end of copies and weights -->"
    PAGE.write_text(f"{before}{marks[0]}\n\n{lines}\n\n{marks[1]}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
