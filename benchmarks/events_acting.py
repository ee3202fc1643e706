"""Parts of `events.py` about what is done: the recommendation, weekly checks, what a change calls for, automation.

They use the commands' own functions (`compare`, `monitoring.check`, `automate`) as a user would.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from events_judging import source
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

# (positives, rows): the excess log loss of 0.3.0's recommendation, and expected, in percent.
EXCESS = {
    ("2%", 50): (9.6, 2.7), ("2%", 200): (3.8, 1.0), ("2%", 1000): (0.50, 0.17), ("2%", 4000): (0.36, 0.01),
    ("10%", 50): (3.0, 3.1), ("10%", 200): (1.5, 0.67), ("10%", 1000): (0.26, 0.01), ("10%", 4000): (0.30, 0.0),
    ("50%", 50): (0.92, 1.8), ("50%", 200): (0.37, 0.47), ("50%", 1000): (0.23, 0.06), ("50%", 4000): (0.34, 0.01),
}  # fmt: skip

# (kind, change, rows of the fit, rows a week): alarms of 0.3.0, expected alarms and median weeks to them.
MONITORED = {
    ("2%", "none", 5000, 1600): (0, 0, None), ("2%", "none", 1000, 1600): (0.2, 1.2, None),
    ("24%", "none", 3000, 800): (0, 0, None), ("24%", "none", 300, 800): (0, 0.5, None),
    ("balanced", "none", 1000, 800): (0, 0.3, None), ("2%", "risk x 1.6", 5000, 1600): (46, 91, 7),
    ("2%", "label shift to 0.032", 5000, 1600): (63, 97, 5), ("24%", "log-odds +0.8", 3000, 800): (100, 100, 1),
    ("24%", "label shift to 0.314", 3000, 800): (89, 100, 3), ("24%", "slope 0.55", 3000, 800): (98, 100, 3),
    ("24%", "inputs move", 3000, 800): (0, 0, None),
}  # fmt: skip
MONITORED_SEVERAL = {
    (3, "rare none", 3000, 1000): (0, 0, None), (3, "rare class x 2", 3000, 1000): (65, 92, 7),
    (10, "none", 2000, 800): (0, 0, None), (10, "class x 2", 2000, 800): (35, 100, 5),
    (30, "none", 3000, 1000): (0, 0, None), (30, "class x 2", 3000, 1000): (0, 72, 13),
}  # fmt: skip

# (kind, change, rows of the fit, rows): how often 0.3.0 said adapt, expected, and the excess of the advice.
REPAIRED = {
    ("24%", "label shift to 0.314", 3000, 800): (7, 90, 0.12), ("24%", "label shift to 0.5", 3000, 800): (32, 85, 0.17),
    ("24%", "log-odds +0.8", 3000, 800): (85, 0, 0.17), ("24%", "log-odds +0.8", 3000, 2400): (77, 0, 0.0),
    ("24%", "slope 0.55", 3000, 2400): (12, 0, 0.0), ("balanced", "label shift to 0.3", 1000, 500): (75, 85, 0.24),
    ("2%", "label shift to 0.032", 5000, 6400): (0, 75, 0.10), ("2%", "label shift to 0.06", 5000, 1600): (7, 87, 0.15),
    ("2%", "risk x 1.6", 5000, 6400): (0, 73, 0.08),
}  # fmt: skip
REPAIRED_SEVERAL = {
    (3, "label shift x 3", 2000, 500): (None, 87, 0.21), (3, "label shift x 3", 2000, 2000): (None, 88, 0.06),
    (3, "log-odds +0.8", 2000, 2000): (None, 0, 0.0), (3, "slope 0.6", 2000, 2000): (None, 0, 0.0),
    (10, "label shift x 3", 2000, 2000): (None, 93, 0.04), (10, "log-odds +0.8", 2000, 2000): (None, 5, 0.08),
}  # fmt: skip


def sample(kind, change, n, rng):
    """Draw logits and labels after a change."""
    words, amount = change.rsplit(" ", 1) if change[-1].isdigit() else (change, "0")
    if words.startswith("label shift"):
        x, y = sample(kind, "none", 40 * n, rng)
        share_of = np.array([1 - float(amount), float(amount)])
        if words.endswith("x"):  # the first class becomes so many times as frequent relative to the others
            share_of = np.bincount(y) * np.where(np.arange(kind) == 0, float(amount), 1.0)
        counts = rng.multinomial(n, share_of / share_of.sum())
        at = np.concatenate([rng.choice(np.flatnonzero(y == k), count) for k, count in enumerate(counts)])
        return x[at], y[at]
    if kind not in TWO:
        x = rng.normal(0, SCALES[kind], (n, kind))
        x[:, 0] -= 4.5 * words.startswith("rare")
        shift = np.log(2) if words.endswith("class x") else 0.8 if words == "log-odds" else 0.0
        true = 0.6 * x if words == "slope" else x + shift * (np.arange(kind) == 0)
        return x, draw_labels(softmax(true, axis=1), rng)
    x = TWO[kind](n, rng) + 0.5 * (words == "inputs move")
    p = expit(x + 0.8 * (words == "log-odds"))
    if words == "slope":
        p = expit(-1.9 + float(amount) * (x + 1.9))
    p = np.minimum(p * 1.6, 1) if words == "risk x" else p
    return x, (rng.random(n) < p).astype(int)


def of_two(kind):
    """Say whether a kind of rows has two classes."""
    return kind in TWO


def made_tables(seeds):
    """Yield the share of positives, and log-odds and labels of rows that a classifier has not seen."""
    for weight, seed in ((w, s) for w in (0.98, 0.9, 0.5) for s in range(seeds)):
        X, y = make_classification(
            32000, 15, n_informative=6, weights=[weight], flip_y=0.01, class_sep=0.9, random_state=100 + seed
        )
        balanced = "balanced" if seed % 2 else None
        for model in (
            HistGradientBoostingClassifier(random_state=0),
            GaussianNB(),
            LogisticRegression(class_weight=balanced, max_iter=500),
        ):
            p = model.fit(X[:4000], y[:4000]).predict_proba(X[4000:])[:, 1]
            yield f"{100 - 100 * weight:.0f}%", logit(np.clip(p, 1e-12, 1 - 1e-12)), y[4000:]


def followed(fit, held, new):
    """Return the excess of each method's log loss on new rows, and of the recommended one, and that method."""
    comparison = compare(*fit, *held, draws=1, progress=False)
    losses, means = {}, {}
    for name in METHODS:
        calibrator = comparison.results[name].calibrator
        if calibrator is None:
            probs = two_columns(new[0]) if new[0].ndim == 1 else softmax(new[0], axis=1)
        else:
            probs = np.asarray(calibrator.predict_proba(new[0]), float)
        losses[name], means[name] = (
            nll(probs, new[1]),
            probs[:, -1].mean() / np.mean(new[1] == probs.shape[1] - 1),
        )
    chosen = comparison.recommendation.method
    best, chosen = min(losses.values()), chosen if chosen in losses else "bayes"
    return [100 * (losses[name] / best - 1) for name in (*METHODS, chosen)], means[chosen], chosen


