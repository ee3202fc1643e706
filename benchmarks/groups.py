"""Log loss on new groups of calibrators that know the groups of their rows, and of those that do not.

    python benchmarks/groups.py            # both tables of docs/how-to/groups.md, in Markdown

Simulated groups have their own class frequencies, class bias and temperature. The real ones are files: a
classifier says from which package a line of Python comes, and lines of one file resemble each other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from temperance import make_calibrator

Rows = tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]
"""Logits, labels and groups."""

N_CLASSES, DRAWS = 5, 4
PACKAGES = ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "networkx")
MIN_LENGTH = 20  # characters of a line
METHODS = ("bayes", "bayes-bias")


def simulate(n_groups: int, size: int, correlation: float, rng: np.random.Generator) -> Rows:
    """Draw groups whose biases have this intra-group correlation on the logistic scale."""
    deviation = np.sqrt(correlation / (1 - correlation) * np.pi**2 / 3)
    groups = np.arange(n_groups).repeat(size)
    frequencies = rng.dirichlet(np.full(N_CLASSES, 0.5), n_groups).cumsum(axis=1)
    shown = (frequencies[groups] > rng.random((len(groups), 1))).argmax(axis=1)
    logits = 1.5 * rng.normal(size=(len(groups), N_CLASSES))
    logits[np.arange(len(groups)), shown] += rng.normal(3, 1.5, len(groups))
    temperatures = 1.7 * np.exp(0.25 * deviation * rng.normal(size=n_groups))
    biases = deviation * rng.normal(size=(n_groups, N_CLASSES)) + np.linspace(-0.5, 0.5, N_CLASSES)
    probs = softmax(logits / temperatures[groups, None] + biases[groups], axis=1)
    return logits, (probs.cumsum(axis=1) > rng.random((len(groups), 1))).argmax(axis=1), groups


def lines_by_file(rng: np.random.Generator) -> Iterator[tuple[int, list[str]]]:
    """Yield the package and the lines of installed source files, in random order."""
    found = []
    for label, name in enumerate(PACKAGES):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        found += [(label, path) for path in sorted(Path(spec.origin).parent.rglob("*.py"))]
    for i in rng.permutation(len(found)):
        label, path = found[i]
        lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
        lines = [line for line in lines if len(line) >= MIN_LENGTH]
        if len(lines) >= 100:
            yield label, lines


def files(n_train: int, n_files: int, n_lines: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return logits of lines of files that the classifier has not seen: to calibrate, and to test."""
    source = lines_by_file(rng)

    def take(n: int, size: int) -> tuple[list[str], NDArray[np.intp], NDArray[np.intp]]:
        texts, labels, groups = [], [], []
        for group in range(n):
            label, lines = next(source)
            chosen = rng.choice(len(lines), size, replace=False)
            texts += [lines[i] for i in chosen]
            labels += [label] * size
            groups += [group] * size
        return texts, np.array(labels, np.intp), np.array(groups, np.intp)

    vectors = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=1 << 16)
    texts, labels, _ = take(n_train, 40)
    classifier = SGDClassifier(loss="log_loss", alpha=1e-5, random_state=0, max_iter=20, tol=None)
    classifier.fit(vectors.transform(texts), labels)
    parts = []
    for n, size in ((n_files, n_lines), (300, 20)):
        texts, labels, groups = take(n, size)
        parts.append((classifier.decision_function(vectors.transform(texts)), labels, groups))
    return parts[0], parts[1]


def losses(val: Rows, test: Rows) -> list[float]:
    """Return the log loss of each method, without and with groups."""
    logits, labels, groups = val
    found = []
    for given in (None, groups):
        for method in METHODS:
            probs = make_calibrator(method).fit(logits, labels, groups=given).predict_proba(test[0])
            found.append(-np.log(probs[np.arange(len(test[1])), test[1]]).mean())
    return found


def table(name: str, cases: list[tuple[str, Callable[[np.random.Generator], tuple[Rows, Rows]]]]) -> None:
    """Print the mean losses of each case, and the ratio of bayes-bias to bayes."""
    print(f"\n| {name} | bayes | bayes-bias | ratio | bayes, groups | bayes-bias, groups | ratio |")
    print("|---" * 7 + "|")
    for words, draw in cases:
        means = np.mean([losses(*draw(np.random.default_rng(seed))) for seed in range(DRAWS)], axis=0)
        without, known = (f"{a:.3f} | {b:.3f} | {b / a:.3f}" for a, b in means.reshape(2, 2))
        print(f"| {words} | {without} | {known} |", flush=True)


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    simulated = [
        (
            f"{correlation}, {n_groups} of {size}",
            lambda rng, c=correlation, n=n_groups, s=size: (
                simulate(n, s, c, rng),
                simulate(500, 20, c, rng),
            ),
        )
        for correlation in (0.1, 0.5)
        for size, numbers in ((20, (10, 50, 250)), (500, (5, 10, 20)))
        for n_groups in numbers
    ]
    table("correlation, groups", simulated)
    real = [
        (f"{n_files} files of {n_lines} lines", lambda rng, n=n_files, s=n_lines: files(150, n, s, rng))
        for n_lines, numbers in ((20, (10, 50, 250)), (100, (10, 50, 100)))
        for n_files in numbers
    ]
    table("groups", real)


if __name__ == "__main__":
    main()
