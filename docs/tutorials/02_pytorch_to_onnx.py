"""
An image classifier, from PyTorch to ONNX
=========================================

Train a small network, calibrate it on images that it has not seen, and export one ONNX model that goes
from images to calibrated probabilities. The service needs neither PyTorch nor temperance.
"""

# %%
# An overconfident network
# ------------------------
# The images are scikit-learn's handwritten digits with noise added. The network learns its 500 training
# images by heart, which makes it overconfident.
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import temperance
from temperance.display import ReliabilityDisplay
from temperance.torch import collect_logits

torch.manual_seed(0)
torch.set_num_threads(1)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
images += 0.3 * torch.randn_like(images)
order = torch.randperm(len(images))
train, val, test = (
    TensorDataset(images[rows], torch.tensor(digits.target)[rows]) for rows in order.split([500, 500, 797])
)

figure, axes = plt.subplots(1, 6, figsize=(8, 1.6))
for ax, image in zip(axes, images[order[:6]], strict=True):
    ax.imshow(image[0], cmap="gray")
    ax.axis("off")
plt.show()

# %%
network = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(512, 10),
)
optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
for _ in range(15):
    for inputs, labels in DataLoader(train, batch_size=100, shuffle=True):
        loss = nn.functional.cross_entropy(network(inputs), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
print(f"loss on the last training batch: {loss.item():.4f}")

# %%
# Calibrate
# ---------
# ``collect_logits`` runs the network in evaluation mode and returns logits and labels as tensors.
val_logits, val_labels = collect_logits(network, DataLoader(val, batch_size=256))
calibrator = temperance.BayesianTemperatureScaling().fit(val_logits, val_labels)
print(calibrator.summary())

# %%
# In PyTorch, add the calibrator after the network, as a module.
calibrated = nn.Sequential(network, calibrator.to_torch()).eval()
with torch.no_grad():
    print(torch.softmax(calibrated(images[:1]), dim=1).numpy().round(3))

# %%
# Export
# ------
# PyTorch writes the network, and temperance appends the calibrator to it.
folder = Path(tempfile.mkdtemp())
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the exporter that needs no further package
    torch.onnx.export(
        network.eval(),
        (images[:1],),
        str(folder / "network.onnx"),
        input_names=["images"],
        output_names=["logits"],
        dynamic_axes={"images": {0: "batch"}, "logits": {0: "batch"}},
        dynamo=False,
    )
calibrator.to_onnx(folder / "calibrated.onnx", model=folder / "network.onnx")

# %%
# Serve
# -----
# onnxruntime gives the same probabilities as Python, up to the rounding of float32.
session = onnxruntime.InferenceSession(str(folder / "calibrated.onnx"), providers=["CPUExecutionProvider"])
test_images, test_labels = (tensor.numpy() for tensor in test.tensors)
(served,) = session.run(["probabilities"], {"images": test_images})

test_logits, _ = collect_logits(network, DataLoader(test, batch_size=256))
before = torch.softmax(test_logits, dim=1).numpy()
difference = np.abs(served - calibrator.predict_proba(test_logits.numpy())).max()
assert difference < 1e-5
for name, probs in (("before", before), ("served", served)):
    nll, ece = temperance.metrics.nll(probs, test_labels), temperance.metrics.ece(probs, test_labels)
    print(f"{name}: NLL {nll:.3f}, ECE {100 * ece:.1f} %")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 5))
for ax, name, probs in zip(axes, ("before", "served"), (before, served), strict=True):
    ReliabilityDisplay.from_probs(probs, test_labels, name=name, bins=10).plot(ax)
plt.show()
