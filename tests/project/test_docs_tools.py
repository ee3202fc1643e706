"""Tools that build the documentation: broken links are found; each name and command has its place."""

import importlib.util
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

    load("generated_pages").write_command_reference(tmp_path / "commands.md")
    page = (tmp_path / "commands.md").read_text()
    for name, command in cli.commands.items():
        assert f"## temperance {name}\n" in page
        assert f"Usage: temperance {name}" in page
        for below in getattr(command, "commands", {}):
            assert f"## temperance {name} {below}\n" in page


def test_the_site_shows_the_package_graph_as_a_table(tmp_path):
    page = tmp_path / "architecture.md"
    layers = "  subgraph layer2[ ]\n    cli\n    report\n  end\n  subgraph layer1[ ]\n    core\n  end\n"
    arrows = "  cli --> core\n  report --> core\n  core -. on use .-> report\n"
    graph = f"```mermaid\ngraph TD\n{layers}{arrows}```\n"
    page.write_text(f"Before.\n\n{graph}\nAfter.\n", encoding="utf-8")
    load("package_table").replace_graph(page)
    head, rule, *rows = page.read_text(encoding="utf-8").split("\n\n")[1].splitlines()
    assert head == "| layer | part | imports | loads on use |"
    assert rule == "| --- | --- | --- | --- |"
    assert rows == [
        "| 2 | `cli` | `core` |  |",
        "| 2 | `report` | `core` |  |",
        "| 1 | `core` |  | `report` |",
    ]
    with pytest.raises(ValueError, match=r"architecture\.md must hold a Mermaid graph; found none"):
        load("package_table").replace_graph(page)


def test_every_part_of_the_package_graph_is_in_the_table(tmp_path):
    page = tmp_path / "architecture.md"
    page.write_text((DOCS / "architecture.md").read_text(encoding="utf-8"), encoding="utf-8")
    n_arrows = page.read_text(encoding="utf-8").count("->")
    load("package_table").replace_graph(page)
    text = page.read_text(encoding="utf-8")
    rows = [line.split("|")[1:5] for line in text.splitlines() if line.startswith("| ") and "`" in line]
    parts = {cells[1].strip(" `") for cells in rows}
    found = [name for cells in rows for name in "".join(cells[2:]).replace("`", " ").split() if name != ","]
    assert {"cli", "core", "monitoring"} <= parts
    assert set(found) <= parts
    assert len(found) == n_arrows - text.count("->")