def recommend_part(n, seed):
    """The excess log loss of following the recommendation of `compare`, with two classes; n made tables."""
    found = {}
    for positives, x, y in made_tables(n):
        for size in (50, 200, 1000, 4000):
            rng = source(seed, "recommend", positives, size, len(found))
            at = rng.permutation(8000)[: 2 * size]
            if min(y[at[:size]].sum(), y[at[size:]].sum()) < 1:
                continue
            fit, held = ((x[part], y[part]) for part in (at[:size], at[size:]))
            found.setdefault((positives, size), []).append(followed(fit, held, (x[8000:], y[8000:])))
    rows = []
    for (positives, size), cases in sorted(found.items()):
        excess = np.array([case[0] for case in cases])
        low, high = np.quantile([case[1] for case in cases], [0.1, 0.9])
        before, expected = EXCESS[positives, size]
        told = (
            goal(before),
            goal(expected),
            mean(excess[:, 3]),
            *(f"{one:.2f}" for one in excess[:, :3].mean(axis=0)),
        )
        rows.append((positives, f"{size:,}", len(cases), *told, f"{low:.2f} to {high:.2f}"))
    head = (
        "positives",
        "rows",
        "cases",
        "before",
        "expected",
        "recommended",
        *METHODS,
        "mean P / rate, 10 to 90%",
    )
    yield Table("recommend", head, rows, "Excess of the log loss over the best of the three, in %.")


