"""Heads with one score for two classes, (N,) or (N, 1), and whole numbers as floats for labels."""

import numpy as np
import pandas
import pytest
import torch
from click.testing import CliRunner

from temperance import (
    InputError,
    TemperatureScaling,
    compare,
    logits_from_probs,
    make_calibrator,
    metrics,
    monitoring,
)
from temperance.cli.program import cli

RNG = np.random.default_rng(0)
SCORES = RNG.normal(0, 3, 400)
LABELS = (RNG.random(400) < 1 / (1 + np.exp(-SCORES / 2))).astype(int)
PROBS = 1 / (1 + np.exp(-SCORES))
HEADS = {
    "column": lambda x: x[:, None],
    "list": lambda x: x[:, None].tolist(),
    "tensor": lambda x: torch.from_numpy(x)[:, None],
    "bfloat16": lambda x: torch.from_numpy(x).bfloat16()[:, None],
    "frame": lambda x: pandas.DataFrame(x),
}
AS_LABELS = {
    "float64": lambda y: y.astype(float),
    "float32 column": lambda y: y[:, None].astype(np.float32),
    "tensor": lambda y: torch.from_numpy(y).float()[:, None],
    "bfloat16": lambda y: torch.from_numpy(y).bfloat16(),
    "list": lambda y: y.astype(float).tolist(),
}


@pytest.mark.filterwarnings("ignore:check needs rows that the fit has not seen")
@pytest.mark.parametrize("labels", AS_LABELS)
@pytest.mark.parametrize("head", HEADS)
def test_a_head_of_one_column_is_the_score_of_the_second_class(head, labels):
    given, named = HEADS[head], AS_LABELS[labels](LABELS)
    scores = torch.from_numpy(SCORES).bfloat16() if head == "bfloat16" else SCORES
    wanted, cal = TemperatureScaling().fit(scores, LABELS), TemperatureScaling().fit(given(SCORES), named)
    assert cal.temperature_ == pytest.approx(wanted.temperature_, rel=1e-12)
    for method in ("predict_proba", "predict", "temperature", "transform"):
        result = getattr(cal, method)(given(SCORES))
        assert tuple(result.shape) == {"predict_proba": (400, 2), "transform": (400, 1)}.get(method, (400,))
        flat, expected = (
            torch.as_tensor(x).double().ravel() for x in (result, getattr(wanted, method)(scores))
        )
        np.testing.assert_allclose(flat, expected, rtol=1e-12)
    if head != "bfloat16":
        assert metrics.nll(given(PROBS), named) == metrics.nll(PROBS, LABELS)
        logs = np.asarray(logits_from_probs(given(PROBS)))
        np.testing.assert_array_equal(logs, logits_from_probs(PROBS)[:, None])
    found = compare(given(SCORES), named, methods=["ts", "none"], draws=5)
    assert list(found.results) == ["none", "ts"]
    assert found.verdict.nll_gain == compare(scores, LABELS, methods=["ts"], draws=5).verdict.nll_gain
    assert monitoring.check(cal, given(SCORES), named).action == "keep"


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_a_file_with_a_head_and_float_labels(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = {"logits": SCORES[:, None].astype(np.float32), "labels": LABELS[:, None].astype(np.float32)}
    np.savez("val.npz", **arrays)
    torch.save({key: torch.from_numpy(array) for key, array in arrays.items()}, "val.pt")
    np.savez("flat.npz", logits=arrays["logits"][:, 0], labels=LABELS)
    for words in (
        "fit {} -m ts -o cal.json -f --json",
        "evaluate {} --draws 5 --all",
        "compare {} -m ts,none -q",
        "apply cal.json {} -o p.npz -f",
    ):
        one, other = (
            CliRunner().invoke(cli, words.format(name).split()) for name in (f"val{suffix}", "flat.npz")
        )
        assert one.exit_code == 0, one.stderr
        assert one.stdout.splitlines()[-3:] == other.stdout.splitlines()[-3:]


@pytest.mark.parametrize("bad", [0.5, np.inf, 1e300, 2.0, -1.0])
def test_other_numbers_are_no_labels(bad):
    labels = LABELS.astype(float)
    labels[7] = bad
    with pytest.raises(InputError, match="labels must be integer column indices from 0 to 1"):
        TemperatureScaling().fit(SCORES, labels)


def test_float_labels_may_be_ignored_and_named():
    labels = LABELS.astype(float)
    labels[:10] = -100
    cal = TemperatureScaling().fit(SCORES[:, None], labels, ignore_index=-100)
    assert cal.n_rows_ == 390
    named = TemperatureScaling().fit(SCORES, 3.0 + 2 * LABELS, classes=[3, 5])
    assert named.temperature_ == TemperatureScaling().fit(SCORES, LABELS).temperature_


def test_none_is_compared_always_and_never_fitted():
    assert list(compare(SCORES, LABELS, methods=["none"], draws=5).results) == ["none"]
    with pytest.raises(InputError, match=r"there is nothing to fit. Use its own softmax"):
        make_calibrator("none")
