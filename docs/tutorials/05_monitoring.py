"""
Monitor a calibrator, week by week
==================================

A calibrator is in use. Weeks later the camera is replaced, the users change, or the labels
do. This tutorial checks a calibrator every week, with labels and without, and acts when it
has to.
"""

# %%
# A calibrator in use
# -------------------
# We simulate a classifier with four classes, and fit on 2,000 labelled rows.
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import temperance
from temperance import monitoring
from temperance.data import simulate

task = simulate(n_rows=40_000, n_classes=4, random_state=0)
cal = temperance.BayesianTemperatureScaling().fit(task.logits[:2000], task.labels[:2000])
history = Path(tempfile.mkdtemp()) / "history.jsonl"

# %%
# One check a week
# ----------------
# Every week 500 labelled rows arrive. In week 9 a new camera makes the classifier
# overconfident: its logits become 1.6 times as large. The history file keeps the evidence,
# so that each check continues from the last one. Look after every check if you like: over
# all of them, the probability of a false alarm is at most 5%.
checks = []
for week in range(1, 21):
    rows = slice(2000 + 500 * week, 2500 + 500 * week)
    stretched = 1.6 if week >= 9 else 1.0
    found = monitoring.check(
        cal,
        stretched * task.logits[rows],
        task.labels[rows],
        history=history,
        name=f"week {week}",
    )
    checks.append(found)
    print(f"week {week:2}  e-value {np.exp(found.log_e):10.3g}  {found.state}")

# %%
# The e-value measures the evidence of a change. It stays near or below 1 while nothing
# changes, and at 20 the check raises an alarm. Before that, "watch" means that the gap of
# the last checks is outside the allowed range.
figure, ax = plt.subplots()
ax.plot(range(1, 21), [found.log_e / np.log(10) for found in checks], marker="o")
ax.axhline(np.log10(20), color="#b3261e", linestyle="--", label="alarm: 20")
ax.axvline(8.5, color="grey", linestyle=":", label="the camera is replaced")
ax.set(xlabel="week", ylabel="e-value (power of 10)", xticks=range(1, 21, 2))
ax.legend()
plt.show()

# %%
# What changed, and what to do
# ----------------------------
first = next(found for found in checks if found.alarm)
print(*(textwrap.fill(sentence, 88) for sentence in first.sentences), sep="\n")

# %%
# Without labels
# --------------
# Labels often come late. Without them the check compares the predictions with the
# predictions at the fit: it can see that they differ, but not whether they are still
# correct.
unlabelled = monitoring.check(cal, 1.6 * task.logits[-500:])
print(*(textwrap.fill(sentence, 88) for sentence in unlabelled.sentences), sep="\n")

# %%
# Fit again
# ---------
# The advice was to fit again, on rows of the new camera.
new_rows, new_labels = 1.6 * task.logits[30_000:32_000], task.labels[30_000:32_000]
refitted = temperance.BayesianTemperatureScaling().fit(new_rows, new_labels)
held_out, labels = 1.6 * task.logits[32_000:], task.labels[32_000:]
for name, used in (("shipped", cal), ("fitted again", refitted)):
    probs = used.predict_proba(held_out)
    nll, ece = temperance.metrics.nll(probs, labels), temperance.metrics.ece(probs, labels)
    print(f"{name:12}  NLL {nll:.3f}  ECE {ece:.1%}")

# %%
# In a cron job: ``temperance check cal.json week42.npz --history history.jsonl --report
# checks.html``. The exit code is 3 when you have to act.
