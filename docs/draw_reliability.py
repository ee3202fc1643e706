"""Draw docs/reliability.svg, the picture of the README: `python docs/draw_reliability.py`."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "temperance", "svg.fonttype": "path", "font.size": 11}

import matplotlib.pyplot as plt  # noqa: E402  the settings come first
import numpy as np  # noqa: E402

import temperance  # noqa: E402
from temperance.data import demo_task  # noqa: E402

PICTURE = Path(__file__).parent / "reliability.svg"
RED, BLUE = "#c2410c", "#1d4ed8"


def diagram(ax, probs, labels, title, colour):
    """Draw the accuracy in each bin of the confidence, with its distance from the diagonal."""
    shown = temperance.metrics.reliability(probs, labels, bins=10)
    filled = shown.count > 0
    x, y = shown.confidence[filled], shown.accuracy[filled]
    ax.plot([0, 1], [0, 1], color="#64748b", linewidth=1)
    ax.vlines(x, np.minimum(x, y), np.maximum(x, y), color=colour, alpha=0.35, linewidth=5)
    ax.plot(x, y, "o", color=colour, markersize=5)
    nll, ece = temperance.metrics.nll(probs, labels), temperance.metrics.ece(probs, labels)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence", ylabel="accuracy")
    ax.set_title(f"{title}\nECE {100 * ece:.1f} %, NLL {nll:.2f}")


def main():
    """Draw the built-in network before and after calibration."""
    task = demo_task()
    cal = temperance.BayesianTemperatureScaling().fit(task.val_logits, task.val_labels)
    before = np.exp(task.test_logits - task.test_logits.max(axis=1, keepdims=True))
    before /= before.sum(axis=1, keepdims=True)
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    figure.patch.set_facecolor("white")
    diagram(axes[0], before, task.test_labels, "before", RED)
    diagram(axes[1], cal.predict_proba(task.test_logits), task.test_labels, "after", BLUE)
    figure.savefig(PICTURE, metadata={"Date": None, "Creator": "docs/draw_reliability.py"})


if __name__ == "__main__":
    main()
