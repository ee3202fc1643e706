"""`temperance export`: models that run without temperance, for onnxruntime and for PyTorch."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import linear_classifier, serve

WEIGHTS = np.random.default_rng(0).standard_normal((3, 4))


def test_an_onnx_model_gives_what_apply_gives(run, files, calibrator, judged):
    done = run("export", "cal.json", "cal.onnx").succeeded()
    assert done.out == "ts: from logits (batch, 4) to probabilities (batch, 4)\nSaved to cal.onnx\n"
    z = judged.logits.astype(np.float32)
    np.testing.assert_allclose(serve("cal.onnx", z), calibrator.predict_proba(z), rtol=0, atol=1e-6)


def test_a_pytorch_program_gives_probabilities_of_any_batch(run, files, fitted, judged):
    import torch

    fitted("hts").save("cal.json")
    done = run("export", "cal.json", "cal.pt2").succeeded()
    assert done.out == "hts: from logits (batch, 4) to probabilities (batch, 4)\nSaved to cal.pt2\n"
    program = torch.export.load("cal.pt2").module()
    z = judged.logits.astype(np.float32) * np.float32(500)
    for rows in (z, z[:1], z[:0]):
        got = program(torch.from_numpy(rows)).numpy()
        assert got.shape == rows.shape
        if len(rows):
            np.testing.assert_allclose(got, fitted("hts").predict_proba(rows), rtol=0, atol=1e-5)


def test_models_give_calibrated_logits_on_request(run, files, calibrator, judged):
    import torch

    z = judged.logits.astype(np.float32)
    wanted = calibrator.transform(z)
    told = run("export", "cal.json", "cal.onnx", "--output", "logits", "--json").json
    assert told["output"] == "calibrated_logits"
    np.testing.assert_allclose(serve("cal.onnx", z), wanted, rtol=1e-5, atol=1e-5)
    told = run("export", "cal.json", "cal.pt2", "--output", "logits", "--json").json
    assert told["output"] == "logits"
    got = torch.export.load("cal.pt2").module()(torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    linear_classifier("classifier.onnx", WEIGHTS)
    words = ("--append", "classifier.onnx", "--output", "logits", "--json")
    assert run("export", "cal.json", "all.onnx", *words).json["output"] == "calibrated_logits"
    x = np.random.default_rng(1).standard_normal((9, 3)).astype(np.float32)
    np.testing.assert_allclose(serve("all.onnx", x), calibrator.transform(x @ WEIGHTS), rtol=1e-5, atol=1e-5)


def test_it_is_appended_to_a_classifier(run, calibrator):
    linear_classifier("classifier.onnx", WEIGHTS)
    done = run("export", "cal.json", "all.onnx", "--append", "classifier.onnx").succeeded()
    assert "ts: from the inputs of classifier.onnx to probabilities (batch, 4)\n" in done.out
    x = np.random.default_rng(1).standard_normal((9, 3)).astype(np.float32)
    np.testing.assert_allclose(serve("all.onnx", x), calibrator.predict_proba(x @ WEIGHTS), rtol=0, atol=1e-5)


def test_an_output_of_the_classifier_is_chosen_and_can_hold_probabilities(run, calibrator):
    names = ("probabilities", "scores")
    end = [helper.make_node("Identity", ["logits"], [name]) for name in names]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in names]
    linear_classifier("classifier.onnx", WEIGHTS, end=end, outputs=outputs)
    words = ("export", "cal.json", "all.onnx", "--append", "classifier.onnx")
    run(*words).failed(2, "none is called 'logits'", "'probabilities', 'scores'")
    words = (*words, "--classifier-output", "scores")
    told = run(*words, "--input", "logits", "--json").json
    assert told["output"] == "calibrated_probabilities"
    assert (told["classifier"], told["out"], told["classes"]) == ("classifier.onnx", "all.onnx", 4)
    assert told["calibrator"] == {"path": "cal.json", "method": "ts"}
    assert run(*words, "--input", "probs", "--force", "--quiet").succeeded().out == ""
    assert "Log" in [node.op_type for node in onnx.load("all.onnx").graph.node]


REFUSED = {
    "an axis behind a classifier": (
        ("cal.json", "a.onnx", "--append", "cal.json", "--dim", "1"),
        "--dim is for",
    ),
    "another kind of file": (("cal.json", "cal.pkl"), "must end in .onnx or .pt2; found cal.pkl"),
    "a program behind a classifier": (("cal.json", "a.pt2", "--append", "cal.json"), "--append is for .onnx"),
    "an output of nothing": (("cal.json", "a.onnx", "--classifier-output", "z"), "Name it with --append"),
    "another output": (("cal.json", "a.onnx", "--output", "scores"), "'scores' is not one of"),
}


@pytest.mark.parametrize(("words", "told"), REFUSED.values(), ids=REFUSED)
def test_an_impossible_request_is_one_sentence(words, told, run, calibrator, folder):
    run("export", *words).failed(2, told)
    assert [path.name for path in folder.iterdir()] == ["cal.json"]
