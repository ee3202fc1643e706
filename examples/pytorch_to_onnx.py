"""From a PyTorch network to a calibrated ONNX model that a service runs with onnxruntime alone.

The images are scikit-learn's small handwritten digits, with noise, so that the network is not always right.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import temperance
from temperance.torch import collect_logits

torch.manual_seed(0)
torch.set_num_threads(1)  # faster, for so small a network
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
images += 0.3 * torch.randn_like(images)
order = torch.randperm(len(images))
train, val, test = (
    TensorDataset(images[rows], torch.tensor(digits.target)[rows]) for rows in order.split([500, 500, 797])
)

print("1. Train a small network, until it knows its 500 images by heart.")
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
for _ in range(30):
    for inputs, labels in DataLoader(train, batch_size=100, shuffle=True):
        loss = nn.functional.cross_entropy(network(inputs), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

print("2. Calibrate it on 500 images that it has not seen.")
calibrator = temperance.BayesianTemperatureScaling()
calibrator.fit(*collect_logits(network, DataLoader(val, batch_size=256)))

print("3. Export the network with PyTorch, and put the calibrator behind it.")
folder = Path(tempfile.mkdtemp())
torch.onnx.export(
    network.eval(),
    (images[:1],),
    str(folder / "network.onnx"),
    input_names=["images"],
    output_names=["logits"],
    dynamic_axes={"images": {0: "batch"}, "logits": {0: "batch"}},
    dynamo=False,  # the newer exporter does as well, but needs the package onnxscript
)
calibrator.to_onnx(folder / "calibrated.onnx", model=folder / "network.onnx")

print("4. Serve: one model from images to probabilities, without PyTorch and without temperance.\n")
session = onnxruntime.InferenceSession(str(folder / "calibrated.onnx"), providers=["CPUExecutionProvider"])
test_images, test_labels = (tensor.numpy() for tensor in test.tensors)
(served,) = session.run(["probabilities"], {"images": test_images})

logits, _ = collect_logits(network, DataLoader(test, batch_size=256))
before, after = torch.softmax(logits, dim=1).numpy(), calibrator.predict_proba(logits.numpy())
print(f"largest difference between onnxruntime and temperance: {np.abs(served - after).max():.1e}")
print(f"images classified as before: {(served.argmax(axis=1) == before.argmax(axis=1)).mean():.0%}")
for name, probs in (("before", before), ("served", served)):
    nll, ece = temperance.metrics.nll(probs, test_labels), temperance.metrics.ece(probs, test_labels)
    print(f"{name}: NLL {nll:.3f}, ECE {100 * ece:.2f} %")
