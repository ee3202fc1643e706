"""A calibrator after a classifier: one model, equal to the classifier except for the replaced output."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import linear_classifier, serve, session

from temperance import InputError, make_calibrator
from temperance.data import simulate
from temperance.onnx import append_to_onnx

RNG = np.random.default_rng(7)
WEIGHTS = RNG.standard_normal((6, 10)) * 4
IMAGES = RNG.standard_normal((50, 6)).astype(np.float32)


def info(name, kind=TensorProto.FLOAT, shape=("batch", 10)):
    return helper.make_tensor_value_info(name, kind, shape)


@pytest.fixture
def classifier(tmp_path):
    return linear_classifier(tmp_path / "classifier.onnx", WEIGHTS)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "calibrated.onnx"


def expected(cal, path, images=IMAGES):
    """Return the library's probabilities for the logits of a classifier."""
    running = session(path)
    return cal.predict_proba(running.run(["logits"], {"images": images})[0].astype(np.float32))


@pytest.fixture
def calibrate(calibrator_of, tmp_path, target):
    """Append a calibrator to a classifier, check the probabilities, and return the model."""

    def of(key, end=(), outputs=None, *, scale=1, change=None, kind=None, **options):
        cal, path = calibrator_of(key), tmp_path / "classifier.onnx"
        source = linear_classifier(path, scale * WEIGHTS, end=end, outputs=outputs, **options)
        if change is not None:
            changed = onnx.load(source)
            change(changed)
            onnx.save(changed, source)
        cal.to_onnx(target, model=source, kind=kind)
        plain = linear_classifier(tmp_path / "plain.onnx", scale * WEIGHTS)
        np.testing.assert_allclose(serve(target, IMAGES), expected(cal, plain), rtol=0, atol=1e-5)
        return onnx.load(target)

    return of


def kinds(model):
    return [node.op_type for node in model.graph.node]


def test_every_method_calibrates_the_classifier(name, calibrate, target):
    nodes = calibrate(name).graph.node
    read = {"probabilities"}.union(*(node.input for node in nodes))
    assert all(read.intersection(node.output) for node in nodes)
    (output,) = session(target).get_outputs()
    assert (output.name, output.shape) == ("probabilities", ["batch", 10])


@pytest.mark.parametrize("opset", range(11, min(23, onnx.defs.onnx_opset_version()) + 1))
@pytest.mark.parametrize("key", ["pts", "bts", "bayes"])
def test_nodes_are_written_for_the_opset_of_the_classifier(opset, key, calibrate):
    model = calibrate(key, opset=opset, ir=10)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", opset)]
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("axis", [{}, {"axis": 1}, {"axis": -1}])
@pytest.mark.parametrize("opset", [11, 13])
def test_the_input_of_a_softmax_is_calibrated(opset, axis, calibrate):
    softmax = helper.make_node("Softmax", ["logits"], ["probs"], **axis)
    model = calibrate("bayes", [softmax], [info("probs")], scale=50, opset=opset)
    assert kinds(model).count("Softmax") == 1  # ours


def test_a_softmax_is_found_before_nodes_that_pass_it_on(calibrate):
    end = [
        helper.make_node("Softmax", ["logits"], ["inner"], axis=-1),
        helper.make_node("Identity", ["inner"], ["between"]),
        helper.make_node("Identity", ["between"], ["probs"]),
    ]
    found = kinds(calibrate("ts", end, [info("probs")], scale=50))
    assert (found.count("Softmax"), found.count("Identity")) == (1, 0)


def test_log_probabilities_are_logits(calibrate):
    calibrate(
        "bayes",
        [helper.make_node("LogSoftmax", ["logits"], ["logs"], axis=-1)],
        [info("logs")],
        kind="logits",
    )


def test_a_name_inside_a_branch_counts_as_used(calibrate):
    def branch(name):
        inner = helper.make_node("Identity", ["logits"], [f"temperance_{name}"])
        return helper.make_graph([inner], name, [], [info(f"temperance_{name}")])

    end = [
        helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("If", ["yes"], ["chosen"], then_branch=branch("a"), else_branch=branch("b")),
    ]
    added = [node.name for node in calibrate("ts", end, [info("chosen")], kind="logits").graph.node[3:]]
    assert added
    assert all(name.startswith("temperance2_") for name in added)


