"""The prose linter: each pattern finds its bad examples and no good one, and the pages have no finding."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the pages are not beside the tests")


@pytest.fixture(scope="module")
def prose():
    spec = importlib.util.spec_from_file_location("prose", ROOT / "docs" / "prose.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found(prose, kind, text):
    return {finding.name for finding in prose.findings("page.md", [prose.Piece(1, kind, text)])}


def test_a_pattern_finds_its_bad_examples_and_no_good_one(prose):
    patterns = prose.patterns()
    assert len({pattern["name"] for pattern in patterns}) == len(patterns) > 15
    for pattern in patterns:
        kind, name = pattern.get("only", "prose"), pattern["name"]
        assert pattern["bad"]
        assert pattern["good"]
        assert [text for text in pattern["bad"] if name not in found(prose, kind, text)] == [], name
        assert [text for text in pattern["good"] if name in found(prose, kind, text)] == [], name


def test_code_links_and_comments_are_not_prose_and_lines_are_counted(prose):
    code = "```python\nx = 95 % 5\n```\n\n`a 9 % b` <!-- 9 % -->"
    page = f"# A title\n\n{code}\n\nOne\nhas 9 % here.\n\n| a | 5 % |\n"
    findings = list(prose.findings("page.md", prose.pieces_of_markdown(page)))
    assert [(finding.line, finding.name) for finding in findings] == [(10, "percent"), (12, "percent")]


def test_tutorials_and_docstrings_are_read(prose):
    tutorial = '"""\nTitle\n=====\n\nA 5 % share.\n"""\n\n# %%\n# Here 5 %.\nx = 1  # 5 %\n'
    assert [f.line for f in prose.findings("t.py", prose.pieces_of_tutorial(tutorial))] == [5, 9]
    source = '"""Return 5 %."""\n\n\ndef f():\n    raise ValueError("it was 5 % of all")\n'
    assert [f.line for f in prose.findings("s.py", prose.pieces_of_source(source))] == [1, 5]


def test_sql_and_a_security_policy_are_not_prose(prose):
    texts = ["CREATE TABLE a (b TEXT); SELECT c; PRAGMA d;", "default-src 'none'; img-src 'self'; d e"]
    assert list(prose.pieces_of_source(f"x = {texts!r}")) == []
    other = [f"Run {text}" for text in texts]
    assert len(list(prose.findings("s.py", prose.pieces_of_source(f"x = {other!r}")))) == 2


def test_parameters_and_comments_are_read_but_not_indented_formulas_and_examples(prose):
    source = '''"""Title.

        p = 5 % 3

    Parameters
    ----------
    share : float
        At most 5 % of all.

    Examples
    --------
    >>> 5 % 3
    2
    """
    # Here 5 % in one comment,
    # and 6 % in its next line.
    x = "5 %"  # 7 % beside code; not joined
    # to this comment; so no finding
    '''
    source = source.replace("\n    ", "\n")
    findings = list(prose.findings("s.py", prose.pieces_of_source(source)))
    assert [(f.line, f.found) for f in findings] == [(8, "5 %"), (15, "5 %"), (16, "6 %"), (17, "7 %")]


def test_names_of_attributes_and_commands_are_not_prose_but_their_meaning_is(prose):
    source = '''"""Title.

Attributes
----------
judged, may : rows
    The rows that are judged.
"""
HELP = """Examples:
  temperance study table DIR --n 1000 --over datasets
  temperance demo --n 1000       on 1000 rows
"""
'''
    findings = list(prose.findings("s.py", prose.pieces_of_source(source)))
    assert [(f.line, f.found) for f in findings] == [(6, "judged"), (10, "1000")]


def test_the_pages_have_no_finding_and_are_not_too_many(prose):
    read = {path: list(reader(path.read_text(encoding="utf-8"))) for path, reader in prose.pages().items()}
    assert len(read) > 30
    names = {path: str(path.relative_to(ROOT)) for path in read}
    assert [str(f) for path, pieces in read.items() for f in prose.findings(names[path], pieces)] == []
    own = [pieces for path, pieces in read.items() if names[path] not in prose.REFERENCE]
    assert len(own) <= 30
    assert sum(map(prose.words, own)) <= 15_000
