"""The Python of README.md and of the pages in docs/ runs as it is written, block after block.

What a page takes for granted (your logits, your model, your files) is made here.
"""

import re
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import temperance
from temperance.data import open_rows, simulate

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {"scikit-learn.md"}  # has a test of its own
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


def rows_and_probabilities():
    """Return the rows, and probabilities as CalArena passes them on."""
    parts = {
        "p_cal": TASK.probabilities[:200],
        "y_cal": TASK.labels[:200],
        "p_test": TASK.probabilities[200:],
    }
    return rows() | parts


def write_classifier():
    """Write classifier.onnx, which returns its input as logits, and return a network to export."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx_models import linear_classifier

    linear_classifier("classifier.onnx", np.eye(10))
    return rows() | {"network": torch.nn.Linear(10, 10), "example": torch.zeros(2, 10)}


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


def copy_samples():
    """Copy the example files of the page."""
    for path in (ROOT / "docs" / "samples").iterdir():
        shutil.copy(path, path.name)
    return {}


PREPARED = {
    "docs/how-to/language-models.md": copy_samples,
    "docs/bayesian.md": rows_and_probabilities,
    "docs/onnx.md": write_classifier,
    "docs/pytorch.md": make_network,
    "docs/dask.md": write_collections,
}


def outputs():
    """Return the tool that fills the pages with what their blocks print."""
    return runpy.run_path(str(ROOT / "docs" / "outputs.py"))


def numbers_in(text):
    """Return the numbers of a text, and the text without them."""
    number = r"\d+(?:,\d{3})*(?:\.\d*)?"
    return np.array([float(n.replace(",", "")) for n in re.findall(number, text)]), re.sub(
        number, "", text
    ).split()


def test_the_pages_are_found():
    assert {"README.md", "docs/start.md", "docs/how-to/ship-it.md", *PREPARED} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_the_blocks_of_a_page_run_in_order_and_print_what_it_shows(
    page, tmp_path, monkeypatch, benchmark_script
):
    """Numbers can differ in their last digit from machine to machine."""
    monkeypatch.chdir(tmp_path)
    tool, text = outputs(), (ROOT / page).read_text(encoding="utf-8")
    output = tool["printed"](text, {"__name__": "page", **PREPARED.get(page, dict)()})
    for block, told in zip(tool["blocks"](text), output, strict=True):
        if block["shown"] is not None:
            (shown_numbers, shown), (numbers, words) = numbers_in(block["shown"]), numbers_in(told)
            assert words == shown, "python docs/outputs.py --write"
            np.testing.assert_allclose(numbers, shown_numbers, rtol=0.05, atol=0.011)


def test_what_a_block_prints_replaces_what_the_page_shows():
    page = "a\n\n```python\nx = 1\n```\n\nb\n\n```python\nprint(x)\n```\n\n```text\nold\n```\n"
    tool = outputs()
    output = tool["printed"](page)
    assert output == ["", "1\n"]
    assert tool["filled"](page, output) == page.replace("old", "1")


def test_the_recipe_for_the_harness_scores_questions_with_different_numbers_of_options():
    code = outputs()["blocks"]((ROOT / "docs/how-to/language-models.md").read_text(encoding="utf-8"))[-1][
        "code"
    ]
    names = {"np": np, "temperance": temperance}
    exec(code, names)
    asked = [([(-1.0, True), (-3.0, False)], "0"), ([(-5.0, False), (-5.0, False), (-2.0, True)], "0")]
    done = [names["process_results"]({"answer": answer}, results) for results, answer in asked]
    assert [one["acc"] for one in done] == [1.0, 0.0]
    wanted = np.mean([np.log1p(np.exp(-2)), 3 + np.log1p(2 * np.exp(-3))])
    assert names["nll"]([one["nll"] for one in done]) == pytest.approx(wanted, rel=1e-12)
    assert 0 < names["ece"]([one["ece"] for one in done]) < 1


def test_the_example_files_are_current_and_a_command_reads_confidences(tmp_path, monkeypatch):
    made = runpy.run_path(str(ROOT / "docs" / "samples" / "make_samples.py"))
    monkeypatch.setitem(made["main"].__globals__, "HERE", tmp_path)
    made["main"]()
    for path in tmp_path.iterdir():
        assert path.read_text() == (ROOT / "docs" / "samples" / path.name).read_text()
    rows = open_rows(tmp_path / "confidences.csv")
    assert (rows.kind, rows.n_classes) == ("probs", 2)
    assert np.bincount(rows.labels).sum() == len(rows.logits()) == 600


def test_the_readme_is_short_and_names_the_paper():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert "Balanya" in text
    assert len(outputs()["blocks"](text)[0]["code"].splitlines()) <= 12
