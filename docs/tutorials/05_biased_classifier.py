"""
A classifier that prefers some classes
======================================

Some classifiers predict one class too often. No temperature can repair this, because it keeps the order
of the classes. ``bayes-bias`` can, at the price of changing some predicted classes.
"""

# %%
# A biased network
# ----------------
# We take the built-in network and add 3 to the logits of cats and subtract 3 from those of dogs: as if it
# had been trained on many cats and few dogs.
import matplotlib.pyplot as plt
import numpy as np

import temperance
from temperance.data import demo_task
from temperance.display import ReliabilityDisplay

task = demo_task()
cat, dog = task.class_names.index("cat"), task.class_names.index("dog")
bias = np.zeros(10, dtype=np.float32)
bias[cat], bias[dog] = 3, -3
val, test = task.val_logits[:2000] + bias, task.test_logits + bias
labels = task.val_labels[:2000]

# %%
# Temperature or bias?
# --------------------
# ``compare`` says how many predicted classes each method changes.
comparison = temperance.compare(
    val,
    labels,
    test,
    task.test_labels,
    methods=["ts", "bayes", "bayes-bias"],
    classes=task.class_names,
    draws=50,
)
print(comparison)

# %%
# How often is each class predicted?
# ----------------------------------
# The true frequency of each class in the test set is 10 %.
fitted = {key: comparison.results[key].calibrator for key in ("bayes", "bayes-bias")}
figure, ax = plt.subplots(figsize=(8, 4))
for shift, (key, cal) in enumerate(fitted.items()):
    shares = 100 * np.bincount(cal.predict(test), minlength=10) / len(test)
    ax.bar(np.arange(10) + 0.4 * shift - 0.2, shares, width=0.4, label=key)
ax.axhline(10, color="black", linewidth=1, linestyle="--", label="true frequency")
ax.set(xticks=range(10), ylabel="predicted, % of rows")
ax.set_xticklabels(task.class_names, rotation=45, ha="right")
ax.legend()
plt.show()

# %%
# What the fit found
# ------------------
print(fitted["bayes-bias"].summary())

# %%
# Is the probability of "cat" right?
# ----------------------------------
# A reliability diagram of one class: the probability of "cat" against how often it is a cat.
figure, axes = plt.subplots(1, 2, figsize=(10, 5))
for ax, (key, cal) in zip(axes, fitted.items(), strict=True):
    of_cat = cal.predict_proba(test)[:, cat]
    pair = np.column_stack([1 - of_cat, of_cat])
    is_cat = (task.test_labels == cat).astype(int)
    ReliabilityDisplay.from_probs(pair, is_cat, name=f"cat or not, {key}", bins=10).plot(ax)
plt.show()

# %%
# Decide with care: if predicted classes are part of a contract, or were tested separately, keep them and
# use ``bayes``.
