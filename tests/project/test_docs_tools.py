"""Tools that build the documentation: broken links are found; each name and command has its place."""

import importlib.util
import inspect
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are not beside the tests")


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_to_missing_files_and_places_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/page.html#here">x</a><a href="sub/page.html#gone">x</a><a href="#top">x</a>'
        '<p id="top"></p><img src="no.png"><a href="https://example.org/never-fetched">x</a>'
    )
    (tmp_path / "sub" / "page.html").write_text('<h1 id="here"></h1><a href="../index.html">x</a>')
    broken = load("check_links").broken_links(tmp_path)
    assert broken == ["index.html: sub/page.html#gone", "index.html: no.png"]


def test_the_reference_lists_each_public_name_once(tmp_path):
    for framework in ("torch", "onnx", "dask"):
        pytest.importorskip(framework)
    load("generated_pages").write_name_reference(tmp_path / "names.md")
    lines = [line.strip() for line in (tmp_path / "names.md").read_text().splitlines()]
    for name in ("TemperatureScaling", "compare", "evaluate", "collect_logits", "run_study", "InputWarning"):
        assert lines.count(name) == 1, name


def test_the_page_of_metrics_has_a_row_for_each(tmp_path):
    from temperance.metrics import METRICS

    load("generated_pages").write_metric_reference(tmp_path / "metrics.md")
    _, _, *rows = (
        line for line in (tmp_path / "metrics.md").read_text().splitlines() if line.startswith("|")
    )
    assert [row.split(" | ")[0] for row in rows] == [f"| `{name}`" for name in METRICS]
    assert {row.count(" | ") for row in rows} == {5}


def test_the_reference_has_the_help_of_each_command(tmp_path):
    from temperance.cli.program import cli

    path = tmp_path / "command-line.md"
    path.write_bytes((DOCS / "command-line.md").read_bytes())
    load("generated_pages").write_command_reference(path)
    page = path.read_text()
    assert page.startswith("# The command line\n")
    for name, command in cli.commands.items():
        assert f"## temperance {name}\n" in page
        assert f"Usage: temperance {name}" in page
        for below in getattr(command, "commands", {}):
            assert f"## temperance {name} {below}\n" in page


@pytest.fixture
def extension(monkeypatch):
    pytest.importorskip("docutils")
    for framework in ("torch", "onnx", "dask"):
        pytest.importorskip(framework)
    monkeypatch.syspath_prepend(str(DOCS))
    return load("site_extension")


def test_public_names_in_docstrings_are_links_and_other_words_are_not(extension):
    assert extension.linked("as `compare` and `x`") == "as :py:obj:`compare <temperance.compare>` and `x`"
    assert extension.linked("`metrics.nll`") == ":py:obj:`metrics.nll <temperance.metrics.nll>`"
    assert extension.linked("``compare`` :py:obj:`compare`") == "``compare`` :py:obj:`compare`"


def test_what_a_function_returns_and_what_is_related_comes_before_its_examples(extension):
    import temperance

    lines = inspect.getdoc(temperance.compare).splitlines()
    extension.add_to_docstring(None, "function", "temperance.compare", temperance.compare, None, lines)
    places = [lines.index(name) for name in ("Parameters", "Returns", "See Also", "Examples")]
    assert places == sorted(places)
    assert lines[places[1] + 2] == ":py:obj:`Comparison <temperance.comparison.Comparison>`"


def test_see_also_names_exist(extension):
    for name, related in extension.SEE_ALSO.items():
        for full in (f"temperance.{name}", *related):
            assert extension.TARGETS[full] == full
            assert extension.purpose(full)
