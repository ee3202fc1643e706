"""
Few labels in medicine
======================

A diagnostic classifier comes from one hospital and is used in another, where only some patients have a
confirmed diagnosis. How many of them are needed to calibrate it?
"""

# %%
# A classifier for breast tumours
# -------------------------------
# scikit-learn's breast cancer data: 569 tumours, 30 measurements, benign or malignant. The classifier is
# naive Bayes, trained on 100 tumours; 200 others may be labelled for calibration, and the last 269 are
# the test set.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import temperance
from temperance.display import ReliabilityDisplay

X, y = load_breast_cancer(return_X_y=True)
train_x, rest_x, train_y, rest_y = train_test_split(X, y, train_size=100, stratify=y, random_state=0)
classifier = GaussianNB().fit(train_x, train_y)
logits = temperance.logits_from_probs(classifier.predict_proba(rest_x), floor=1e-30)
test_logits, test_y = logits[200:], rest_y[200:]

before = classifier.predict_proba(rest_x)[200:]
wrong = before.argmax(axis=1) != test_y
print(f"accuracy {1 - wrong.mean():.1%}; mean confidence {before.max(axis=1).mean():.1%};", end=" ")
print(f"mean confidence where it is wrong {before.max(axis=1)[wrong].mean():.1%}")

# %%
# Naive Bayes treats correlated measurements as independent, so it counts the same evidence many times and is
# certain when it is wrong. In medicine this is the dangerous kind of error.
#
# 20, 50, 100, 200 labels
# -----------------------
# For each number of labels we draw ten samples of patients, fit, and score on the others.
methods, sizes, draws = ("ts", "hts", "bayes"), (20, 50, 100, 200), 10
nll = {method: np.empty((len(sizes), draws)) for method in methods}
for draw in range(draws):
    order = np.random.default_rng(draw).permutation(200)
    for place, size in enumerate(sizes):
        rows = order[:size]
        for method in methods:
            cal = temperance.make_calibrator(method).fit(logits[rows], rest_y[rows])
            nll[method][place, draw] = temperance.metrics.nll(cal.predict_proba(test_logits), test_y)

uncalibrated = temperance.metrics.nll(before, test_y)
print(f"uncalibrated: NLL {uncalibrated:.3f}")
for method in methods:
    means = dict(zip(sizes, nll[method].mean(axis=1).round(3).tolist(), strict=True))
    print(f"{method}: mean NLL by number of labels {means}")

# %%
figure, ax = plt.subplots(figsize=(7, 4))
for method in methods:
    mean = nll[method].mean(axis=1)
    error = nll[method].std(axis=1, ddof=1) / np.sqrt(draws)
    ax.errorbar(sizes, mean, error, marker="o", capsize=3, label=method)
ax.set(xscale="log", xlabel="labelled patients", ylabel="test NLL", xticks=sizes, xticklabels=sizes)
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# How uncertain is the calibrator itself?
# ---------------------------------------
# With few labels the temperature is uncertain. ``bayes`` averages over this uncertainty, and reports it
# for each row as the standard deviation of log T.
for size in (20, 200):
    cal = temperance.BayesianTemperatureScaling().fit(logits[:size], rest_y[:size])
    spread = np.median(cal.log_temperature_std(test_logits))
    typical = np.median(cal.temperature(test_logits))
    print(f"{size} labels: T of a typical row {typical:.1f}, standard deviation of log T {spread:.2f}")

# %%
# Before and after, with 50 labels
# --------------------------------
cal = temperance.BayesianTemperatureScaling().fit(logits[:50], rest_y[:50])
after = cal.predict_proba(test_logits)
print(f"mean confidence where it is wrong: {before.max(axis=1)[wrong].mean():.1%} before,", end=" ")
print(f"{after.max(axis=1)[wrong].mean():.1%} after")
figure, axes = plt.subplots(1, 2, figsize=(10, 5))
for ax, name, probs in zip(axes, ("before", "after 50 labels"), (before, after), strict=True):
    ReliabilityDisplay.from_probs(probs, test_y, name=name, bins=5).plot(ax)
plt.show()
