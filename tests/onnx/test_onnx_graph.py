"""The graph: exact operations, one of each constant, and a file that says what it is."""

import subprocess
import sys

import mpmath
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import NAMES, serve, session
from operations import CONSTANTS, OPERATIONS, X
from sklearn.exceptions import NotFittedError

from temperance import InputError, TemperatureScaling, __version__
from temperance.formulas.ts import SingleTemperatureFormula
from temperance.onnx.graph import OLDEST_OPSET, Array, Graph


def run(build, x, path, *, opset=OLDEST_OPSET):
    """Return what the nodes of `build(x, ops)` compute."""
    graph = Graph(x.dtype, opset=opset)
    result = build(Array(graph, "x"), graph)
    kind = NAMES[x.dtype]
    out = graph.cast(result, kind, output="y")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "test",
            [helper.make_tensor_value_info("x", kind, ["rows", x.shape[1]])],
            [helper.make_tensor_value_info(out.name, kind, None)],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=10,
    )
    onnx.save(model, str(path))
    return serve(path, x)


DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@DTYPES
def test_log1p_is_exact_from_the_smallest_number_to_infinity(dtype, tmp_path):
    rng = np.random.default_rng(0)
    lowest = {4: -37, 8: -307}[np.dtype(dtype).itemsize]
    x = np.concatenate(
        [10 ** rng.uniform(lowest, 10, 5000), rng.uniform(0, 4, 5000), 2.0 ** np.arange(-60, 20)]
    )
    x = x.astype(dtype)
    got = run(lambda x, ops: ops.log1p(x), x[:, None], tmp_path / "f.onnx")[:, 0]
    with mpmath.workdps(40):
        for i in range(0, len(x), 37):
            wanted = mpmath.log1p(mpmath.mpf(float(x[i])))
            assert abs(float(got[i] / wanted) - 1) < 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(got, np.log1p(x.astype(np.float64)), rtol=4 * np.finfo(dtype).eps)
    ends = np.array([[0.0, np.inf]], dtype)
    np.testing.assert_array_equal(run(lambda x, ops: ops.log1p(x), ends, tmp_path / "f.onnx"), ends)


@DTYPES
def test_softplus_neither_overflows_nor_loses_digits(dtype, tmp_path):
    x = np.linspace(-80, 200, 2001).astype(dtype)
    got = run(lambda x, ops: ops.softplus(x), x[:, None], tmp_path / "f.onnx")[:, 0]
    np.testing.assert_allclose(got, np.logaddexp(0, x.astype(np.float64)), rtol=8 * np.finfo(dtype).eps)


@DTYPES
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_every_operation_is_the_same_in_every_opset(opset, dtype, tmp_path):
    for name, (build, wanted) in OPERATIONS.items():

        def with_constants(x, ops, build=build):
            return build(x, ops, {key: x.graph.constant(value) for key, value in CONSTANTS.items()})

        got = run(with_constants, X.astype(dtype), tmp_path / "f.onnx", opset=opset)
        np.testing.assert_allclose(got, np.asarray(wanted, dtype), rtol=1e-6, err_msg=name)
        none = run(with_constants, X[:0].astype(dtype), tmp_path / "f.onnx", opset=opset)
        assert none.shape == (0, np.shape(wanted)[1]), name


# ---- the file


@pytest.fixture
def written(calibrator_of, tmp_path):
    calibrator_of("bayes").to_onnx(tmp_path / "cal.onnx")
    return tmp_path / "cal.onnx"


def test_the_model_says_what_it_is(written):
    model = onnx.load(written)
    assert (model.producer_name, model.producer_version) == ("temperance", __version__)
    told = {entry.key: entry.value for entry in model.metadata_props}
    assert told == {
        "temperance.method": "bayes",
        "temperance.classes": "10",
        "temperance.input": "logits",
        "temperance.version": __version__,
    }
    assert "BayesianTemperatureScaling" in model.graph.doc_string