@pytest.mark.parametrize("shape", [(None, None), (50, 10), ("rows", "classes")])
def test_a_classifier_need_not_declare_its_shape(shape, calibrate, target):
    calibrate("ts", outputs=[info("logits", shape=shape)])
    rows = session(target).get_outputs()[0].shape[0]
    assert rows == {(None, None): "batch", (50, 10): 50}.get(shape, "rows")


def test_the_classifier_itself_is_not_changed(calibrator_of, tmp_path, target):
    node = helper.make_node("Twice", ["logits"], ["doubled"], "call", domain="mine")
    source = linear_classifier(
        tmp_path / "classifier.onnx", WEIGHTS, end=[node], outputs=[info("logits"), info("doubled")]
    )
    model = onnx.load(source)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    twice = [helper.make_node("Add", ["x", "x"], ["y"])]
    model.functions.append(
        helper.make_function("mine", "Twice", ["x"], ["y"], twice, [helper.make_opsetid("", 13)])
    )
    model.graph.value_info.append(info("inner"))
    model.graph.doc_string, model.domain, model.model_version = "mine", "org.mine", 3
    helper.set_model_props(model, {"author": "somebody"})
    onnx.save(model, source)
    before = source.read_bytes()
    calibrator_of("bayes").to_onnx(target, model=source, classifier_output="logits")
    assert source.read_bytes() == before
    after = onnx.load(target)
    added = len(after.graph.node) - len(model.graph.node)
    assert added > 20
    del after.graph.node[-added:]
    del after.graph.initializer[len(model.graph.initializer) :]
    assert [output.name for output in after.graph.output] == ["probabilities", "doubled"]
    after.graph.output[0].CopyFrom(model.graph.output[0])
    told = {entry.key: entry.value for entry in after.metadata_props}
    assert (told["author"], told["temperance.method"]) == ("somebody", "bayes")
    del after.metadata_props[1:]
    assert after == model


def test_other_outputs_stay_and_the_logits_if_asked(calibrator_of, tmp_path, target):
    label = helper.make_node("ArgMax", ["logits"], ["label"], axis=1, keepdims=0)
    outputs = [info("label", TensorProto.INT64, ["batch"]), info("logits")]
    source = linear_classifier(tmp_path / "classifier.onnx", WEIGHTS, end=[label], outputs=outputs)
    cal = calibrator_of("hts")
    cal.to_onnx(target, model=source, classifier_output="logits")
    assert [output.name for output in session(target).get_outputs()] == ["label", "probabilities"]
    cal.to_onnx(target, model=source, classifier_output="logits", keep=True, overwrite=True)
    running = session(target)
    assert [output.name for output in running.get_outputs()] == ["label", "probabilities", "logits"]
    labels, probs, logits = running.run(None, {"images": IMAGES})
    np.testing.assert_array_equal(labels, probs.argmax(axis=1))
    np.testing.assert_allclose(probs, cal.predict_proba(logits), rtol=0, atol=1e-5)


def test_a_softmax_that_others_read_stays(calibrator_of, tmp_path, target):
    end = [
        helper.make_node("Softmax", ["logits"], ["probs"], axis=-1),
        helper.make_node("ArgMax", ["probs"], ["label"], axis=1, keepdims=0),
    ]
    outputs = [info("probs"), info("label", TensorProto.INT64, ["batch"])]
    source = linear_classifier(tmp_path / "classifier.onnx", WEIGHTS, end=end, outputs=outputs)
    calibrator_of("ts").to_onnx(target, model=source, classifier_output="probs")
    probs, labels = session(target).run(None, {"images": IMAGES})
    np.testing.assert_array_equal(labels, probs.argmax(axis=1))
    calibrator_of("ts").to_onnx(target, model=source, classifier_output="probs", keep=True, overwrite=True)
    assert [output.name for output in session(target).get_outputs()] == ["probabilities", "label", "probs"]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_the_output_has_the_type_of_the_classifier(dtype, calibrator_of, tmp_path, target):
    source = linear_classifier(tmp_path / "classifier.onnx", WEIGHTS, dtype=dtype)
    cal = calibrator_of("bayes")
    cal.to_onnx(target, model=source)
    got = serve(target, IMAGES.astype(dtype))
    logits = serve(source, IMAGES.astype(dtype))
    assert got.dtype == logits.dtype == dtype
    # Where the runtime has no half-precision product it need not round the logits in between.
    tolerance = 0.01 if dtype == np.float16 else 1e-14
    np.testing.assert_allclose(got, cal.predict_proba(logits), rtol=0, atol=tolerance)


