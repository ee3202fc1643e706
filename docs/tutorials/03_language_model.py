"""
The options of a multiple-choice question
=========================================

A language model answers a multiple-choice question by the log-likelihood of each option. These are
logits, and they are often overconfident. Questions with fewer options than others have impossible
classes.
"""

# %%
# What the model returns
# ----------------------
# ``lm_eval --log_samples`` of lm-evaluation-harness writes one JSON record for each question. We write such a
# file from a simulated model: 600 questions, a third of them with three options, the others with four.
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import temperance
from temperance.data import open_rows, simulate
from temperance.display import ReliabilityDisplay, TemperatureDisplay

three = simulate(n_rows=200, n_classes=3, temperature=2.5, sharpness=2.0, random_state=1)
four = simulate(n_rows=400, n_classes=4, temperature=2.5, sharpness=2.0, random_state=2)
questions = [*zip(three.logits, three.labels, strict=True), *zip(four.logits, four.labels, strict=True)]
np.random.default_rng(0).shuffle(questions)

samples = Path(tempfile.mkdtemp()) / "samples_quiz.jsonl"
with samples.open("w") as file:
    for number, (log_likelihoods, right) in enumerate(questions):
        record = {
            "doc_id": number,
            "doc": {"choices": [f"option {i}" for i in range(len(log_likelihoods))]},
            "target": int(right),
            "arguments": [["question", f" option {i}"] for i in range(len(log_likelihoods))],
            "filtered_resps": [[float(value) - 20, False] for value in log_likelihoods],
            "acc": float(np.argmax(log_likelihoods) == right),
        }
        file.write(json.dumps(record) + "\n")

# %%
# Every command reads this file as it is: ``temperance compare samples_quiz.jsonl``. In Python, ``open_rows``
# reads it. An option that a question does not have is -inf.
rows = open_rows(samples)
logits, labels = rows.logits(), rows.labels
print(logits[:4].round(1))

# %%
# Calibrate
# ---------
# The columns are positions (first option, second option), not classes with a meaning. With
# ``positions=True`` no method learns anything about one of them, even if the right option is often the first.
# The commands know this of samples; for other files there is ``--positions``. Without a test set, ``compare``
# uses cross-validation.
assert rows.positions
comparison = temperance.compare(logits, labels, methods=["ts", "hts"], positions=True, draws=50)
print(comparison)

# %%
# The simulated model's logits are 2.5 times too large, and the fit finds this.
calibrator = temperance.TemperatureScaling().fit(logits[:300], labels[:300], positions=True)
print(calibrator.summary())

# %%
# Options that do not exist keep a probability of 0.
probs = calibrator.predict_proba(logits[300:])
assert (probs[np.isneginf(logits[300:])] == 0).all()

# %%
# Later questions may have more or fewer options than those of the fit.
print(calibrator.predict_proba([[-21.0, -23.0], [-20.0, -26.0]]).round(2))
print(calibrator.predict_proba([[-21.0, -23.0, -22.0, -24.0, -30.0, -25.0]]).round(2))

# %%
# Calibration lowers the confidence, which was too high.
ReliabilityDisplay.from_comparison(comparison, ["none", "ts"], bins=8).plot()
plt.show()

# %%
# When to abstain
# ---------------
# With calibrated probabilities, a threshold means what it says. Answer only where the confidence is at least
# 80 %, and check how often the answer is right.
confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels[300:]
answered = confidence >= 0.8
print(f"answered: {answered.mean():.0%}; mean confidence {confidence[answered].mean():.0%};", end=" ")
print(f"right {right[answered].mean():.0%}")

# %%
# Does the temperature depend on how unsure the model is? ``hts`` can follow such a trend.
TemperatureDisplay.from_comparison(comparison, bins=8).plot()
plt.show()