def multi_part(n, seed):
    """The same with 3 to 30 classes, on public tasks; n draws of rows."""
    found = {}
    for path in sorted(TASKS.glob("*.npz")):
        task = np.load(path)
        z, y = task["logits_val"], task["labels_val"].astype(int)
        if z.ndim != 2 or not 2 < z.shape[1] <= 30:
            continue
        new = task["logits_test"][:4000].astype(float), task["labels_test"][:4000].astype(int)
        for size, draw in ((size, draw) for size in (200, 1000) for draw in range(n)):
            if 2 * size > len(z):
                continue
            at = source(seed, path.stem, size, draw).permutation(len(z))[: 2 * size]
            fit, held = ((z[part].astype(float), y[part]) for part in (at[:size], at[size:]))
            found.setdefault(size, []).append(followed(fit, held, new)[0])
    rows = [
        (
            f"{size:,}",
            len(cases),
            {200: 0.47, 1000: 0.14}[size],
            *map(mean, np.transpose(cases)[[3, 0, 1, 2]]),
        )
        for size, cases in found.items()
    ]
    head = ("rows", "cases", "expected", "recommended", *METHODS)
    yield Table("multi", head, rows, "Excess of the log loss over the best of the three, in %.")


def history(kind, change, fit_rows, size, rng):
    """Return whether each of the weekly checks is an alarm, and whether it says keep."""
    still = "rare none" if change.startswith("rare") else "none"
    calibrator = make_calibrator("bayes-bias").fit(*sample(kind, still, fit_rows, rng))
    with TemporaryDirectory() as folder:
        for week in range(1, WEEKS + 1):
            rows = sample(kind, change if week >= CHANGE else still, size, rng)
            found = monitoring.check(calibrator, *rows, history=Path(folder) / "checks.jsonl")
            yield found.alarm, found.state == "keep"


def monitor_part(n, seed):
    """Weekly checks with two classes: false alarms, and weeks until a change is seen."""
    yield monitored("monitor", MONITORED, n, seed)


def monitor3_part(n, seed):
    """The same with several classes."""
    yield monitored("monitor3", MONITORED_SEVERAL, n, seed)


def monitored(name, cells, n, seed):
    """Return the table of alarms by cell."""
    rows = []
    for (kind, change, fit_rows, size), (before, expected, weeks) in cells.items():
        rng = source(seed, "monitor", kind, change, fit_rows)
        alarms, keeps = np.array(
            [list(history(kind, change, fit_rows, size, rng)) for _ in range(n)]
        ).transpose(2, 0, 1)
        delays = np.where(alarms.any(axis=1), alarms.argmax(axis=1) + 2 - CHANGE, np.inf)
        first = np.where(
            ~keeps[:, CHANGE - 1 :].all(axis=1), keeps[:, CHANGE - 1 :].argmin(axis=1) + 1.0, np.inf
        )
        still = change.endswith("none") or change == "inputs move"
        medians = ("-", "-") if still else (f"{np.median(delays):.0f}", f"{np.median(first):.0f}")
        watched = share(1 - keeps[:, 0 if still else CHANGE - 1 :].mean(axis=1).round(6))
        told = goal(before), f"{goal(expected)}, {goal(weeks)}", share(alarms.any(axis=1)), *medians, watched
        rows.append((kind, change, f"{fit_rows:,}", f"{size:,}", *told))
    head = (
        *("classes or positives", "change", "rows of the fit", "rows a week", "alarms before"),
        *("expected, weeks", "alarms", "weeks to the alarm", "weeks to not keep", "weeks of not keep"),
    )
    return Table(name, head, rows, f"{samples(n)} {WEEKS} weekly checks; the change is in week {CHANGE}.")


