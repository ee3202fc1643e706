"""Token-level calibration of a language model: 50,000 classes, bfloat16, in bounded memory.

The model is simulated: its ranking is right, and its logits are 1.6 times too large. The next tokens are
drawn from the true probabilities, so the best possible calibration is known. Only one batch of logits, and
the 1000 rows of the fit, are in memory at a time.
"""

import resource
import time

import numpy as np
import torch
from torch import nn

import temperance
from temperance.torch import collect_logits

VOCABULARY, WIDTH, BATCH, LENGTH = 50_000, 64, 2, 32
TOKENS = 1_000


class LanguageModel(nn.Module):
    """The last layer of a language model: hidden states (B, T, width) -> logits (B, T, vocabulary)."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        nn.init.normal_(self.head.weight, std=0.35)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return overconfident logits, in bfloat16 as usual."""
        return (self.head(hidden) * 1.6).bfloat16()


def texts(model: LanguageModel, n_batches: int, seed: int):
    """Yield hidden states and next tokens; the first of each text is padding, labelled -100."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n_batches):
        hidden = torch.randn(BATCH, LENGTH, WIDTH, generator=generator)
        with torch.no_grad():
            right = torch.softmax(model.head(hidden).reshape(-1, VOCABULARY), dim=-1)
        tokens = torch.multinomial(right, 1, generator=generator).reshape(BATCH, LENGTH)
        tokens[:, 0] = -100
        yield hidden, tokens


def judge(model: nn.Module, batches) -> tuple[float, float]:
    """Return NLL and ECE (15 bins) of the next tokens, batch by batch."""
    losses, confidences, hits = [], [], []
    with torch.inference_mode():
        for hidden, tokens in batches:
            kept = tokens != -100
            logs = torch.log_softmax(model(hidden)[kept].float(), dim=-1)
            best = logs.max(dim=-1)
            losses.append(-logs.gather(-1, tokens[kept][:, None])[:, 0])
            confidences.append(best.values.exp())
            hits.append(best.indices == tokens[kept])
    confidence, hit = torch.cat(confidences).numpy(), torch.cat(hits).numpy()
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = np.bincount(bins, confidence - hit, minlength=15)
    return float(torch.cat(losses).mean()), float(np.abs(gaps).sum() / len(hit))


def peak() -> float:
    """Return the most memory this process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


torch.manual_seed(0)
model = LanguageModel()
before_all = peak()

start = time.perf_counter()
logits, labels = collect_logits(model, texts(model, 100, seed=1), max_rows=TOKENS)
size = logits.numel() * logits.element_size() / 2**20
print(
    f"collected {tuple(logits.shape)} {logits.dtype}, {size:.0f} MB, in {time.perf_counter() - start:.1f} s"
)

start = time.perf_counter()
calibrator = temperance.EntropyTemperatureScaling().fit(logits, labels)
print(f"fitted in {time.perf_counter() - start:.1f} s")
del logits

calibrated = nn.Sequential(model, calibrator.to_torch())
test = list(texts(model, 10, seed=2))  # hidden states and tokens, no logits
nll_before, ece_before = judge(model, test)
nll_after, ece_after = judge(calibrated, test)
print(f"before: NLL {nll_before:.3f}, ECE {100 * ece_before:.1f} %")
print(f"after:  NLL {nll_after:.3f}, ECE {100 * ece_after:.1f} %")
memory = peak() - before_all
print(f"peak memory: {memory:.0f} MB more than before the first batch")
