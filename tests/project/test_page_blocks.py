"""The Python of README.md and of the pages in docs/ runs as it is written, block after block.

What a page takes for granted (your logits, your model, your files) is made here.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from temperance.data import simulate

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {"scikit-learn.md", "label-shift.md"}  # have tests of their own, which compare numbers too
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if path.name not in OTHERS and "```python" in path.read_text(encoding="utf-8")
)
TASK = simulate(n_rows=300, n_classes=10, random_state=0)

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the pages are not beside the tests")


def rows():
    """Return example values for the reader's own rows."""
    logits = TASK.logits.astype(np.float32)
    return {
        "val_logits": logits[:200],
        "val_labels": TASK.labels[:200],
        "logits": logits[200:],
    }


def write_classifier():
    """Write classifier.onnx, which returns its input as logits."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx_models import linear_classifier

    linear_classifier("classifier.onnx", np.eye(10))
    return rows()


def make_network():
    """Return a model and a loader, as PyTorch has them."""
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.from_numpy(TASK.logits).float(), torch.from_numpy(TASK.labels))
    return {"model": torch.nn.Identity(), "val_loader": DataLoader(data, batch_size=100)}


def write_collections():
    """Write logits.zarr, labels.zarr and rows.parquet."""
    da = pytest.importorskip("dask.array")
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("zarr")
    da.from_array(TASK.logits, chunks=(100, 10)).to_zarr("logits.zarr")
    da.from_array(TASK.labels, chunks=100).to_zarr("labels.zarr")
    frame = pandas.DataFrame(TASK.logits, columns=[f"class {k}" for k in range(10)])
    frame.assign(label=TASK.labels).to_parquet("rows.parquet")
    return {}


PREPARED = {
    "docs/bayesian.md": rows,
    "docs/onnx.md": write_classifier,
    "docs/pytorch.md": make_network,
    "docs/dask.md": write_collections,
}


def blocks_of(page):
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def shown_on(page):
    """Return what a page says that its blocks print."""
    return re.findall(r"```text\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_pages_are_found():
    assert {"README.md", "docs/start.md", "docs/how-to/ship-it.md", *PREPARED} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page", **PREPARED.get(page, dict)()}
    for block in blocks_of(page):
        exec(compile(block, page, "exec"), names)
    if page.endswith("explanation/ece.md"):
        assert capsys.readouterr().out == shown_on(page)[0]


def test_the_readme_is_short_and_names_the_paper():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert "Balanya" in text
    assert len(blocks_of("README.md")[0].splitlines()) <= 12


def test_the_example_of_label_shift_prints_what_the_page_shows(capsys):
    (shown,) = shown_on("docs/label-shift.md")
    (example,) = [block for block in blocks_of("docs/label-shift.md") if "demo_task" in block]
    exec(example, {})
    printed, number = capsys.readouterr().out, r"\d\.\d\d"
    assert re.sub(number, "", printed).split() == re.sub(number, "", shown).split()
    scores = np.array(re.findall(number, printed), float)  # NLL and accuracy of each line
    np.testing.assert_allclose(scores, np.array(re.findall(number, shown), float), atol=0.011)
    before, estimated, known = scores[-6::2]
    assert known <= estimated < 0.1 * before
