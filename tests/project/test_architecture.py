"""Imports point one way, importing is light, and every key of the registry is one method everywhere."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import temperance
from temperance import CALIBRATORS, make_calibrator
from temperance.calibrators.external_methods import find_method
from temperance.formulas.model import TemperatureFormula
from temperance.loaders import LOADERS

PACKAGE = Path(temperance.__file__).resolve().parent
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Two dashes that are not our options: a variable of a style sheet, and an option of pip.
NO_OPTIONS = {"var(--ink)", ". Update it: pip install --upgrade onnx"}
BENCHMARKS = sorted(path.stem for path in (PROJECT.parent / "benchmarks").glob("*.py"))
HEAVY = ["click", "rich", "torch", "matplotlib", "numba", "dask", "onnx", "pandas", "sklearn.linear_model"]


spec = importlib.util.spec_from_file_location(
    "import_graph", PROJECT.parent / "benchmarks" / "import_graph.py"
)
graph = importlib.util.module_from_spec(spec)
spec.loader.exec_module(graph)


def test_imports_point_to_lower_layers_and_none_is_by_name():
    assert graph.violations() == []


def test_every_part_has_a_layer():
    parts = {graph.part_of(path) for path in MODULES} - {"__init__", "__main__"}
    assert parts == {part for layer in graph.LAYERS for part in layer}


def test_every_loader_is_used_by_a_lower_layer():
    used = graph.loaded_on_use()
    assert {high for _, high in used} == {module.split(".")[1] for module, _ in LOADERS.values()}
    assert all(graph.layer_of(low) < graph.layer_of(high) for low, high in used)


def test_the_page_shows_the_graph_of_the_imports():
    assert graph.draw() in graph.PAGE.read_text(encoding="utf-8")


def test_an_upward_import_is_detected_anywhere_in_a_module():
    tree = ast.parse("def f():\n    if True:\n        from temperance.cli import output\n    __import__('x')")
    assert graph.imported_names(tree) == ["temperance.cli"]
    assert graph.calls_by_name(tree) == [4]
    assert graph.layer_of("core") < graph.layer_of("calibrators") < graph.layer_of("cli")


def test_no_module_is_called_private():
    assert [path.name for path in MODULES if path.name.startswith("_") and "__" not in path.name] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_is_explained(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_command_line_names_its_options(path):
    """Messages and docstrings of the library name arguments: its callers have no options."""
    if graph.part_of(path) != "cli":
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts = {
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not [text for text in texts - NO_OPTIONS if re.search(r"--\w", text)]


def added_by(code):
    """Return which of the heavy modules a new interpreter has loaded after `code` but not before it.

    scikit-learn, on which the package rests, loads pandas by itself where there is one.
    """
    before = "import sys, sklearn.base\nbefore = set(sys.modules)\n"
    code = f"{before}{code}\nprint([m for m in {HEAVY} if m in sys.modules and m not in before])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_fitting_comparing_and_computing_a_figure_import_no_framework():
    code = (
        "import temperance; temperance.CALIBRATORS\n"
        "task = temperance.data.simulate(100, 3)\n"
        "temperance.compare(task.logits, task.labels, methods=['ts', 'hts'], folds=2, draws=5)\n"
        "temperance.display.ReliabilityDisplay.from_probs(task.probabilities, task.labels)"
    )
    assert added_by(code) == "[]"


def test_the_command_line_answers_without_waiting_for_numpy():
    code = "import sys, temperance.cli; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Both in one process and in CPU time: other work of the machine affects both equally.
IMPORT_COST = """
from time import process_time
began = process_time()
import sklearn.base, scipy.optimize
middle = process_time()
import temperance
temperance.CALIBRATORS
print((process_time() - began) / (middle - began))
"""


def test_the_calibrators_cost_at_most_15_percent_more_than_their_dependencies():
    command = [sys.executable, "-c", IMPORT_COST]
    costs = (subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(10))
    assert any(float(cost) <= 1.15 for cost in costs)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_can_be_imported_and_says_what_it_is_for(name, benchmark_script):
    assert benchmark_script(name).__doc__


@pytest.mark.parametrize("key", CALIBRATORS)
def test_a_key_is_the_same_method_everywhere(key):
    method = CALIBRATORS[key]
    calibrator = make_calibrator(key)
    assert repr(method()) == repr(calibrator) == repr(find_method(key)())
    assert method.key == key
    assert key.startswith(calibrator.key)
    assert type(calibrator) is method.build is CALIBRATORS[calibrator.key].build
    assert method.keeps_class == (key != "bayes-bias")
    assert issubclass(method.formula, TemperatureFormula) == (not key.startswith(("ets", "mono")))
    assert all(method().get_params()[name] == value for name, value in method.options.items())
    masks = key in ("ts", "hts", "hts-sgd", "bts", "ets", "ets-brier", "mono", "bayes", "bayes-bias")
    assert method.supports_masked_classes == masks
    assert method.is_random == key.startswith("pts")


def test_options_given_with_a_key_override_its_own():
    assert CALIBRATORS["pts-ece"]().loss == "ece"
    assert CALIBRATORS["pts-ece"](loss="nll", top_k=3).get_params()["loss"] == "nll"


def test_every_calibrator_is_public_and_named_after_scaling():
    for kind in {method.build for method in CALIBRATORS.values()}:
        assert getattr(temperance, kind.__name__) is kind
        assert kind.__name__.endswith("Scaling")
        assert kind.key.lower() in (kind.__doc__ or "").split(":")[0].lower()


@pytest.mark.parametrize("package", [temperance, temperance.data])
def test_public_names_are_listed_and_a_missing_one_is_refused_by_name(package):
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'temper'"):
        _ = package.temper


def test_every_public_method_of_a_calibrator_is_explained():
    for kind in {method.build for method in CALIBRATORS.values()}:
        for name, value in inspect.getmembers(kind, callable):
            assert name.startswith("_") or inspect.getdoc(value), name
