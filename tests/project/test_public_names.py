"""Every public name has a docstring, a description of its parameters, and an example that runs.

Public are the names in `__all__` of the package and of the modules directly below it. The examples are run as
doctests, with those of all modules.
"""

import dataclasses
import doctest
import enum
import importlib.util
import inspect
import pkgutil
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import temperance

DOCS = Path(__file__).resolve().parents[2] / "docs"
FRAMEWORKS = {"temperance.torch": "torch", "temperance.dask": "dask", "temperance.onnx": "onnx"}


def is_installed(module):
    return module not in FRAMEWORKS or importlib.util.find_spec(FRAMEWORKS[module]) is not None


def public_modules():
    names = [module.name for module in pkgutil.iter_modules(temperance.__path__, "temperance.")]
    modules = [import_module(name) for name in names if is_installed(name) and not name.endswith("__main__")]
    return [temperance, *(module for module in modules if hasattr(module, "__all__"))]


PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in public_modules()
    for name in module.__all__
}
DESCRIBED = {
    name: value for name, value in PUBLIC.items() if inspect.isclass(value) or inspect.isfunction(value)
}
CONSTANTS = sorted(
    name for name, value in PUBLIC.items() if name not in DESCRIBED and not inspect.ismodule(value)
)


def section(docstring, title):
    """Return a section of a numpydoc docstring; "" if there is none."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", docstring, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def names_in(text):
    """Return the names that a section describes: "a, b : int" describes two."""
    heads = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", text, re.MULTILINE)
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def parameters_of(value):
    """Return the parameters of a function or class; fields of a result dataclass are attributes."""
    if inspect.isclass(value) and value.__init__ is object.__init__:
        return set()
    if inspect.isclass(value) and (inspect.isabstract(value) or issubclass(value, enum.Enum)):
        return set()
    taken = inspect.signature(value).parameters
    return {name for name in taken if name != "self"} - {"args", "kwargs"}


def test_the_search_finds_the_public_names():
    assert len(DESCRIBED) > 50
    assert {
        "temperance.compare",
        "temperance.metrics.ece",
        "temperance.errors.InputError",
    } <= DESCRIBED.keys()


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_public_name_has_a_docstring_and_an_example(name):
    docstring = inspect.getdoc(DESCRIBED[name])
    assert docstring, name
    assert len(docstring.splitlines()[0]) > 20
    examples = doctest.DocTestParser().get_examples(docstring)
    assert examples, f"{name} has no example"
    assert "Examples\n--------" in docstring
    assert not any(example.options.get(doctest.SKIP) for example in examples), "an example that does not run"
    assert any(example.want for example in examples), f"the example of {name} shows nothing"


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_public_name_describes_what_it_takes(name):
    value, docstring = DESCRIBED[name], inspect.getdoc(DESCRIBED[name])
    described = names_in(section(docstring, "Parameters")) | names_in(section(docstring, "Attributes"))
    assert parameters_of(value) <= described, f"{name}: {sorted(parameters_of(value) - described)}"


def test_a_public_dataclass_describes_its_fields():
    found = [value for value in DESCRIBED.values() if dataclasses.is_dataclass(value)]
    assert len(found) > 15
    for value in found:
        described = names_in(section(inspect.getdoc(value), "Attributes"))
        described |= names_in(section(inspect.getdoc(value), "Parameters"))
        fields = {field.name for field in dataclasses.fields(value) if not field.name.startswith("_")}
        assert fields <= described, f"{value.__name__}: {sorted(fields - described)}"


@pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are not beside the tests")
def test_the_reference_lists_every_constant():
    listed = runpy.run_path(str(DOCS / "generated_pages.py"))["CONSTANTS"]
    assert {name.rpartition(".")[2] for name in CONSTANTS} == {name.rpartition(".")[2] for name in listed}
