"""`collect_logits`: all rows in order, nothing else kept, the model unchanged."""

import math
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from temperance import InputError
from temperance.torch import collect_logits
from temperance.torch.collection import RowBuffer


@pytest.fixture
def data():
    torch.manual_seed(0)
    return TensorDataset(torch.randn(23, 4), torch.randint(0, 3, (23,)))


@pytest.fixture
def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_all_rows_come_in_order_and_type(data, model, dtype):
    model = nn.Sequential(*model[:1]).to(dtype)
    loader = [(x.to(dtype), y) for x, y in DataLoader(data, batch_size=5)]
    logits, labels = collect_logits(model, loader)
    with torch.no_grad():
        expected = torch.cat([model(x) for x, _ in loader])
    assert logits.dtype == dtype
    assert torch.equal(logits, expected)
    assert torch.equal(labels, data.tensors[1])
    assert not logits.requires_grad
    assert not logits.is_inference(), "an inference tensor could not be trained on"
    assert logits.untyped_storage().nbytes() == logits.numel() * logits.element_size()


class Endless(IterableDataset):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(self.data)


def test_a_loader_of_unknown_length_gives_the_same(data, model):
    known = collect_logits(model, DataLoader(data, batch_size=2))
    unknown = collect_logits(model, DataLoader(Endless(data), batch_size=2))
    generated = collect_logits(model, (batch for batch in DataLoader(data, batch_size=2)))
    for other in (unknown, generated):
        torch.testing.assert_close(other, known, rtol=0, atol=0)


def test_every_submodule_gets_its_mode_back(data, model):
    model.train()
    model[2].eval()
    statistics = model[2].running_mean.clone()
    one = collect_logits(model, DataLoader(data, batch_size=7))[0]
    assert [part.training for part in model.modules()] == [True, True, True, False]
    assert torch.equal(model[2].running_mean, statistics)
    torch.testing.assert_close(one, collect_logits(model, DataLoader(data, batch_size=23))[0])
    with pytest.raises(InputError):
        collect_logits(model, [torch.zeros(3, 4)])
    assert model.training, "also after an error"


def test_no_gradient_is_recorded(data):
    def watching(x):
        assert torch.is_inference_mode_enabled()
        return x[:, :3]

    collect_logits(watching, DataLoader(data, batch_size=5))


