"""
Two files and five minutes
==========================

You have a trained classifier and two files, ``val.npz`` and ``test.npz``, each with the
``logits`` and ``labels`` of held-out rows. Which calibration method should you use, how
much does it help, and how do you use it?
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
from temperance.display import DifferencesDisplay, ReliabilityDisplay

folder = Path(tempfile.mkdtemp())
task = demo_task()
np.savez(folder / "val.npz", logits=task.val_logits[:1000], labels=task.val_labels[:1000])
np.savez(folder / "test.npz", logits=task.test_logits, labels=task.test_labels)

# %%
# Compare the methods
# -------------------
# In a shell, ``temperance compare val.npz test.npz --report report.html`` does what the
# next lines do. Each method is fitted to the validation rows and scored on the test rows.
# The table is sorted by log loss, the mean of -log(probability of the true class), and
# ``none`` is the uncalibrated network.
val, test = open_rows(folder / "val.npz"), open_rows(folder / "test.npz")
comparison = temperance.compare(
    val.logits(),
    val.labels,
    test.logits(),
    test.labels,
    methods=["ts", "hts", "mono", "bayes"],
)
print(comparison)

# %%
# All methods are scored on the same rows, so their differences are known much better than
# the scores themselves. The figure shows each difference from the recommended method, with
# a 95% interval.
DifferencesDisplay.from_comparison(comparison).plot()
plt.show()

# %%
# Before and after
# ----------------
# In a reliability diagram, calibrated predictions lie on the diagonal. The points of the
# network lie below it: it is overconfident. After calibration they lie close to it.
ReliabilityDisplay.from_comparison(comparison, ["none", comparison.recommended]).plot()
plt.show()  # sphinx_gallery_thumbnail_number = 2

# %%
# Save it and use it
# ------------------
# The calibrator is a small JSON file. In the service, load it and calibrate new rows. The
# predicted classes do not change.
comparison.calibrator.save(folder / "cal.json")
served = temperance.load(folder / "cal.json")
new = task.test_logits[:3]
print(served.predict_proba(new).round(3))
print("same predicted class:", bool((served.predict(new) == new.argmax(axis=1)).all()))

# %%
# Next: `Read the report <../how-to/read-the-report.html>`_ and `Ship a calibrator
# <../how-to/ship-it.html>`_.
