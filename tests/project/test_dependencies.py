"""The package declares what it imports, and imports what it declares."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import temperance

PACKAGE = Path(temperance.__file__).resolve().parent
PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
ALL = ("fast", "torch", "onnx", "dask", "plot", "io", "excel", "study")

DISTRIBUTIONS = {"sklearn": "scikit-learn", "google.protobuf": "protobuf"}  # where the names differ
IMPORTERS = {"import_module", "import_optional", "find_spec"}  # functions that take the name of a module
FOR_USERS = {
    "onnxruntime": "runs the models that we write",
}


def names(requirements):
    return {re.match(r"[\w.-]+", requirement)[0].lower() for requirement in requirements} - {"temperance"}


DECLARED = {
    "dependencies": names(PROJECT["dependencies"]),
    **{extra: names(PROJECT["optional-dependencies"][extra]) for extra in ALL},
}


def text_of(node):
    """Return a string, or the constant beginning of an f-string."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) else None


def called(node):
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def modules_named(node):
    """Yield the modules that a statement imports, or names to a function that imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif called(node) in IMPORTERS and (name := text_of(node.args[0])):
        yield name


def distribution(module):
    """Return who provides a module; None if Python or this package does."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "temperance":
        return None
    return next((name for start, name in DISTRIBUTIONS.items() if module.startswith(start)), top)


NODES = [
    (str(path.relative_to(PACKAGE)), node)
    for path in sorted(PACKAGE.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
]
IMPORTED = {}
for place, node in NODES:
    for module in modules_named(node):
        if name := distribution(module):
            IMPORTED.setdefault(name, place)


@pytest.mark.parametrize("name", sorted(IMPORTED))
def test_every_imported_package_is_declared_once(name):
    places = [group for group, declared in DECLARED.items() if name in declared]
    assert len(places) == 1, f"{IMPORTED[name]} imports {name}, declared in {places}"


def test_every_declared_package_is_imported_or_explained():
    declared = set().union(*DECLARED.values())
    assert declared == IMPORTED.keys() | FOR_USERS.keys()
    assert not IMPORTED.keys() & FOR_USERS.keys()


def test_an_error_names_the_extra_that_has_the_package():
    calls = [node for _, node in NODES if called(node) == "import_optional"]
    assert calls
    for call in calls:
        module, extra = (text_of(argument) for argument in call.args[:2])
        assert distribution(module) in DECLARED[extra]


def test_all_means_every_extra():
    assert PROJECT["optional-dependencies"]["all"] == [f"temperance[{','.join(ALL)}]"]