OUTPUTS = {
    "object": lambda z: SimpleNamespace(logits=z, loss=0),
    "dict": lambda z: {"loss": 0, "logits": z},
    "tuple": lambda z: (z, "hidden"),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_logits_are_found_in_what_the_model_gives(kind, data):
    logits, _ = collect_logits(lambda x: OUTPUTS[kind](x[:, :3]), DataLoader(data, batch_size=5))
    assert torch.equal(logits, data.tensors[0][:, :3])


def test_batches_may_be_dicts_and_anything_with_forward(data):
    x, y = data.tensors
    batches = [{"x": x, "scale": 2.0, "labels": y}]
    logits, labels = collect_logits(lambda x, scale: scale * x[:, :3], batches)
    assert torch.equal(logits, 2 * x[:, :3])
    again = collect_logits(
        lambda x: x, batches, forward=lambda model, b: (model(b["x"][:, :3]) * 2, b["labels"])
    )
    torch.testing.assert_close(again, (logits, labels))


def test_tokens_become_rows_without_those_ignored():
    z = torch.randn(4, 6, 5)
    y = torch.randint(0, 5, (4, 6))
    y[0, 2:] = -100
    y[3] = -100
    loader = [(z[:1], y[:1]), (z[1:], y[1:])]
    logits, labels = collect_logits(lambda z: z, loader)
    kept = y != -100
    assert torch.equal(logits, z[kept])
    assert torch.equal(labels, y[kept])
    assert len(collect_logits(lambda z: z, loader, ignore_index=None)[0]) == 24
    few = collect_logits(lambda z: z, loader, max_rows=5)
    torch.testing.assert_close(few, (logits[:5], labels[:5]))


def test_pixels_become_rows():
    z, y = torch.randn(3, 5, 2, 4), torch.randint(0, 5, (3, 2, 4))
    logits, labels = collect_logits(lambda z: z, [(z, y)], dim=1)
    assert torch.equal(logits, z.movedim(1, -1).reshape(-1, 5))
    assert torch.equal(labels, y.reshape(-1))


def test_binary_logits_stay_of_one_axis():
    logits, labels = collect_logits(lambda x: x[:, 0], [(torch.randn(4, 2), torch.tensor([0, 1, 1, 0]))] * 2)
    assert logits.shape == labels.shape == (8,)


def test_inputs_go_to_the_device_and_rows_come_back(data):
    seen = []

    def model(x):
        seen.append(x.device.type)
        return torch.zeros(len(x), 3)  # numbers, which the meta device has none of

    logits, _ = collect_logits(
        model,
        DataLoader(data, batch_size=23),
        device="meta",
        forward=lambda model, batch: (model(batch[0]), data.tensors[1]),
    )
    assert seen == ["meta"]
    assert logits.device.type == "cpu"


ONE = torch.zeros(2, dtype=torch.long)
REFUSED = {
    "no labels": ([torch.zeros(2, 4)], "pair .* found a Tensor. Pass forward="),
    "three": ([(torch.zeros(2, 4), ONE, ONE)], "found a tuple of 3"),
    "dict": ([{"x": torch.zeros(2, 4), "label": ONE}], "found a dict with x, label"),
    "float labels": ([(torch.zeros(2, 4), torch.full((2,), 0.5))], "whole numbers.*float32"),
    "one-hot": ([(torch.zeros(2, 4), torch.zeros(2, 4).long())], r"\(2, 4\) for labels \(2, 4\)"),
    "pixels": ([(torch.zeros(2, 4, 3, 3), torch.zeros(2, 3, 3).long())], "with dim=-1. Set dim"),
    "classes": ([(torch.zeros(2, k), ONE) for k in (4, 5)], "with 4, then torch.float32 with 5"),
    "whole logits": ([(torch.zeros(2, 4).long(), ONE)], "found a tensor of torch.int64"),
    "nothing": ([], "has no labelled rows"),
    "all ignored": ([(torch.zeros(2, 4), ONE - 100)], "has no labelled rows"),
}


@pytest.mark.parametrize(("loader", "message"), REFUSED.values(), ids=REFUSED)
def test_the_message_says_what_is_wrong(loader, message):
    with pytest.raises(InputError, match=message):
        collect_logits(lambda x: x, loader)


def test_no_rows_and_an_output_without_logits_are_refused():
    with pytest.raises(InputError, match="max_rows must be at least 1; found 0"):
        collect_logits(lambda x: x, [(torch.zeros(2, 4), ONE)], max_rows=0)
    with pytest.raises(InputError, match=r"must give logits.*found a str"):
        collect_logits(lambda x: "no", [(torch.zeros(2, 4), ONE)])


def test_progress_is_reported_with_the_share_of_the_batches_if_they_can_be_counted(data):
    told = []
    loader = DataLoader(data, batch_size=15)
    for batches in (loader, iter(list(loader)), (batch for batch in loader)):
        collect_logits(lambda x: x[:, :3], batches, progress=lambda *report: told.append(report))
    assert told[:4] == [("15 rows", 0.5), ("23 rows", 1.0)] * 2
    assert [what for what, share in told[4:] if math.isnan(share)] == ["15 rows", "23 rows"]


def test_a_buffer_grows_and_is_trimmed():
    store, rows = RowBuffer(), torch.arange(2000.0).reshape(1000, 2)
    for start in range(0, 1000, 7):
        store.add(rows[start : start + 7], expected=10)
    assert torch.equal(store.result(), rows)
    store = RowBuffer()
    store.add(rows[:3], expected=10**6)
    assert store.result().untyped_storage().nbytes() == 3 * 8


MEMORY = """
import resource, torch
from temperance.torch import collect_logits
def batches(n):
    for i in range(n):
        yield torch.full((50, 1), float(i)), torch.zeros(50, dtype=torch.long)
class Known:
    def __len__(self): return 80
    def __iter__(self): return batches(80)
model = lambda x: x.expand(50, 20_000)  # 4 MB a batch
collect_logits(model, batches(2))
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
for loader in (Known(), batches(80)):
    logits, _ = collect_logits(model, loader)
    assert logits[-1, -1] == 79
    print(logits.numel() * 4 / 2**20, peak() - before)
    del logits
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems may copy an array that grows")
def test_the_memory_is_that_of_the_result():
    ran = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    (size, known), (_, grown) = (map(float, line.split()) for line in ran.stdout.splitlines())
    assert size > 300
    assert known < 1.1 * size
    assert grown < 1.4 * size


def test_labels_of_one_byte_are_not_mistaken_for_the_ignored_label():
    labels = torch.tensor([156, 1, 2], dtype=torch.uint8)  # where -100 would be 156
    _, collected = collect_logits(lambda x: torch.zeros(3, 200), [(torch.zeros(3), labels)])
    assert collected.tolist() == [156, 1, 2]
