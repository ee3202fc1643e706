"""A calibrator after classifiers of scikit-learn's converter: probabilities are never mistaken for logits."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from temperance import InputError, load, logits_from_probs, make_calibrator, probability_floor
from temperance.data import simulate

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
converter = pytest.importorskip("skl2onnx")

X, Y = make_classification(700, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=2)
X = X.astype(np.float32)
TRAIN, VAL, TEST = slice(0, 300), slice(300, 600), slice(600, 700)
MODELS = {
    "forest": RandomForestClassifier(10, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "logistic": LogisticRegression(),
}


@pytest.fixture(scope="module")
def models():
    return {name: model.fit(X[TRAIN], Y[TRAIN]) for name, model in MODELS.items()}


@pytest.fixture
def convert(models, tmp_path, monkeypatch):
    """Write a classifier as ONNX, and its probabilities with labels as val.npz, in a new folder."""
    monkeypatch.chdir(tmp_path)

    def convert(name, **options):
        model = models[name]
        written = converter.to_onnx(model, X[:1], options={"zipmap": False} | options)
        onnx.save(written, "classifier.onnx")
        np.savez("val.npz", probs=model.predict_proba(X[VAL]), labels=Y[VAL])
        return model

    return convert


@pytest.fixture
def run(run_command):
    return lambda *words: run_command(*words)[::2]


def served():
    session = runtime.InferenceSession("calibrated.onnx")
    name = next(out.name for out in session.get_outputs() if "probabilities" in out.name)
    return session.run([name], {"X": X[TEST]})[0]


EXPORT = ("export", "cal.json", "calibrated.onnx", "--append", "classifier.onnx")
EXPORT += ("--classifier-output", "probabilities")
PROBS = ("--input", "probs")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["ts", "lts"])
def test_a_calibrator_of_probabilities_takes_their_logarithms_with_its_floor(convert, run, name, method):
    model = convert(name)
    assert run("fit", "val.npz", "-m", method, "-o", "cal.json")[0] == 0
    assert run(*EXPORT, *PROBS) == (0, "")
    cal = load("cal.json")
    wanted = cal.predict_proba(logits_from_probs(model.predict_proba(X[TEST]), cal.fitted_on_.floor))
    np.testing.assert_allclose(served(), wanted, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_calibrator_of_logits_asks_what_the_output_holds_and_the_remedy_works(convert, run, name):
    probs = convert(name).predict_proba(X[VAL])
    floor = probability_floor(probs)
    cal = make_calibrator("ts").fit(logits_from_probs(probs, floor), Y[VAL])
    cal.save("cal.json")
    code, said = run(*EXPORT)
    assert code == 2
    assert "what 'probabilities' holds, logits or probabilities, must be said" in said
    assert "outputs are 'label', 'probabilities'. Pass --input logits or --input probs." in said
    assert run(*EXPORT, *PROBS, "--floor", floor) == (0, "")
    wanted = cal.predict_proba(logits_from_probs(MODELS[name].predict_proba(X[TEST]), floor))
    np.testing.assert_allclose(served(), wanted, atol=1e-5)


@pytest.mark.parametrize("name", ["boosted", "logistic"])
def test_raw_scores_can_be_called_probabilities(convert, name):
    model = convert(name, raw_scores=True)
    cal = make_calibrator("ts").fit(model.decision_function(X[VAL]), Y[VAL])
    raw = {"model": "classifier.onnx", "classifier_output": "probabilities", "kind": "logits"}
    cal.to_onnx("calibrated.onnx", **raw)
    np.testing.assert_allclose(served(), cal.predict_proba(model.decision_function(X[TEST])), atol=1e-5)


def test_a_calibrator_of_probabilities_after_raw_scores_uses_its_floor(convert, run):
    model = convert("boosted", raw_scores=True)
    assert run("fit", "val.npz", "-m", "lts", "-o", "cal.json")[0] == 0
    assert run(*EXPORT, "--input", "logits") == (0, "")
    cal = load("cal.json")
    wanted = cal.predict_proba(logits_from_probs(model.predict_proba(X[TEST]), cal.fitted_on_.floor))
    np.testing.assert_allclose(served(), wanted, atol=1e-5)


def test_maps_of_scikit_learn_are_refused_with_advice(convert, models, run):
    convert("forest")
    onnx.save(converter.to_onnx(models["forest"], X[:1]), "classifier.onnx")
    assert run("fit", "val.npz", "-m", "ts", "-o", "cal.json")[0] == 0
    code, said = run(*EXPORT[:-1], "output_probability")
    assert code == 2
    assert "found sequence. Export the classifier again without ZipMap: zipmap=False" in said


def graph(tmp_path, *nodes, outputs):
    """Write a classifier of 3 classes whose first node copies X to `scores`."""
    from onnx import TensorProto, helper

    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3])

    made = [helper.make_node("Relu", ["X"], ["scores"]), *(helper.make_node(*node) for node in nodes)]
    model = helper.make_model(
        helper.make_graph(made, "classifier", [info("X")], [info(name) for name in outputs]),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "classifier.onnx")
    return tmp_path / "classifier.onnx"


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((200, 3))
    return make_calibrator("ts").fit(logits, (logits + rng.gumbel(size=(200, 3))).argmax(axis=1))


@pytest.mark.parametrize("name", ["prob", "raw"])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_an_output_holds_what_the_user_says_whatever_its_name(fitted, tmp_path, name, kind):
    source = graph(tmp_path, ("Exp", ["scores"], [name]), outputs=[name])
    with pytest.raises(InputError, match=rf"what '{name}' holds.* Pass kind='logits' or kind='probs'\."):
        fitted.to_onnx(tmp_path / "out.onnx", model=source)
    with pytest.raises(InputError, match="kind must be one of 'logits', 'probs'; found 'scores'"):
        fitted.to_onnx(tmp_path / "out.onnx", model=source, kind="scores")
    fitted.to_onnx(tmp_path / "out.onnx", model=source, kind=kind)
    logs = "Log" in [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert logs == (kind == "probs")


def test_the_floor_of_a_classifier_is_a_probability(tmp_path):
    task = simulate(n_rows=100, n_classes=3, random_state=0)
    cal = make_calibrator("ts").fit(task.logits, task.labels)
    with pytest.raises(InputError, match="floor must be a number from 0 to 1, without 1; found -1"):
        cal.to_onnx(tmp_path / "out.onnx", model=tmp_path / "classifier.onnx", floor=-1)
