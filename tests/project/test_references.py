"""Citations: the page docs/references.md, and the docstrings that cite from it."""

import ast
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

import temperance

ROOT = Path(__file__).resolve().parents[2]
WELL_FORMED = {"arXiv": r"\d{4}\.\d{5}", "doi": r"10\.\d{4,9}/\S+"}
ADDRESS = {"arXiv": "https://arxiv.org/abs/", "doi": "https://doi.org/"}
IDENTIFIER = re.compile(r"\b(?:arXiv|doi):\S+")
FROM_THE_LITERATURE = ("ts", "lts", "hts", "hnlts", "pts", "bts", "ets")
WITHOUT_SOURCE = {"accuracy", "overconfidence"}


@dataclass(frozen=True)
class Entry:
    text: str
    links: list[tuple[str, str, str]]  # scheme, identifier, address

    @property
    def citation(self):
        """Authors, title, venue and year: what precedes the links, or the use if there are none."""
        return re.split(r" \[(?:arXiv|doi):| Used in ", self.text)[0]

    @property
    def year(self):
        return re.fullmatch(r".+, (\d{4})\.", self.citation)[1]


def entries():
    page = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    bullets = re.findall(r"^- (.+(?:\n  .+)*)", page, re.MULTILINE)
    texts = [" ".join(bullet.split()) for bullet in bullets]
    return [Entry(text, re.findall(r"\[(arXiv|doi):(\S+?)\]\((\S+?)\)[.,] ", text)) for text in texts]


def citations():
    """Return (where, citation) of each entry in a References section of the source."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                name = getattr(node, "name", path.stem)
                yield from ((name, one) for one in references(ast.get_docstring(node)))


def references(docstring):
    """Return the entries of the section References."""
    section = re.search(r"^References\n-+\n(.+?)(?:\n\n|\Z)", docstring or "", re.DOTALL | re.MULTILINE)
    found = re.split(r"^\.\. \[\d+\]", section[1], flags=re.MULTILINE)[1:] if section else []
    return [" ".join(one.split()) for one in found]


ENTRIES = entries()
CITATIONS = list(citations())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.text[:20])
def test_an_entry_has_a_year_and_well_formed_identifiers(entry):
    assert 1900 < int(entry.year) < 2100
    assert len(entry.links) == entry.text.count("](")
    for scheme, identifier, address in entry.links:
        assert re.fullmatch(WELL_FORMED[scheme], identifier)
        assert address == ADDRESS[scheme] + quote(identifier, safe="/():;")
        if scheme == "arXiv":  # its first digits are the year and month of the preprint
            assert 0 <= int(entry.year) - (2000 + int(identifier[:2])) <= 2
            assert 1 <= int(identifier[2:4]) <= 12


def test_no_entry_and_no_identifier_is_listed_twice():
    identifiers = [identifier.lower() for entry in ENTRIES for _, identifier, _ in entry.links]
    assert len(identifiers) == len(set(identifiers)) > 30
    assert len({entry.citation for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize(("name", "citation"), CITATIONS, ids=[name for name, _ in CITATIONS])
def test_a_citation_matches_an_entry_of_the_page(name, citation):
    author, year, title = re.match(r"(\S+).*? \((\d{4})\)\. (.+?)\.(?: (?:arXiv|doi):|$)", citation).groups()
    (entry,) = (entry for entry in ENTRIES if f". {title}. " in entry.text)
    assert entry.citation.startswith(f"{author}, ")
    assert entry.year == year
    listed = {f"{scheme}:{identifier}" for scheme, identifier, _ in entry.links}
    assert set(IDENTIFIER.findall(citation)) <= listed
    assert bool(IDENTIFIER.findall(citation)) == bool(listed), "cite the identifier"


def test_every_identifier_in_the_source_is_on_the_page():
    listed = {f"{scheme}:{identifier}" for entry in ENTRIES for scheme, identifier, _ in entry.links}
    for path in (ROOT / "src").rglob("*.py"):
        assert set(IDENTIFIER.findall(path.read_text(encoding="utf-8"))) <= listed, path


@pytest.mark.parametrize("key", FROM_THE_LITERATURE)
def test_a_method_of_the_literature_names_its_source(key):
    assert references(inspect.getdoc(type(temperance.make_calibrator(key))))


@pytest.mark.parametrize("name", sorted(set(temperance.metrics.METRICS) - WITHOUT_SOURCE))
def test_a_metric_names_its_source(name):
    assert references(inspect.getdoc(getattr(temperance.metrics, name)))
