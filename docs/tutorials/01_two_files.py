"""
Two files and five minutes
==========================

You have a trained classifier and two files: ``val.npz`` and ``test.npz``, each with ``logits`` and
``labels`` of rows that the classifier was not trained on. Which calibration method should you use, and
how do you use it?
"""

# %%
# The files
# ---------
# Here we write the two files ourselves, from the built-in network for CIFAR-10.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import temperance
from temperance.data import demo_task, open_rows
from temperance.display import ReliabilityDisplay, ScoresDisplay

folder = Path(tempfile.mkdtemp())
task = demo_task()
np.savez(folder / "val.npz", logits=task.val_logits[:1000], labels=task.val_labels[:1000])
np.savez(folder / "test.npz", logits=task.test_logits, labels=task.test_labels)

# %%
# Compare the methods
# -------------------
# In a shell, ``temperance compare val.npz test.npz --report report.html`` does what the next lines do. Each
# method is fitted to the validation rows and scored on the test rows.
val, test = open_rows(folder / "val.npz"), open_rows(folder / "test.npz")
comparison = temperance.compare(
    val.logits(),
    val.labels,
    test.logits(),
    test.labels,
    methods=["ts", "hts", "ets", "mono", "bayes"],
    draws=50,
)
print(comparison)

# %%
# Methods are ranked by NLL, the mean of -log(probability of the right class). The figure shows differences.
ScoresDisplay.from_comparison(comparison).plot()
plt.show()

# %%
# Before and after
# ----------------
# In a reliability diagram, calibrated predictions lie on the diagonal. Before calibration the network is
# overconfident: its points lie below the diagonal.
calibrator = comparison.calibrator
ReliabilityDisplay.from_comparison(comparison, ["none", comparison.recommended]).plot()
plt.show()

# %%
# Save it and use it
# ------------------
# The calibrator is a small JSON file. The summary says what it learned.
calibrator.save(folder / "cal.json")
print(calibrator.summary())

# %%
# In the service, load it and calibrate new rows. The predicted classes are those of the network.
served = temperance.load(folder / "cal.json")
new = task.test_logits[:3]
print(served.predict_proba(new).round(3))
print("same predicted class:", bool((served.predict(new) == new.argmax(axis=1)).all()))

# %%
# Next: `Read the report <../how-to/read-the-report.html>`_ and
# `Ship a calibrator <../how-to/ship-it.html>`_.
