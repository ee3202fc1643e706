"""Files of the project that no other test reads: they parse, agree, and their links exist."""

import re
import tomllib
from pathlib import Path

import pytest

import temperance

ROOT = Path(__file__).resolve().parents[2]
yaml = pytest.importorskip("yaml")
YAML = sorted(
    str(path.relative_to(ROOT))
    for pattern in (".github/**/*.yml", "*.yaml", ".*.yaml", "*.cff")
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
    assert project()["version"] == temperance.__version__ == yaml.safe_load(read("CITATION.cff"))["version"]


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
    paths = [path for path in re.findall(r"\]\(([^)#]+)\)", read(name)) if "://" not in path]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_page_is_in_a_table_of_contents():
    docs = ROOT / "docs"
    listed = set()
    for page in docs.rglob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {found.resolve() for entry in entries for found in page.parent.glob(f"{entry}.md")}
    pages = {page.resolve() for page in docs.rglob("*.md")} - {(docs / "index.md").resolve()}
    assert {str(page.relative_to(docs)) for page in pages - listed} == set()