def test_bfloat16_is_computed_in_float32(calibrator_of, tmp_path, target):
    end = [helper.make_node("Cast", ["logits"], ["short"], to=TensorProto.BFLOAT16)]
    outputs = [info("short", TensorProto.BFLOAT16)]
    source = linear_classifier(tmp_path / "classifier.onnx", WEIGHTS, end=end, outputs=outputs)
    calibrator_of("bayes").to_onnx(target, model=source, kind="logits")
    model = onnx.load(target)
    casts = [node.attribute[0].i for node in model.graph.node if node.op_type == "Cast"]
    assert casts.count(TensorProto.BFLOAT16) == 2, "the classifier's own, and that of the result"
    assert set(casts) == {TensorProto.BFLOAT16, TensorProto.FLOAT}
    assert model.graph.output[0].type.tensor_type.elem_type == TensorProto.BFLOAT16
    onnx.checker.check_model(model, full_check=True)
    session(target)


def test_names_that_are_taken_are_not_used(calibrator_of, tmp_path, target):
    end = [
        helper.make_node("Identity", ["logits"], ["temperance_exp_0"], "temperance_constant_1"),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=-1),
    ]
    outputs = [info("logits"), info("probabilities"), info("temperance_exp_0")]
    source = linear_classifier(tmp_path / "classifier.onnx", WEIGHTS, end=end, outputs=outputs)
    cal = calibrator_of("bayes")
    assert append_to_onnx(cal, source, target, classifier_output="logits") == "calibrated_probabilities"
    running = session(target)
    names = [output.name for output in running.get_outputs()]
    assert names == ["calibrated_probabilities", "probabilities", "temperance_exp_0"]
    got, own, _ = running.run(None, {"images": IMAGES})
    np.testing.assert_allclose(got, expected(cal, source), rtol=0, atol=1e-5)
    assert np.abs(got - own).max() > 0.01


# ---- weights in separate files


@pytest.fixture
def large(classifier, tmp_path):
    """Return a classifier whose weights are in an external file."""
    folder = tmp_path / "large"
    folder.mkdir()
    options = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save(onnx.load(classifier), str(folder / "classifier.onnx"), **options)
    assert (folder / "weights.bin").stat().st_size == WEIGHTS.size * 4
    return folder / "classifier.onnx"


def test_external_weights_of_the_classifier_stay_in_place(large, calibrator_of, classifier):
    target, cal = large.with_name("calibrated.onnx"), calibrator_of("bayes")
    before = large.with_name("weights.bin").read_bytes()
    cal.to_onnx(target, model=large)
    np.testing.assert_allclose(serve(target, IMAGES), expected(cal, classifier), rtol=0, atol=1e-5)
    assert large.with_name("weights.bin").read_bytes() == before
    names = {path.name for path in large.parent.iterdir()}
    assert names == {"calibrated.onnx", "classifier.onnx", "weights.bin"}


def test_another_folder_would_lose_the_weights(large, calibrator_of, target):
    with pytest.raises(InputError, match=r"weights in files beside it \(weights.bin\).*the same folder"):
        calibrator_of("ts").to_onnx(target, model=large)
    assert not target.exists()


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("shape", [("batch", 1), ("batch",)], ids=str)
@pytest.mark.parametrize("key", ["hts", "bayes"])
def test_the_one_score_of_a_binary_classifier(key, shape, kind, tmp_path, target):
    task = simulate(500, 2, random_state=0)
    score = task.logits[:, 1] - task.logits[:, 0]
    cal = make_calibrator(key).fit(score, task.labels)
    end, name = [], "logits"
    if kind == "probs":
        end, name = [helper.make_node("Sigmoid", ["logits"], ["chance"])], "chance"
    if len(shape) == 1:
        end, name = [*end, helper.make_node("Squeeze", [name], ["flat"], axes=[1])], "flat"
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
    weights = np.array([[0.7], [-0.4]])
    source = linear_classifier(tmp_path / "binary.onnx", weights, opset=12, end=end, outputs=outputs)
    cal.to_onnx(target, model=source, kind=kind)
    images = np.random.default_rng(1).normal(scale=4, size=(300, 2)).astype(np.float32)
    got = serve(target, images)
    np.testing.assert_allclose(got, cal.predict_proba((images @ weights)[:, 0]), atol=1e-5)


