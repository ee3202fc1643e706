"""Arrays with more than two axes on the command line: pixels and tokens are rows, images are groups."""

from pathlib import Path

import numpy as np
import pytest

from temperance import compare, load, make_calibrator, metrics, monitoring
from temperance.data import open_rows

IGNORE = {"dim": 1, "ignore_index": 255}
OPTIONS = ("--dim", 1, "--ignore-index", 255)


def images(n, seed):
    """Return the logits of pixels, (N, K, H, W), and labels, a tenth of which are to be ignored."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((n, 3, 6, 5)).astype(np.float32)
    labels = (logits / 1.7 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    labels[rng.random(labels.shape) < 0.1] = 255
    return logits, labels


@pytest.fixture
def pixels(folder):
    """Write the pixels of a fit and of a test, and return them."""
    val, test = images(40, 0), images(50, 1)
    for name, (logits, labels) in (("val", val), ("test", test)):
        np.savez(f"{name}.npz", logits=logits, labels=labels)
    return val, test


def save(kind, logits, labels):
    """Write an array in a format; return the words that name it."""
    if kind == ".npz compressed":
        np.savez_compressed("rows.npz", logits=logits, labels=labels)
        return ["rows.npz"]
    if kind == ".npy":
        np.save("rows.npy", logits)
        np.save("labels.npy", labels)
        return ["rows.npy", "--labels", "labels.npy", "--input", "logits"]
    if kind == ".safetensors":
        from safetensors.numpy import save_file

        save_file({"logits": logits, "labels": labels}, "rows.safetensors")
        return ["rows.safetensors"]
    import torch

    torch.save({"logits": torch.tensor(logits), "labels": torch.tensor(labels)}, "rows.pt")
    return ["rows.pt"]


@pytest.mark.parametrize("kind", [".npz compressed", ".npy", ".safetensors", ".pt"])
def test_a_fit_is_that_of_the_library(run, folder, kind):
    logits, labels = images(40, 0)
    if kind == ".pt":
        pytest.importorskip("torch")
    words = save(kind, logits, labels)
    done = run("fit", *words, "-m", "bayes", *OPTIONS, "-o", "cal.json").succeeded()
    expected = make_calibrator("bayes").fit(logits, labels, **IGNORE)
    found = load("cal.json")
    assert (found.n_groups_, found.n_rows_, found.fitted_on_.dim) == (40, int((labels != 255).sum()), 1)
    assert "40 groups" in done.out
    np.testing.assert_array_equal(found.predict_proba(logits), expected.predict_proba(logits))


def test_every_command_reads_pixels_as_the_library_does(run, pixels):
    val, test = pixels
    run("fit", "val.npz", "-m", "ts", *OPTIONS, "-o", "cal.json").succeeded()
    cal = make_calibrator("ts").fit(*val, **IGNORE)
    probs = cal.predict_proba(test[0].astype(np.float64))
    # The calibrator knows the axis.
    told = run("evaluate", "test.npz", "-c", "cal.json", "--ignore-index", 255, "--json").json
    expected = metrics.evaluate(probs, test[1], **IGNORE)
    assert told["groups"] == 50
    assert told["metrics"]["nll"] == pytest.approx(expected.to_dict()["nll"], rel=1e-5)
    told = run("check", "cal.json", "test.npz", "--ignore-index", 255, "--json").json
    assert told["rows"] == 50
    assert told["log_e"] == pytest.approx(monitoring.check(cal, *test, ignore_index=255).log_e, rel=1e-5)
    told = run("automate", "cal.json", "test.npz", "--ignore-index", 255, "--max-error", 0.4, "--json").json
    rule = cal.automate(*test, 0.4, ignore_index=255).automation_
    assert rule.threshold is not None
    assert (told["groups"], told["threshold"]) == (50, pytest.approx(rule.threshold, rel=1e-5))
    told = run("compare", "val.npz", "test.npz", "-m", "ts", *OPTIONS, "--json").json
    result = compare(*val, *test, ["ts"], **IGNORE)
    assert told["groups_judged"] == 50
    assert told["nll_gain"]["low"] == pytest.approx(result.verdict.nll_gain.low, rel=1e-5)
    run("adapt", "cal.json", "test.npz", "-o", "adapted.json").succeeded()
    wanted = cal.adapt(test[0]).predict_proba(test[0][:2])
    np.testing.assert_allclose(load("adapted.json").predict_proba(test[0][:2]), wanted, rtol=1e-4)


def test_apply_keeps_the_shape_and_a_table_has_a_row_for_each_pixel(run, pixels):
    _, (logits, labels) = pixels
    run("fit", "val.npz", "-m", "ts", *OPTIONS, "-o", "cal.json").succeeded()
    run("apply", "cal.json", "test.npz", "-o", "probs.npz").succeeded()
    probs = np.load("probs.npz")["probs"]
    cal = load("cal.json")
    assert probs.shape == logits.shape
    np.testing.assert_allclose(probs, cal.predict_proba(logits), atol=1e-7)
    run("apply", "cal.json", "test.npz", "-o", "probs.csv").succeeded()
    assert len(Path("probs.csv").read_text().splitlines()) == 1 + labels.size
    np.savez("clean.npz", logits=logits, labels=np.where(labels == 255, 0, labels))
    run("apply", "cal.json", "clean.npz", "-o", "with_labels.npz").succeeded()
    assert np.load("with_labels.npz")["labels"].shape == labels.shape
    run("evaluate", "with_labels.npz", "--dim", 1).succeeded()


@pytest.mark.parametrize("name", ["cal.onnx", "cal.pt2"])
def test_an_exported_calibrator_takes_pixels(run, pixels, name):
    _, (logits, _) = pixels
    run("fit", "val.npz", "-m", "hts", *OPTIONS, "-o", "cal.json").succeeded()
    wanted = load("cal.json").predict_proba(logits)
    if name.endswith(".onnx"):
        runtime = pytest.importorskip("onnxruntime")
        assert "(batch, 3, H, W)" in run("export", "cal.json", name).succeeded().out
        found = runtime.InferenceSession(name).run(None, {"logits": logits})[0]
    else:
        torch = pytest.importorskip("torch")
        assert run("export", "cal.json", name, "--dim", "1").code == 0
        found = torch.export.load(name).module()(torch.tensor(logits)).detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_tokens_have_their_classes_last_and_groups_of_their_own_if_named(run, folder, task):
    logits, labels = task.logits.reshape(30, 10, 4), task.labels.reshape(30, 10)
    speaker = np.arange(30) // 3
    np.savez("tokens.npz", logits=logits, labels=labels, speaker=speaker)
    run("fit", "tokens.npz", "--dim", 2, "-m", "ts", "-o", "cal.json").succeeded()
    assert load("cal.json").n_groups_ == 30
    words = ("fit", "tokens.npz", "--dim", 2, "-m", "ts", "--group-column", "speaker", "-f", "-o", "cal.json")
    run(*words).succeeded()
    assert load("cal.json").n_groups_ == 10
    np.savez("tokens.npz", logits=logits, labels=labels, speaker=speaker[:7])
    run(*words).failed(2, "one value per row; found shape (7,) for rows of shape (30, 10)")


def test_a_single_image_has_no_groups_but_promises_nothing(run, pixels):
    _, (logits, labels) = pixels
    run("fit", "val.npz", "-m", "ts", *OPTIONS, "-o", "cal.json").succeeded()
    np.savez("one.npz", logits=logits[:1], labels=labels[:1])
    assert run("evaluate", "one.npz", *OPTIONS, "--json").json["groups"] is None
    told = run("automate", "cal.json", "one.npz", "--ignore-index", 255, "--max-error", 0.9, "--json").json
    assert (told["threshold"], told["groups"]) == (None, 1)


def test_ignored_rows_of_a_table_are_left_out_with_their_groups(run, folder, task):
    import pandas

    labels = np.where(np.arange(300) % 10 == 0, -1, task.labels)
    frame = pandas.DataFrame(task.logits, columns=[f"logit_{k}" for k in range(4)])
    frame.assign(label=labels, groups=np.arange(300) // 6).to_csv("rows.csv", index=False)
    run("fit", "rows.csv", "-m", "ts", "-o", "cal.json").failed(2, "-1")
    run("fit", "rows.csv", "-m", "ts", "--ignore-index", -1, "-o", "cal.json").succeeded()
    found = load("cal.json")
    assert (found.n_rows_, found.n_groups_) == (270, 50)


def test_blocks_of_pixels_have_the_size_that_is_asked_for(pixels):
    (logits, labels), _ = pixels
    rows = open_rows("val.npz", dim=1, ignore_index=255)
    flat = np.moveaxis(logits, 1, -1).reshape(-1, 3)[labels.reshape(-1) != 255]
    for size in (1, 7, 30, 31, 100_000):
        blocks = list(rows.blocks(size))
        assert {len(block) for block in blocks[:-1]} <= {size}
        np.testing.assert_array_equal(np.concatenate(blocks), flat)
    np.testing.assert_array_equal(rows.logits(), flat)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "need the axis of the classes; found shape (40, 3, 6, 5). Pass --dim 1 or --dim 3"),
        (["--dim", 0], "which is not the first, in shape (40, 3, 6, 5); found 0. Pass --dim 1 or --dim 3"),
        (["--dim", 4], "found 4"),
        (["--dim", 2], "the shape of the logits without the axis of the classes, (40, 3, 5)"),
        (["--dim", 1], "255"),
    ],
)
def test_the_axis_is_asked_for_and_checked(run, pixels, words, message):
    run("fit", "val.npz", *words, "-o", "cal.json").failed(2, message)
    assert not Path("cal.json").exists()
