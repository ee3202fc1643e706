"""
Other class frequencies: label shift
====================================

A calibrator is valid for the class frequencies of its calibration rows. A disease is rarer
in screening than in the clinic. If only the frequencies differ, ``adapt`` corrects for it
without labels.
"""

# %%
# From the clinic to screening
# ----------------------------
# In the clinic three findings are equally frequent. In screening 94% of people are healthy.
# We simulate a classifier, and draw rows with the frequencies of each place.
import matplotlib.pyplot as plt
import numpy as np

import temperance
from temperance.data import simulate

task = simulate(n_rows=60_000, n_classes=3, sharpness=2.0, random_state=0)
rng = np.random.default_rng(0)
findings = ("healthy", "benign", "malignant")


def draw(rows, frequencies):
    """Return logits and labels of rows with these class frequencies."""
    weights = (frequencies / np.bincount(task.labels))[task.labels]
    chosen = rng.choice(len(weights), rows, replace=False, p=weights / weights.sum())
    return task.logits[chosen], task.labels[chosen]


clinic_logits, clinic_labels = draw(2_000, np.array([1, 1, 1]) / 3)
screening = np.array([0.94, 0.05, 0.01])
new_logits, new_labels = draw(4_000, screening)

# %%
# Fit in the clinic, adapt without labels
# ---------------------------------------
# ``adapt`` estimates the class frequencies of the new rows from their logits.
cal = temperance.make_calibrator("bayes-bias").fit(clinic_logits, clinic_labels)
adapted = cal.adapt(new_logits)
for name, used in (
    ("as fitted", cal),
    ("adapted", adapted),
    ("true frequencies", cal.adapt(priors=screening)),
):
    probs = used.predict_proba(new_logits)
    nll, accuracy = (
        temperance.metrics.nll(probs, new_labels),
        temperance.metrics.accuracy(probs, new_labels),
    )
    print(f"{name:17} log loss {nll:.3f}  accuracy {accuracy:.1%}")

# %%
# The estimated frequencies:
estimated = adapted.predict_proba(new_logits).mean(axis=0)
for name, now, true in zip(
    findings, estimated, np.bincount(new_labels) / len(new_labels), strict=True
):
    print(f"{name:9} estimated {now:5.1%}, true {true:5.1%}")

# %%
# The share of malignant findings is estimated far too low, and the share of benign ones too
# high: the classifier confuses the two, and the estimate takes its calibrated probabilities
# as exact. If you know the frequencies, pass them as ``priors``, above all where a rare
# class matters most.
#
# The effect on the probabilities
# -------------------------------
# The probability of any finding, benign or malignant, against how often there is one, in
# ten bins with equal numbers of rows. As fitted, the points lie below the diagonal: a
# disease is suspected too often. Adapted, they lie near it.
figure, ax = plt.subplots(figsize=(5, 4.5))
sick = new_labels > 0
for name, used, marker in (("as fitted", cal, "o"), ("adapted", adapted, "s")):
    suspected = 1 - used.predict_proba(new_logits)[:, 0]
    bins = np.array_split(np.argsort(suspected), 10)
    x, y = ([values[rows].mean() for rows in bins] for values in (suspected, sick))
    ax.plot(x, y, marker=marker, label=name)
ax.plot([0, 1], [0, 1], linestyle="--", color="grey", linewidth=1)
ax.set(
    xlabel="mean probability of a finding",
    ylabel="frequency of a finding",
    xlim=(0, 1),
    ylim=(0, 1),
)
ax.legend()
plt.show()

# %%
# If a class itself looks different in the new place, for example because of another
# scanner, this is not label shift, and no method can correct it without labels. Then label
# some rows there and fit again.