# ---- what is refused


@pytest.mark.parametrize("option", [{"classifier_output": "z"}, {"kind": "probs"}, {"keep": True}], ids=str)
def test_options_about_a_classifier_need_one(option, calibrator_of, target):
    with pytest.raises(InputError, match=r"are about a classifier: name its file with model="):
        calibrator_of("ts").to_onnx(target, **option)
    assert not target.exists()


def test_of_several_outputs_the_one_called_logits_is_calibrated_or_one_is_named(
    calibrator_of, tmp_path, target
):
    path, cal = tmp_path / "classifier.onnx", calibrator_of("ts")
    end = [helper.make_node("Identity", ["logits"], [name]) for name in ("more", "most")]
    source = linear_classifier(path, WEIGHTS, end=end, outputs=[info("more"), info("logits")])
    cal.to_onnx(target, model=source)
    assert [output.name for output in session(target).get_outputs()] == ["more", "probabilities"]
    with pytest.raises(InputError, match="one of the classifier's, 'more', 'logits'; found 'scores'"):
        cal.to_onnx(target, model=source, classifier_output="scores", overwrite=True)
    linear_classifier(path, WEIGHTS, end=end, outputs=[info("more"), info("most")])
    several = "'more', 'most'; found the classifier has several, and none is called 'logits'"
    with pytest.raises(InputError, match=rf"{several}\. Pass classifier_output='more' or"):
        cal.to_onnx(target, model=source, overwrite=True)


REFUSED = {
    "another number of classes": (
        info("logits", shape=("batch", 7)),
        r"10 classes.*\(batch, 10\); found \(\?, 7\)",
    ),
    "one logit for ten classes": (info("logits", shape=("batch", 1)), r"found \(\?, 1\)"),
    "three axes": (info("logits", shape=("batch", 10, 3)), r"found \(\?, 10, 3\)"),
    "one axis": (info("logits", shape=(10,)), r"found \(10\)"),
    "whole numbers": (info("logits", TensorProto.INT64), "found a tensor of int64"),
}


@pytest.mark.parametrize(("output", "words"), REFUSED.values(), ids=REFUSED)
def test_an_output_that_cannot_be_logits_is_refused(output, words, calibrator_of, tmp_path, target):
    source = linear_classifier(tmp_path / "classifier.onnx", WEIGHTS, outputs=[output])
    with pytest.raises(InputError, match=words):
        calibrator_of("ts").to_onnx(target, model=source)
    assert not target.exists()


def test_a_calibrated_model_is_not_calibrated_again(calibrator_of, classifier, target):
    calibrator_of("ts").to_onnx(target, model=classifier)
    with pytest.raises(InputError, match="is already calibrated"):
        calibrator_of("hts").to_onnx(target.with_name("twice.onnx"), model=target)


def test_the_classifier_is_not_replaced(calibrator_of, classifier):
    with pytest.raises(InputError, match="must not be the classifier file"):
        calibrator_of("ts").to_onnx(classifier, model=classifier, overwrite=True)
    onnx.load(classifier)


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x07" * 5])
def test_a_file_that_is_not_a_model_is_refused(content, calibrator_of, tmp_path, target):
    (tmp_path / "bad.onnx").write_bytes(content)
    with pytest.raises(InputError, match=r"bad.onnx: must be a valid ONNX model; ONNX says"):
        calibrator_of("ts").to_onnx(target, model=tmp_path / "bad.onnx")


def test_a_file_that_is_not_there_is_named(calibrator_of, tmp_path, target):
    with pytest.raises(FileNotFoundError, match=r"none\.onnx"):
        calibrator_of("ts").to_onnx(target, model=tmp_path / "none.onnx")


@pytest.mark.parametrize(("opset", "newest"), [(10, 23), (13, 12)])
def test_an_opset_that_is_too_old_or_too_new_is_refused(
    opset, newest, calibrator_of, tmp_path, target, monkeypatch
):
    source = linear_classifier(tmp_path / "classifier.onnx", WEIGHTS, opset=opset)
    monkeypatch.setattr("onnx.defs.onnx_opset_version", lambda: newest)
    with pytest.raises(InputError, match=f"must have an opset from 11 to {newest}.*found {opset}"):
        calibrator_of("ts").to_onnx(target, model=source)
