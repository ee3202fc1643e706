"""Parts of `events.py` about what is done: the recommendation, weekly checks, their advice, automation.

They use what the commands use (`compare`, `monitoring.check`, `automate`) as a user would. "Before" is what
version 0.3.0 did, "expected" what was found when the method was designed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from events_judging import kind_in_words, source
from events_tables import Table, goal, mean, samples, share
from events_worlds import SCALES, TWO, draw_labels, two_columns
from scipy.special import expit, logit, softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from temperance import InputError, automate, compare, make_calibrator, monitoring
from temperance.metrics import nll

TASKS = Path(__file__).resolve().parents[2] / "shared" / "data" / "tasks"
METHODS = ("none", "bayes", "bayes-bias")
WEEKS, CHANGE = 26, 6  # checks, and the first that the change has reached
NEW_ROWS = 20_000  # on which repairs are compared

# (positives, rows): the excess log loss of the recommendation in percent, before and expected.
EXCESS = {
    ("2%", 50): (9.6, 2.7), ("2%", 200): (3.8, 1.0), ("2%", 1000): (0.50, 0.17), ("2%", 4000): (0.36, 0.01),
    ("10%", 50): (3.0, 3.1), ("10%", 200): (1.5, 0.67), ("10%", 1000): (0.26, 0.01),
    ("10%", 4000): (0.30, 0.0), ("50%", 50): (0.92, 1.8), ("50%", 200): (0.37, 0.47),
    ("50%", 1000): (0.23, 0.06), ("50%", 4000): (0.34, 0.01),
}  # fmt: skip
EXCESS_OF_SEVERAL = {200: 0.47, 1000: 0.14}

# (kind, change, rows of the fit, rows a week): alarms before, expected, and median weeks to them.
MONITORED = {
    ("2%", "none", 5000, 1600): (0, 0, None), ("2%", "none", 1000, 1600): (0.2, 1.2, None),
    ("24%", "none", 3000, 800): (0, 0, None), ("24%", "none", 300, 800): (0, 0.5, None),
    ("balanced", "none", 1000, 800): (0, 0.3, None), ("2%", "risk x 1.6", 5000, 1600): (46, 91, 7),
    ("2%", "labels 0.032", 5000, 1600): (63, 97, 5), ("24%", "log-odds +0.8", 3000, 800): (100, 100, 1),
    ("24%", "labels 0.314", 3000, 800): (89, 100, 3), ("24%", "slope 0.55", 3000, 800): (98, 100, 3),
    ("24%", "inputs move", 3000, 800): (0, 0, None),
}  # fmt: skip
MONITORED_OF_SEVERAL = {
    (3, "rare, none", 3000, 1000): (0, 0, None), (3, "rare, odds x 2", 3000, 1000): (65, 92, 7),
    (10, "none", 2000, 800): (0, 0, None), (10, "odds x 2", 2000, 800): (35, 100, 5),
    (30, "none", 3000, 1000): (0, 0, None), (30, "odds x 2", 3000, 1000): (0, 72, 13),
}  # fmt: skip

# (kind, change, rows of the fit, rows): advice to adapt before, expected, and the excess of the advice.
REPAIRED = {
    ("24%", "labels 0.314", 3000, 800): (7, 90, 0.12), ("24%", "labels 0.5", 3000, 800): (32, 85, 0.17),
    ("24%", "log-odds +0.8", 3000, 800): (85, 0, 0.17), ("24%", "log-odds +0.8", 3000, 2400): (77, 0, 0.0),
    ("24%", "slope 0.55", 3000, 2400): (12, 0, 0.0), ("balanced", "labels 0.3", 1000, 500): (75, 85, 0.24),
    ("2%", "labels 0.032", 5000, 6400): (0, 75, 0.10), ("2%", "labels 0.06", 5000, 1600): (7, 87, 0.15),
    ("2%", "risk x 1.6", 5000, 6400): (0, 73, 0.08),
}  # fmt: skip
REPAIRED_OF_SEVERAL = {
    (3, "labels x 3", 2000, 500): (None, 87, 0.21), (3, "labels x 3", 2000, 2000): (None, 88, 0.06),
    (3, "odds x 2.2", 2000, 2000): (None, 0, 0.0), (3, "slope 0.6", 2000, 2000): (None, 0, 0.0),
    (10, "labels x 3", 2000, 2000): (None, 93, 0.04), (10, "odds x 2.2", 2000, 2000): (None, 5, 0.08),
    (10, "slope 0.6", 2000, 2000): (None, 0, 0.0),
}  # fmt: skip

# (positives, largest error in percent): how many rules about the top class are refused.
REFUSED = {("2%", 2): 54, ("2%", 5): 100}


def sample(kind, change, n, rng):
    """Draw logits and labels after a change; "labels" changes frequencies, to a share or by a factor."""
    words, _, amount = change.removeprefix("rare, ").rpartition(" ")
    if words.startswith("labels"):
        x, y = sample(kind, "none", 40 * n, rng)
        wanted = np.array([1 - float(amount), float(amount)]) if words == "labels" else np.bincount(y) * 1.0
        wanted[0] *= float(amount) if words == "labels x" else 1.0
        counts = rng.multinomial(n, wanted / wanted.sum())
        at = [rng.choice(np.flatnonzero(y == k), count) for k, count in enumerate(counts)]
        return x[np.concatenate(at)], y[np.concatenate(at)]
    if kind not in TWO:
        x = rng.normal(0, SCALES[kind], (n, kind))
        x[:, 0] -= 4.5 * change.startswith("rare")
        true = float(amount) * x if words == "slope" else x.copy()
        true[:, 0] += np.log(float(amount)) if words == "odds x" else 0.0
        return x, draw_labels(softmax(true, axis=1), rng)
    x = TWO[kind](n, rng) + 0.5 * (change == "inputs move")
    true = -1.9 + float(amount) * (x + 1.9) if words == "slope" else x + 0.8 * (words == "log-odds")
    risk = float(amount) if words == "risk x" else 1.0
    return x, (rng.random(n) < risk * expit(true)).astype(int)


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


def history(kind, change, fit_rows, size, rng):
    """Yield of each weekly check whether there is an alarm, and whether it says keep."""
    still = "rare, none" if change.startswith("rare") else "none"
    calibrator = make_calibrator("bayes-bias").fit(*sample(kind, still, fit_rows, rng))
    with TemporaryDirectory() as folder:
        for week in range(1, WEEKS + 1):
            rows = sample(kind, change if week >= CHANGE else still, size, rng)
            found = monitoring.check(calibrator, *rows, history=Path(folder) / "checks.jsonl")
            yield found.alarm, found.state == "keep"


def monitor_part(n, seed):
    """Count false alarms of weekly checks, and weeks until a change is seen, with two classes."""
    yield monitored("monitor", MONITORED, n, seed)


def monitor3_part(n, seed):
    """Count the same with several classes, half as often."""
    yield monitored("monitor3", MONITORED_OF_SEVERAL, n, seed)


def monitored(name, cells, n, seed):
    """Return the table of alarms by cell."""
    rows = []
    for (kind, change, fit_rows, size), (before, expected, weeks) in cells.items():
        rng = source(seed, "monitor", kind, change, fit_rows)
        told = np.array([list(history(kind, change, fit_rows, size, rng)) for _ in range(n)])
        alarms, moves = told[..., 0], ~told[..., 1]
        medians = ["-", "-"]
        if weeks is not None:
            moves = moves[:, CHANGE - 1 :]
            medians = [
                f"{np.median(np.where(hits.any(axis=1), hits.argmax(axis=1) + 1.0, np.inf)):.0f}"
                for hits in (alarms[:, CHANGE - 1 :], moves)
            ]
        cell = (
            kind_in_words(kind),
            change,
            f"{fit_rows:,}",
            f"{size:,}",
            goal(before),
            goal(expected),
            goal(weeks),
        )
        rows.append((*cell, share(alarms.any(axis=1)), *medians, mean(100 * moves.mean(axis=1), 1)))
    head = (
        *(
            "rows of",
            "change",
            "rows of the fit",
            "rows a week",
            "alarms before",
            "expected",
            "weeks expected",
        ),
        *("alarms", "weeks to the alarm", "weeks to not keep", "weeks of not keep"),
    )
    return Table(name, head, rows, f"{samples(n)} {WEEKS} weekly checks, changed from week {CHANGE} on.")


def adapt_part(n, seed):
    """Count the advice to adapt or to refit, and what following it costs, with two classes."""
    yield repaired("adapt", REPAIRED, n, seed)


def adapt3_part(n, seed):
    """Count the same with several classes."""
    yield repaired("adapt3", REPAIRED_OF_SEVERAL, n, seed)


def repaired(name, cells, n, seed):
    """Return the table of the advice by cell."""
    rows = []
    for (kind, change, fit_rows, size), (before, expected, excess) in cells.items():
        rng, actions, losses = source(seed, "adapt", kind, change, size), [], []
        for _ in range(n):
            calibrator = make_calibrator("bayes-bias").fit(*sample(kind, "none", fit_rows, rng))
            now, (new, labels) = sample(kind, change, size, rng), sample(kind, change, NEW_ROWS, rng)
            actions.append(monitoring.check(calibrator, *now).action)
            counts = np.bincount(now[1], minlength=calibrator.n_features_in_) + 0.5
            repairs = {
                "keep": calibrator,
                "adapt": calibrator.adapt(priors=counts / counts.sum()),
                "refit": make_calibrator("bayes-bias").fit(*now),
            }
            own = {key: nll(one.predict_proba(new), labels) for key, one in repairs.items()}
            advised = own.get(actions[-1], own["keep"])
            losses.append(100 * (np.array([advised, *own.values()]) / min(own.values()) - 1))
        told = (share([one == action for one in actions]) for action in ("adapt", "refit"))
        cell = kind_in_words(kind), change, f"{size:,}", goal(before), goal(expected)
        rows.append((*cell, *told, goal(excess), *map(mean, np.transpose(losses))))
    head = (
        *("rows of", "change", "rows", "adapt before", "adapt expected", "adapt", "refit"),
        *("excess expected", "excess of the advice", "if kept", "if adapted", "if refitted"),
    )
    return Table(
        name, head, rows, f"{samples(n)} Excess of the log loss on {NEW_ROWS:,} new rows, in percent."
    )


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
