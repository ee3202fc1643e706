"""Imports point one way, importing is light, and every public name is there and explained."""

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import temperance
from temperance import CALIBRATORS, make_calibrator
from temperance.calibrators import Calibrator

PACKAGE = Path(temperance.__file__).resolve().parent
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
MODULES = sorted(PACKAGE.rglob("*.py"))

# What a part of the package may import when it is imported itself, besides itself.
ALLOWED = {
    "validation": {"core"},
    "containers": {"validation", "core"},
    "files": set(),
    "core": set(),
    "metrics": {"validation", "containers", "core", "files"},
    "data": {"validation", "containers", "core", "files"},
    "population": {"validation", "core", "files"},
    "calibrators": {"validation", "containers", "core", "population"},
    "dask": {"validation", "containers", "core"},
    "learning": {"validation", "calibrators", "containers", "core", "population"},
    "persistence": {"validation", "calibrators", "core", "files"},
    "onnx": {"validation", "calibrators", "core", "files"},
    "torch": {"validation", "calibrators", "core", "files"},
    "comparison": {"validation", "calibrators", "containers", "core", "metrics"},
    "display": {"validation", "calibrators", "comparison", "core", "metrics"},
    "streaming": {"validation", "calibrators", "containers", "core", "data", "files"},
    "sklearn": {"validation", "calibrators", "containers", "core"},
    "report": {"calibrators", "comparison", "core", "display", "files", "metrics"},
    "study": {
        "validation",
        "calibrators",
        "comparison",
        "core",
        "data",
        "display",
        "files",
        "metrics",
    },
    "cli": set(),
    "__main__": {"cli"},
    "__init__": set(),
}
# What a part may import inside a function, when it is asked for.
LATER = {
    "calibrators": {"onnx", "persistence", "report", "torch"},
    "comparison": {"files", "report"},
    "dask": {"calibrators"},
    "cli": {
        "validation",
        "calibrators",
        "comparison",
        "core",
        "data",
        "files",
        "metrics",
        "onnx",
        "persistence",
        "report",
        "streaming",
        "study",
        "torch",
    },
    "__init__": {
        "validation",
        "calibrators",
        "comparison",
        "containers",
        "data",
        "display",
        "metrics",
        "persistence",
        "sklearn",
    },
}
HEAVY = ["click", "rich", "torch", "matplotlib", "numba", "dask", "onnx", "pandas", "sklearn.linear_model"]


def part_of(path):
    """Return the first name under the package: a module or a folder of modules."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_parts(nodes):
    """Return the parts of the package that some statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            bare = node.module == "temperance"
            names = [f"temperance.{alias.name}" for alias in node.names] if bare else [node.module]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("temperance."))


def at_module_level(tree):
    """Yield the statements that run on import, without those for type checkers alone."""
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        yield from ast.walk(node)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    part, tree = part_of(path), ast.parse(path.read_text(encoding="utf-8"))
    assert part in ALLOWED, f"say in ALLOWED what {part} may import"
    on_import = set(imported_parts(at_module_level(tree))) - {part}
    assert on_import <= ALLOWED[part]
    at_all = set(imported_parts(ast.walk(tree))) - {part}
    assert at_all <= ALLOWED[part] | LATER.get(part, set())


def test_the_allowed_imports_have_no_cycle():
    done = set()
    while len(done) < len(ALLOWED):
        free = {part for part, below in ALLOWED.items() if part not in done and below <= done}
        assert free, f"a cycle among {set(ALLOWED) - done}"
        done |= free


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_is_explained_and_short(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 400


def added_by(code):
    """Return which of the heavy modules a new interpreter has loaded after `code` but not before it.

    scikit-learn, on which the package rests, loads pandas by itself where there is one.
    """
    before = "import sys, sklearn.base\nbefore = set(sys.modules)\n"
    code = f"{before}{code}\nprint([m for m in {HEAVY} if m in sys.modules and m not in before])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_the_package_imports_no_framework():
    assert added_by("import temperance; temperance.CALIBRATORS") == "[]"


def test_fitting_comparing_and_computing_a_picture_import_no_framework():
    code = (
        "import temperance\n"
        "task = temperance.data.simulate(100, 3)\n"
        "temperance.compare(task.logits, task.labels, methods=['ts', 'hts'], folds=2, draws=5)\n"
        "temperance.display.ReliabilityDisplay.from_probs(task.probabilities, task.labels)"
    )
    assert added_by(code) == "[]"


def test_every_key_builds_a_calibrator_whose_own_key_is_in_the_registry(method):
    cal = make_calibrator(method)
    assert isinstance(cal, Calibrator)
    assert type(cal) is CALIBRATORS[method].build
    assert CALIBRATORS[cal.key].build is type(cal)
    assert method.startswith(cal.key)


def test_every_calibrator_is_public_and_named_after_scaling():
    for kind in {method.build for method in CALIBRATORS.values()}:
        assert getattr(temperance, kind.__name__) is kind
        assert kind.__name__.endswith("TemperatureScaling")
        assert kind.key.lower() in (kind.__doc__ or "").split(":")[0].lower()


@pytest.mark.parametrize("name", temperance.__all__)
def test_every_public_name_is_there_listed_and_explained(name):
    value = getattr(temperance, name)
    assert name in dir(temperance)
    if name != "CALIBRATORS":
        assert inspect.getdoc(value)


def test_every_public_method_of_a_calibrator_is_explained(method):
    for name, value in inspect.getmembers(CALIBRATORS[method].build, callable):
        if not name.startswith("_"):
            assert inspect.getdoc(value), name


def test_a_public_function_or_class_shows_a_running_example():
    for name in temperance.__all__:
        value = getattr(temperance, name)
        if callable(value) and name != "InputError":
            assert ">>>" in (inspect.getdoc(value) or ""), name


def test_what_is_not_there_is_refused_by_name():
    with pytest.raises(AttributeError, match="'temperance' has no attribute 'temper'"):
        _ = temperance.temper


@pytest.mark.skipif(not PROJECT.exists(), reason="the project file is not beside the tests")
def test_the_version_is_that_of_the_project():
    assert tomllib.loads(PROJECT.read_text())["project"]["version"] == temperance.__version__
