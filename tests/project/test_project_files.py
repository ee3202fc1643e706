"""Files of the project that no other test reads: they parse, agree, and their links exist."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import temperance

ROOT = Path(__file__).resolve().parents[2]
yaml = pytest.importorskip("yaml")
YAML = sorted(
    str(path.relative_to(ROOT))
    for pattern in (".github/**/*.yml", "*.yaml", ".*.yaml", "*.cff", "recipe/*.yaml")
    for path in ROOT.glob(pattern)
)

pytestmark = pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="not a clone of the repository")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


def test_the_files_are_found():
    assert {".github/workflows/ci.yml", ".pre-commit-config.yaml", "CITATION.cff"} <= set(YAML)
    assert len(YAML) >= 8


@pytest.mark.parametrize("name", YAML)
def test_a_yaml_file_parses(name):
    assert isinstance(yaml.safe_load(read(name)), dict)


def test_the_version_is_the_same_everywhere():
    version = project()["version"]
    assert version == temperance.__version__ == yaml.safe_load(read("CITATION.cff"))["version"]
    assert version == yaml.safe_load(read("recipe/recipe.yaml"))["context"]["version"]


def test_the_recipe_needs_what_the_package_needs():
    needed = {
        line.replace(" ", "") for line in yaml.safe_load(read("recipe/recipe.yaml"))["requirements"]["run"]
    }
    assert needed == {*project()["dependencies"], f"python{project()['requires-python']}"}


def test_the_sites_of_versions_lie_beside_each_other(tmp_path):
    versions = runpy.run_path(str(ROOT / "docs" / "versions.py"))["main"]
    (tmp_path / "site").mkdir()
    (tmp_path / "pages").mkdir()
    for ref in ("main", "v0.9.0", "v0.10.0", "v0.9.1"):
        (tmp_path / "site" / "index.html").write_text(ref)
        versions(tmp_path / "pages", tmp_path / "site", ref)
    pages = {path.parent.name: path.read_text() for path in (tmp_path / "pages").glob("*/index.html")}
    assert pages == {"dev": "main", "0.9": "v0.9.1", "0.10": "v0.10.0", "stable": "v0.10.0"}
    assert json.loads((tmp_path / "pages" / "versions.json").read_text()) == ["stable", "dev", "0.10", "0.9"]
    assert "url=stable/" in (tmp_path / "pages" / "index.html").read_text()


def test_ci_runs_every_supported_python_and_every_extra():
    jobs = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]
    supported = re.findall(r":: (3\.\d+)", "\n".join(project()["classifiers"]))
    assert jobs["versions"]["strategy"]["matrix"]["python"] == supported
    (everything,) = project()["optional-dependencies"]["all"]
    extras = re.search(r"\[(.*)\]", everything)[1].split(",")
    assert sorted(jobs["wheel"]["strategy"]["matrix"]["extra"]) == sorted(["", *extras])


def test_publishing_needs_no_secret():
    text = read(".github/workflows/publish.yml")
    assert yaml.safe_load(text)["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text


@pytest.mark.parametrize("name", ["README.md", "llms.txt", "SECURITY.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(name):
    here = re.sub(
        r"https://(github|raw\.githubusercontent)\.com/OWNER/temperance/(blob/)?main/", "", read(name)
    )
    paths = [path for path in re.findall(r"\]\(([^)#]+)\)", here) if "://" not in path]
    assert paths or name == "SECURITY.md"
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_links_of_the_readme_are_absolute():
    """The registry shows the same file, where a relative link leads nowhere."""
    assert re.findall(r"\]\((?!https://)[^)]*\)", read("README.md")) == []
    assert set(re.findall(r"github\.com/(\w+)/", read("README.md"))) == {"OWNER"}
    assert all("OWNER" in address for address in project()["urls"].values())


def test_every_page_is_in_a_table_of_contents():
    docs = ROOT / "docs"
    listed = set()
    for page in docs.rglob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {found.resolve() for entry in entries for found in page.parent.glob(f"{entry}.md")}
    pages = {page.resolve() for page in docs.rglob("*.md")} - {(docs / "index.md").resolve()}
    assert {str(page.relative_to(docs)) for page in pages - listed} == set()
