"""The main workflow on one page: which calibrator to use, how much it improves, and how to ship it.

The classifier is simulated, so its true probabilities are known.
"""

import tempfile
from pathlib import Path

import numpy as np

import temperance
from temperance.data import simulate

# An overconfident classifier: you have logits and labels of two sets of rows that it was not trained on. Fit
# to one, evaluate on the other.
task = simulate(n_rows=6_000, n_classes=10, temperature=2.0, entropy_slope=0.15, random_state=1)
val, test = slice(0, 2_000), slice(2_000, None)

print("1. Compare methods: fitted to 2000 validation rows, scored on 4000 test rows.\n")
comparison = temperance.compare(task.logits[val], task.labels[val], task.logits[test], task.labels[test])
print(comparison)

truth = task.probabilities[test]
floor = temperance.metrics.nll(truth / truth.sum(axis=1, keepdims=True), task.labels[test])
print(f"\nThe true probabilities, known because this is a simulation, have an NLL of {floor:.4f}.")

print("\n2. What the recommended method learnt.\n")
calibrator = comparison.calibrator or temperance.TemperatureScaling().fit(task.logits[val], task.labels[val])
print(calibrator.summary())

print("\n3. Save it, load it in a service, and calibrate.\n")
path = Path(tempfile.mkdtemp()) / "calibrator.json"
calibrator.save(path)
served = temperance.load(path)
before = np.exp(task.logits[test][:1] - task.logits[test][:1].max())
before /= before.sum()
after = served.predict_proba(task.logits[test][:1])
print(f"saved to {path} ({path.stat().st_size} bytes)")
print(f"first test row: confidence {before.max():.3f} before, {after.max():.3f} after,")
print(f"                {truth[0].max():.3f} in truth")
