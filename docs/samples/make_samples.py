"""Write the example files of the page on language models: `python docs/samples/make_samples.py`.

confidences.csv has stated confidences in steps of 5% and whether the answer was correct.
top_logprobs.jsonl has what an API lists: the five most probable of twelve labels. Both are simulated.
"""

import json
from pathlib import Path

import numpy as np

from temperance.data import simulate

HERE = Path(__file__).parent
LABELS = ["billing", "shipping", "refund", "login", "damage", "warranty", "address", "invoice", "spam"]
LABELS += ["praise", "privacy", "other"]


def confidences(rows, rng):
    """Return stated confidences, which are too high and hardly vary, and whether each answer is correct."""
    truth = rng.beta(2.2, 1.4, rows)
    stated = np.round((0.62 + 0.38 * truth + rng.normal(0, 0.08, rows)) * 20) / 20
    return np.clip(stated, 0.5, 1), (rng.random(rows) < truth).astype(int)


def main():
    """Write both files."""
    stated, correct = confidences(600, np.random.default_rng(0))
    lines = [f"{p:.2f},{y}" for p, y in zip(stated, correct, strict=True)]
    (HERE / "confidences.csv").write_text("\n".join(["prob_1,label", *lines]) + "\n")
    task = simulate(n_rows=400, n_classes=len(LABELS), temperature=2.0, sharpness=1.5, random_state=0)
    shifted = task.logits - task.logits.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    with (HERE / "top_logprobs.jsonl").open("w") as file:
        for row, label in zip(log_probs, task.labels, strict=True):
            top = {LABELS[k]: round(float(row[k]), 4) for k in np.argsort(-row)[:5]}
            file.write(json.dumps({"top_logprobs": top, "answer": LABELS[label]}) + "\n")


if __name__ == "__main__":
    main()