def test_input_and_output_have_names_and_any_batch(written):
    (given,), (got,) = session(written).get_inputs(), session(written).get_outputs()
    assert (given.name, given.shape, given.type) == ("logits", ["batch", 10], "tensor(float)")
    assert (got.name, got.shape, got.type) == ("probabilities", ["batch", 10], "tensor(float)")


def test_calibrated_logits_are_those_of_transform(name, calibrator_of, tmp_path):
    calibrator = calibrator_of(name)
    calibrator.to_onnx(tmp_path / "cal.onnx", output="logits", dtype="float64")
    z = 3 * np.random.default_rng(0).standard_normal((50, calibrator.n_classes_))
    (got,) = session(tmp_path / "cal.onnx").run(["calibrated_logits"], {"logits": z})
    np.testing.assert_allclose(got, calibrator.transform(z), rtol=1e-9, atol=1e-9)
    with pytest.raises(InputError, match="output must be one of"):
        calibrator.to_onnx(tmp_path / "other.onnx", output="probs")


def test_it_works_with_old_runtimes_and_uses_every_node_and_constant(name, calibrator_of, tmp_path):
    calibrator_of(name).to_onnx(tmp_path / "cal.onnx")
    model = onnx.load(tmp_path / "cal.onnx")
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 11)]
    assert model.ir_version == 6
    onnx.checker.check_model(model, full_check=True)
    read = {"probabilities"}.union(*(node.input for node in model.graph.node))
    assert all(read.intersection(node.output) for node in model.graph.node)
    assert read.issuperset(constant.name for constant in model.graph.initializer)


def test_equal_constants_are_one_and_names_are_readable(written):
    graph = onnx.load(written).graph
    constants = [(t.data_type, tuple(t.dims), t.raw_data) for t in graph.initializer]
    assert len(set(constants)) == len(constants)
    names = [node.name for node in graph.node]
    assert len(set(names)) == len(names)
    assert all(node.name.startswith(f"temperance_{node.op_type.lower()}_") for node in graph.node)


def test_the_same_calibrator_gives_the_same_bytes(written, calibrator_of, tmp_path):
    calibrator_of("bayes").to_onnx(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == written.read_bytes()


def test_a_model_that_fails_the_check_is_not_written(calibrator_of, tmp_path, monkeypatch):
    monkeypatch.setattr(
        SingleTemperatureFormula, "calibrate", lambda self, rows: rows.ops.node("Nonsense", rows.z)
    )
    with pytest.raises(onnx.checker.ValidationError, match="Nonsense"):
        calibrator_of("ts").to_onnx(tmp_path / "cal.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", ["float16", None])
def test_other_types_are_refused(dtype, calibrator_of, tmp_path):
    with pytest.raises(InputError, match="dtype must be one of 'float32', 'float64'"):
        calibrator_of("ts").to_onnx(tmp_path / "cal.onnx", dtype=dtype)


def test_an_unfitted_calibrator_has_no_graph(tmp_path):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        TemperatureScaling().to_onnx(tmp_path / "cal.onnx")


# ---- packages

WRITE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {missing}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import temperance
assert not any(name in sys.modules for name in ("onnx", "temperance.onnx"))
cal = temperance.load({calibrator!r})
cal.to_onnx({path!r})
"""


def write_without(missing, calibrator_of, tmp_path):
    """Write a calibrator in a process in which some packages cannot be imported."""
    calibrator_of("bayes").save(tmp_path / "cal.json", overwrite=True)
    code = WRITE.format(
        missing=missing, calibrator=str(tmp_path / "cal.json"), path=str(tmp_path / "alone.onnx")
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_writing_needs_neither_pytorch_nor_onnxruntime(written, calibrator_of, tmp_path):
    done = write_without(["torch", "onnxruntime"], calibrator_of, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "alone.onnx").read_bytes() == written.read_bytes()
