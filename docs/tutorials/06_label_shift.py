"""
Other class frequencies: label shift
====================================

A calibrator is right for the class frequencies of its calibration rows. A disease is rarer in screening
than in the clinic. If only the frequencies differ, ``adapt`` corrects for it without labels.
"""

# %%
# From the clinic to screening
# ----------------------------
# In the clinic three findings are equally frequent. In screening 94 % of people are healthy. We simulate a
# classifier, and draw rows of each class with the frequencies of each place.
import matplotlib.pyplot as plt
import numpy as np

import temperance
from temperance.data import simulate
from temperance.display import ReliabilityDisplay

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
# ``adapt`` estimates the class frequencies of the new rows from their logits alone.
cal = temperance.make_calibrator("bayes-bias").fit(clinic_logits, clinic_labels)
adapted = cal.adapt(new_logits)
for name, used in (
    ("as fitted", cal),
    ("adapted", adapted),
    ("true frequencies", cal.adapt(priors=screening)),
):
    probs = used.predict_proba(new_logits)
    nll, accuracy = temperance.metrics.nll(probs, new_labels), temperance.metrics.accuracy(probs, new_labels)
    print(f"{name:17} NLL {nll:.3f}  accuracy {accuracy:.1%}  mean of malignant {probs[:, 2].mean():.1%}")

# %%
figure, ax = plt.subplots(figsize=(7, 4))
estimated = adapted.predict_proba(new_logits).mean(axis=0)
for shift, (name, shares) in enumerate(
    {"at fit": np.bincount(clinic_labels) / 2_000, "estimated": estimated, "true": screening}.items()
):
    ax.bar(np.arange(3) + 0.27 * (shift - 1), 100 * shares, width=0.27, label=name)
ax.set(xticks=range(3), xticklabels=findings, ylabel="% of rows")
ax.legend()
plt.show()

# %%
# The effect on the probabilities
# -------------------------------
# Without the adaptation, every disease is suspected too often.
figure, axes = plt.subplots(1, 2, figsize=(10, 5))
for ax, name, used in zip(axes, ("as fitted", "adapted"), (cal, adapted), strict=True):
    ReliabilityDisplay.from_probs(used.predict_proba(new_logits), new_labels, name=name, bins=10).plot(ax)
plt.show()

# %%
# The adapted calibrator is saved like any other, and says what it was adapted to.
print(adapted.summary())

# %%
# If a class itself looks different in the new place, because of another scanner for example, this is not
# label shift, and no method can correct it without labels. Then label some rows there and fit again.
