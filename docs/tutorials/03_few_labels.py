"""
Few labels in medicine
======================

A diagnostic classifier is trained, and a few other patients have a confirmed diagnosis. How
many of them are needed to calibrate it?
"""

# %%
# A classifier for breast tumours
# -------------------------------
# scikit-learn's breast cancer data describe 569 tumours by 30 measurements, benign or
# malignant. The classifier is naive Bayes, trained on 100 tumours. Up to 200 others can be
# labelled for calibration, and the last 269 are the test set.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import temperance

X, y = load_breast_cancer(return_X_y=True)
train_x, rest_x, train_y, rest_y = train_test_split(
    X, y, train_size=100, stratify=y, random_state=0
)
classifier = GaussianNB().fit(train_x, train_y)
logits = temperance.logits_from_probs(classifier.predict_proba(rest_x), floor=1e-30)
test_logits, test_y = logits[200:], rest_y[200:]

before = classifier.predict_proba(rest_x)[200:]
wrong = before.argmax(axis=1) != test_y
print(
    f"accuracy {1 - wrong.mean():.1%}; mean confidence {before.max(axis=1).mean():.1%};",
    end=" ",
)
print(f"mean confidence where it is wrong {before.max(axis=1)[wrong].mean():.1%}")

# %%
# Naive Bayes treats correlated measurements as independent, so it counts the same evidence
# many times and is nearly certain even where it is wrong. In medicine this is the dangerous
# kind of error.
#
# 20, 50, 100, 200 labels
# -----------------------
# Per number of labels we draw ten samples of patients, fit, and score on the test set.
methods, sizes, draws = ("ts", "hts", "bayes"), (20, 50, 100, 200), 10
nll = {method: np.empty((len(sizes), draws)) for method in methods}
for draw in range(draws):
    order = np.random.default_rng(draw).permutation(200)
    for place, size in enumerate(sizes):
        rows = order[:size]
        for method in methods:
            cal = temperance.make_calibrator(method).fit(logits[rows], rest_y[rows])
            nll[method][place, draw] = temperance.metrics.nll(
                cal.predict_proba(test_logits), test_y
            )

uncalibrated = temperance.metrics.nll(before, test_y)
print(f"uncalibrated: log loss {uncalibrated:.3f}")
for method in methods:
    means = dict(zip(sizes, nll[method].mean(axis=1).round(3).tolist(), strict=True))
    print(f"{method}: mean log loss by number of labels {means}")

# %%
# The axis of the log loss is logarithmic, because ``hts`` is far worse than no calibration
# with few labels: two parameters without a prior are too many.
figure, ax = plt.subplots()
for method in methods:
    mean = nll[method].mean(axis=1)
    error = nll[method].std(axis=1, ddof=1) / np.sqrt(draws)
    ax.errorbar(sizes, mean, error, marker="o", capsize=3, label=method)
ax.axhline(uncalibrated, linestyle="--", color="grey", label="uncalibrated")
ax.set(xscale="log", yscale="log", xlabel="labelled patients", ylabel="test log loss")
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.2, 0.3, 0.5, 1, 2], ["0.2", "0.3", "0.5", "1", "2"])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# The answer: twenty labels
# -------------------------
# Twenty. With ``bayes``, 20 labels lower the log loss from 1.29 to 0.21, and 200 labels do
# no better. Without a prior, ``ts`` comes close only with 200.
for size in (20, 200):
    cal = temperance.BayesianTemperatureScaling().fit(logits[:size], rest_y[:size])
    after = cal.predict_proba(test_logits)
    spread = np.median(cal.log_temperature_std(test_logits))
    print(f"{size} labels: log loss {temperance.metrics.nll(after, test_y):.3f}")
    print(f"  mean confidence where it is wrong: {after.max(axis=1)[wrong].mean():.1%}")
    print(f"  standard deviation of log T: {spread:.2f}")

# %%
# The standard deviation of log T is the calibrator's own uncertainty, over which ``bayes``
# averages. It shrinks as labels arrive.