def adapt_part(n, seed):
    """Whether `check` says adapt or refit, and what following it costs, with two classes."""
    yield repaired("adapt", REPAIRED, n, seed)


def adapt3_part(n, seed):
    """The same with several classes."""
    yield repaired("adapt3", REPAIRED_SEVERAL, n, seed)


def repaired(name, cells, n, seed):
    """Return the table of the advice by cell."""
    rows = []
    for (kind, change, fit_rows, size), (before, expected, excess) in cells.items():
        rng, actions, losses = source(seed, "adapt", kind, change, size), [], []
        for _ in range(n):
            calibrator = make_calibrator("bayes-bias").fit(*sample(kind, "none", fit_rows, rng))
            now, (new, labels) = sample(kind, change, size, rng), sample(kind, change, 20_000, rng)
            frequencies = np.bincount(now[1], minlength=calibrator.n_classes_) + 0.5
            repairs = {
                "keep": calibrator,
                "adapt": calibrator.adapt(priors=frequencies / frequencies.sum()),
                "refit": make_calibrator("bayes-bias").fit(*now),
            }
            own = {key: nll(one.predict_proba(new), labels) for key, one in repairs.items()}
            actions.append(monitoring.check(calibrator, *now).action)
            losses.append(
                [100 * (own[key] / min(own.values()) - 1) for key in (*own, own_or_keep(actions[-1], own))]
            )
        told = *(share([one == action for one in actions]) for action in ("adapt", "refit")), goal(excess)
        rows.append(
            (
                kind,
                change,
                f"{size:,}",
                goal(before),
                goal(expected),
                *told,
                *map(mean, np.transpose(losses)[[3, 0, 1, 2]]),
            )
        )
    head = (
        *("classes or positives", "change", "rows", "adapt before", "adapt expected", "adapt", "refit"),
        *("excess expected", "excess of the advice", "keep", "adapt always", "refit always"),
    )
    return Table(name, head, rows, f"{samples(n)} Excess of the log loss on 20,000 new rows, in %.")


def own_or_keep(action, own):
    """Return the repair that an action asks for; none while it is to watch."""
    return action if action in own else "keep"


def automate_part(n, seed):
    """How often a rule that keeps its promise is refused; n made tables of each kind."""
    found = {}
    for positives, x, y in made_tables(n):
        calibrator = make_calibrator("bayes-bias").fit(x[:4000], y[:4000])
        probs, labels = np.asarray(calibrator.predict_proba(x[4000:8000])), y[4000:8000]
        for most in (0.01, 0.02, 0.05):
            cases = found.setdefault((positives, most), [])
            try:
                rule = automate(probs, labels, most)
            except InputError:
                cases.append((True, False, np.nan))
                continue
            decided = probs.max(axis=1) > (np.inf if rule.threshold is None else rule.threshold)
            against = decided & (probs.argmax(axis=1) != labels)
            cases.append(
                (False, rule.threshold is not None, max(against[labels == k].mean() for k in (0, 1)))
            )
    rows = []
    for (positives, most), cases in sorted(found.items()):
        refused, given, lost = np.transpose(np.array(cases, float))
        worst = f"{100 * np.nanmax(lost):.0f}%" if np.isfinite(lost).any() else "-"
        expected = {0.02: 54, 0.05: 100}.get(most, 0) if positives == "2%" else 0
        rows.append((positives, f"{most:.0%}", len(cases), expected, share(refused), share(given), worst))
    head = (
        "positives",
        "largest error",
        "tables",
        "refused, expected",
        "refused",
        "a rule",
        "of a class lost, at most",
    )
    yield Table("automate", head, rows, "Made tables, a rule about the top class.")
