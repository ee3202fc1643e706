"""Parts of `events.py` about what is done: the recommendation and automation; checks: `monitoring_events.py`.

They use what the commands use (`compare` and `automate`) as a user would. "Before" is what version 0.3.0 did,
"expected" what was found when the method was designed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from events_judging import source
from events_tables import Table, goal, mean, share
from events_worlds import two_columns
from scipy.special import logit, softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from temperance import InputError, automate, compare, make_calibrator
from temperance.metrics import nll

TASKS = Path(__file__).resolve().parents[2] / "shared" / "data" / "tasks"
METHODS = ("none", "bayes", "bayes-bias")

# (positives, rows): the excess log loss of the recommendation in percent, before and expected.
EXCESS = {
    ("2%", 50): (9.6, 2.7), ("2%", 200): (3.8, 1.0), ("2%", 1000): (0.50, 0.17), ("2%", 4000): (0.36, 0.01),
    ("10%", 50): (3.0, 3.1), ("10%", 200): (1.5, 0.67), ("10%", 1000): (0.26, 0.01),
    ("10%", 4000): (0.30, 0.0), ("50%", 50): (0.92, 1.8), ("50%", 200): (0.37, 0.47),
    ("50%", 1000): (0.23, 0.06), ("50%", 4000): (0.34, 0.01),
}  # fmt: skip
EXCESS_OF_SEVERAL = {200: 0.47, 1000: 0.14}

# (positives, largest error in percent): how many rules about the top class are refused.
REFUSED = {("2%", 2): 54, ("2%", 5): 100}


def made_tables(seeds):
    """Yield the share of positives, and log-odds and labels of rows that a classifier has not seen."""
    for weight, seed in ((w, s) for w in (0.98, 0.9, 0.5) for s in range(seeds)):
        inputs, y = make_classification(
            *(32000, 15),
            n_informative=6,
            weights=[weight],
            flip_y=0.01,
            class_sep=0.9,
            random_state=100 + seed,
        )
        for model in (
            HistGradientBoostingClassifier(random_state=0),
            GaussianNB(),
            LogisticRegression(class_weight="balanced" if seed % 2 else None, max_iter=500),
        ):
            p = model.fit(inputs[:4000], y[:4000]).predict_proba(inputs[4000:])[:, 1]
            yield f"{100 - 100 * weight:.0f}%", logit(np.clip(p, 1e-12, 1 - 1e-12)), y[4000:]


def followed(fit, held, new):
    """Return the excess log loss on new rows of each method and of the recommended one, and O/E of that."""
    comparison = compare(*fit, *held, methods=METHODS[1:], draws=1, progress=False)
    probs = {
        name: np.asarray(comparison.results[name].calibrator.predict_proba(new[0]), float)
        for name in METHODS[1:]
    }
    probs["none"] = two_columns(new[0]) if new[0].ndim == 1 else softmax(new[0], axis=1)
    chosen = comparison.recommendation.method
    losses = np.array([nll(probs[name], new[1]) for name in (*METHODS, chosen)])
    return 100 * (losses / losses.min() - 1), probs[chosen][:, -1].mean() / np.mean(new[1] == new[1].max())


EXCESS_HEAD = ("rows", "cases", "before", "expected", "recommended", *METHODS)
EXCESS_WORDS = "Excess of the log loss on new rows over the best of the three, in percent of it."


def recommend_part(n, seed):
    """Measure what following `compare` costs with two classes, on n made tables of each kind."""
    found, rows = {}, []
    for number, (positives, x, y) in enumerate(made_tables(n)):
        for size in (50, 200, 1000, 4000):
            at = source(seed, "recommend", number, size).permutation(8000)
            fit, held = ((x[part], y[part]) for part in (at[:size], at[size : 2 * size]))
            if np.ptp(fit[1]) and np.ptp(held[1]):  # both classes
                cases = found.setdefault((positives, size), [])
                cases.append(followed(fit, held, (x[8000:], y[8000:])))
    for (positives, size), cases in found.items():
        excess = np.array([case[0] for case in cases])
        low, high = np.quantile([case[1] for case in cases], [0.1, 0.9])
        told = map(goal, EXCESS[positives, size]), map(mean, excess[:, [3, 0, 1, 2]].T)
        rows.append((positives, f"{size:,}", len(cases), *told[0], *told[1], f"{low:.2f} to {high:.2f}"))
    head = ("positives", *EXCESS_HEAD, "mean P / rate, 10 to 90%")
    yield Table("recommend", head, rows, EXCESS_WORDS)


def multi_part(n, seed):
    """Measure the same with 3 to 30 classes, on public tasks with n draws of rows."""
    found, rows = {}, []
    for path in sorted(TASKS.glob("*.npz")):
        task = np.load(path)
        z, y = task["logits_val"], task["labels_val"].astype(int)
        if z.ndim != 2 or not 2 < z.shape[1] <= 30:
            continue
        new = task["logits_test"][:4000].astype(float), task["labels_test"][:4000].astype(int)
        for size, draw in (
            (size, draw) for size in EXCESS_OF_SEVERAL if 2 * size <= len(z) for draw in range(n)
        ):
            at = source(seed, path.stem, size, draw).permutation(len(z))
            fit, held = ((z[part].astype(float), y[part]) for part in (at[:size], at[size : 2 * size]))
            found.setdefault(size, []).append(followed(fit, held, new)[0])
    for size, cases in found.items():
        told = map(mean, np.array(cases)[:, [3, 0, 1, 2]].T)
        rows.append((f"{size:,}", len(cases), "-", EXCESS_OF_SEVERAL[size], *told))
    yield Table("multi", EXCESS_HEAD, rows, EXCESS_WORDS)


def automate_part(n, seed):
    """Count rules that are refused, on n made tables of each kind."""
    found, rows = {}, []
    for positives, x, y in made_tables(n):
        calibrator = make_calibrator("bayes-bias").fit(x[:4000], y[:4000])
        probs, labels = np.asarray(calibrator.predict_proba(x[4000:8000])), y[4000:8000]
        for most in (1, 2, 5):
            cases = found.setdefault((positives, most), [])
            try:
                rule = automate(probs, labels, most / 100)
            except InputError:
                cases.append((1.0, 0.0, np.nan))
                continue
            decided = probs.max(axis=1) > (np.inf if rule.threshold is None else rule.threshold)
            against = decided & (probs.argmax(axis=1) != labels)
            lost = max(against[labels == k].mean() for k in (0, 1))
            cases.append((0.0, float(rule.threshold is not None), lost))
    for (positives, most), cases in found.items():
        refused, given, lost = np.transpose(cases)
        worst = f"{100 * np.nanmax(lost):.0f}" if np.isfinite(lost).any() else "-"
        told = REFUSED.get((positives, most), 0), share(refused), share(given), worst
        rows.append((positives, f"{most}%", len(cases), *told))
    head = (
        "positives",
        "largest error",
        "tables",
        "refused, expected",
        "refused",
        "a rule",
        "most of a class lost",
    )
    yield Table("automate", head, rows, "Made tables, a rule about the top class.")
