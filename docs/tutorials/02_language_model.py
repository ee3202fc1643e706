"""
The options of a multiple-choice question
=========================================

A language model answers a multiple-choice question by the log-likelihood of each option.
These are logits, and they are often overconfident. This tutorial calibrates them, and lets
the model abstain when it is not sure enough.
"""

# %%
# What the model returns
# ----------------------
# ``lm_eval --log_samples`` of lm-evaluation-harness writes one JSON record per question. We
# write such a file from a simulated model, whose logits are 2.5 times too large: 600
# questions, a third of them with three options, the others with four.
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import temperance
from temperance.data import open_rows, simulate
from temperance.display import ReliabilityDisplay

three = simulate(n_rows=200, n_classes=3, temperature=2.5, sharpness=2.0, random_state=1)
four = simulate(n_rows=400, n_classes=4, temperature=2.5, sharpness=2.0, random_state=2)
questions = [
    *zip(three.logits, three.labels, strict=True),
    *zip(four.logits, four.labels, strict=True),
]
np.random.default_rng(0).shuffle(questions)

samples = Path(tempfile.mkdtemp()) / "samples_quiz.jsonl"
with samples.open("w") as file:
    for number, (log_likelihoods, target) in enumerate(questions):
        record = {
            "doc_id": number,
            "doc": {"choices": [f"option {i}" for i in range(len(log_likelihoods))]},
            "target": int(target),
            "arguments": [
                ["question", f" option {i}"] for i in range(len(log_likelihoods))
            ],
            "filtered_resps": [[float(value) - 20, False] for value in log_likelihoods],
            "acc": float(np.argmax(log_likelihoods) == target),
        }
        file.write(json.dumps(record) + "\n")

# %%
# Every command reads this file as it is: ``temperance compare samples_quiz.jsonl``. In
# Python, ``open_rows`` reads it. An option that a question does not have is -inf.
rows = open_rows(samples)
logits, labels = rows.logits(), rows.labels
print(logits[:4].round(1))

# %%
# Calibrate
# ---------
# The columns are positions (first option, second option), not classes with a meaning. With
# ``positions=True`` no method learns anything about a position, even if the first option is
# often correct. The commands know this about samples; other files need ``--positions``.
# Without a test set, ``compare`` uses cross-validation.
assert rows.positions
comparison = temperance.compare(logits, labels, methods=["ts", "bayes"], positions=True)
print(comparison)

# %%
# Before calibration the points lie far below the diagonal, so the model is overconfident.
# Temperature scaling moves them close to it.
ReliabilityDisplay.from_comparison(comparison, ["none", "ts"], bins=8).plot()
plt.show()

# %%
# The fit finds the factor of 2.5, within its standard error.
calibrator = temperance.TemperatureScaling().fit(logits[:300], labels[:300], positions=True)
print(
    f"T = {calibrator.temperature_:.2f} ± {calibrator.standard_errors_['temperature']:.2f}"
)

# %%
# Later questions can have more or fewer options than the calibration rows, and missing
# options keep a probability of 0.
probs = calibrator.predict_proba(logits[300:])
assert (probs[np.isneginf(logits[300:])] == 0).all()
print(calibrator.predict_proba([[-21.0, -23.0, -22.0, -24.0, -30.0, -25.0]]).round(2))

# %%
# When to abstain
# ---------------
# With calibrated probabilities, a threshold keeps its promise. Answer only where the
# confidence is at least 80%, and compare the mean confidence of these answers with how many
# are correct.
confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels[300:]
before = np.exp(logits[300:] - logits[300:].max(axis=1, keepdims=True))
before = (before / before.sum(axis=1, keepdims=True)).max(axis=1)
for name, level in (("before", before), ("after", confidence)):
    answered = level >= 0.8
    mean, share = level[answered].mean(), correct[answered].mean()
    told = f"confidence {mean:.0%}, correct {share:.0%}"
    print(f"{name}: answered {answered.mean():.0%}, {told}")

# %%
# Next: `Language models <../how-to/language-models.html>`_, with stated confidences, APIs
# and tokens.
