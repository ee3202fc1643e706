"""Measure what should replace the classes that an API with the k largest log-probabilities leaves out.

    python benchmarks/listed_log_probs.py TASK

prints the table of docs/how-to/language-models.md: log loss and ECE on the test rows of a task file, with
`bayes` fitted to 1,000 validation rows, averaged over five draws. `spread` shares the rest of the probability
among the classes that are not listed; `other` adds one column for all of them; `masked` leaves them out, with
the rows whose label is one of them.
"""

import argparse

import numpy as np

import temperance

DRAWS, ROWS = 5, 1_000


def log_softmax(logits):
    """Return log-probabilities."""
    shifted = logits.astype(float) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


class Listed:
    """Rows as an API shows them: the k largest log-probabilities in descending order, and the rest."""

    def __init__(self, log_probs, labels, k):
        self.all, self.labels, self.k = log_probs, labels, k
        self.columns = np.argsort(-log_probs, axis=1)[:, :k]
        self.top = np.take_along_axis(log_probs, self.columns, axis=1)
        self.rest = np.maximum(1 - np.exp(self.top).sum(axis=1), 1e-6)
        found = self.columns == labels[:, None]
        self.places = np.where(found.any(axis=1), found.argmax(axis=1), k)

    def spread(self):
        """Return all classes; those not listed share the rest."""
        n_others = self.all.shape[1] - self.k
        full = np.repeat(np.log(self.rest / n_others)[:, None], self.all.shape[1], axis=1)
        np.put_along_axis(full, self.columns, self.top, axis=1)
        return full

    def other(self):
        """Return the listed classes and one column for the others."""
        return np.column_stack([self.top, np.log(self.rest)])


def score(way, fitted, tested, rows):
    """Fit to some rows, and return log loss and ECE over all classes; the loss of `masked` is not defined."""
    n_others = tested.all.shape[1] - tested.k
    cal = temperance.BayesianTemperatureScaling()
    if way in ("all", "spread"):
        read = (lambda listed: listed.all) if way == "all" else Listed.spread
        probs = cal.fit(read(fitted)[rows], fitted.labels[rows]).predict_proba(read(tested))
        return temperance.metrics.nll(probs, tested.labels), temperance.metrics.ece(probs, tested.labels)
    if way == "other":
        cal.fit(fitted.other()[rows], fitted.places[rows], positions=True)
        probs = cal.predict_proba(tested.other())
        extra = np.log(n_others) * np.mean(tested.places == tested.k)
        return temperance.metrics.nll(probs, tested.places) + extra, temperance.metrics.ece(
            probs, tested.places
        )
    kept = rows[fitted.places[rows] < fitted.k]
    probs = cal.fit(fitted.top[kept], fitted.places[kept], positions=True).predict_proba(tested.top)
    return np.inf, temperance.metrics.ece(np.column_stack([probs, np.zeros(len(probs))]), tested.places)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", help="task file with logits_val, labels_val, logits_test, labels_test")
    data = np.load(parser.parse_args().task)
    parts = {part: (log_softmax(data[f"logits_{part}"]), data[f"labels_{part}"]) for part in ("val", "test")}
    print("| listed | way | log loss | ECE |\n|---|---|---|---|")
    for k in (5, 20):
        fitted, tested = (Listed(*parts[part], k) for part in ("val", "test"))
        for way in ("all", "spread", "other", "masked"):
            draws = [
                np.random.default_rng(draw).permutation(len(fitted.labels))[:ROWS] for draw in range(DRAWS)
            ]
            nll, ece = np.mean([score(way, fitted, tested, rows) for rows in draws], axis=0)
            print(f"| {k} | {way} | {nll:.3f} | {100 * ece:.1f}% |")


if __name__ == "__main__":
    main()
