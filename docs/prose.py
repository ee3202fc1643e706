"""Find patterns of prose that readers stumble over: `python docs/prose.py`, a part of `make lint`.

    python docs/prose.py            the pages, tutorials, README.md, CHANGELOG.md, CONTRIBUTING.md, and
                                    docstrings, comments and messages of src
    python docs/prose.py --count    words per page, without code

The patterns are data, docs/prose.toml. Code, links, comments of pages and generated tables are not checked.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(r"^\s*(>>>|\.\.\. |References\n).*?(\n\n|\Z)", re.DOTALL | re.MULTILINE)
# The meaning of a parameter is indented, as code is.
PARAMETERS = re.compile(
    r"^(?:Parameters|Attributes|Returns|Yields|Raises)\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
# Names, not words: parameters and attributes before their types, and commands that help texts show.
PARAMETER_NAMES = re.compile(r"^ *\*{0,2}\w+(?:, \*{0,2}\w+)* : ", re.MULTILINE)
COMMAND = re.compile(r"^ +temperance (?:\S| (?! ))+ *", re.MULTILINE)
# Strings in other languages: SQL and a page's security policy.
OTHER_CODE = re.compile(r"\s*(CREATE TABLE|SELECT|INSERT|DELETE FROM|PRAGMA|default-src) ")
# Looked up, not read: not counted as pages for users.
REFERENCE = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *(
        f"docs/{name}.md"
        for name in (
            *("benchmarks/calibration-tests", "benchmarks/tasks", "changelog", "command-line"),
            *("contributing", "data-files", "faq"),
            *("file-format", "how-to/index", "methods", "reference/glossary", "reference/index"),
            *("references", "reliability"),
        )
    ),
}


@dataclass(frozen=True)
class Piece:
    """Some text of a file: a paragraph, a table row or a heading, and the line where it begins."""

    line: int
    kind: str
    text: str


@dataclass(frozen=True)
class Finding:
    """A place where a pattern matches."""

    path: str
    line: int
    name: str
    found: str
    advice: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.name}: {self.found!r}; {self.advice}"


def patterns():
    """Return the patterns, with compiled expressions."""
    data = tomllib.loads((ROOT / "docs" / "prose.toml").read_text(encoding="utf-8"))["pattern"]
    return [entry | {"regex": re.compile(entry["regex"], re.IGNORECASE | re.MULTILINE)} for entry in data]


def blank(match):
    """Return as many line ends as the match has, so that line numbers stay."""
    return "\n" * match[0].count("\n")


def dedented(match):
    """Return the terms of a glossary, or parameters, and what they mean as paragraphs."""
    lines_before = match[0].count("\n") - match[1].count("\n")
    return "\n" * lines_before + re.sub(r"^ {4}", "", match[1], flags=re.MULTILINE)


def without_code(text):
    """Return Markdown or reStructuredText without code, comments, quotations and the targets of links."""
    text = re.sub(r"^```\{glossary\}$(.*?)^```", dedented, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- generated:.*?<!-- end -->", blank, text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    text = re.sub(r"^(?: {4,}|\t)(?![-*0-9|]).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\$\$.+?\$\$|\$[^$\n]+\$", "`x`", text)
    text = re.sub(r"(``.+?``|`[^`]*`)", lambda code: "`x`" + blank(code), text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\"[^\"\n]{0,80}\"|<[^>\n]+>", "`x`", text)


def pieces_of_markdown(text, offset=0):
    """Yield the headings, table rows and paragraphs of a page."""
    start, paragraph = None, []
    for number, line in enumerate([*without_code(text).splitlines(), ""], start=1 + offset):
        kind = "heading" if re.match(r"#+ ", line) else "table" if line.lstrip().startswith("|") else "prose"
        ends = kind != "prose" or not line.strip() or re.match(r"\s*([-*]|\d+\.) ", line)
        if ends and paragraph:
            yield Piece(start, "prose", "\n".join(paragraph))
            paragraph = []
        if kind != "prose":
            yield Piece(number, kind, line.strip(" #"))
        elif line.strip():
            start = number if not paragraph else start
            paragraph.append(line.strip())


def pieces_of_tutorial(text):
    """Yield the prose of a script of the gallery: its docstring, and the comments after `# %%`."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    yield from pieces_of_markdown(docstring, offset=1)
    for cell in re.finditer(r"^# %%\n((?:#.*\n)*)", text, re.MULTILINE):
        line = text[: cell.start()].count("\n") + 1
        yield from pieces_of_markdown(re.sub(r"^# ?", "", cell[1], flags=re.MULTILINE), offset=line)


def comments(text):
    """Yield the comments of a module; comments on consecutive lines of their own are one."""
    start, lines, joins = 0, [], False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        own_line = not token.line[: token.start[1]].strip()
        if lines and not (joins and own_line and token.start[0] == start + len(lines)):
            yield Piece(start, "prose", without_code("\n".join(lines)))
            lines = []
        start = start if lines else token.start[0]
        lines.append(token.string.lstrip("# "))
        joins = own_line
    if lines:
        yield Piece(start, "prose", without_code("\n".join(lines)))


def pieces_of_source(text):
    """Yield a module's docstrings without examples, its other strings of several words, and its comments."""
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
                words = PARAMETERS.sub(dedented, EXAMPLE.sub(blank, ast.get_docstring(node) or ""))
                words = PARAMETER_NAMES.sub("", words)
                yield from pieces_of_markdown(words, offset=first.lineno - 1)
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
        if is_text and len(node.value.split()) > 3 and not OTHER_CODE.match(node.value):
            yield Piece(node.lineno, "prose", without_code(COMMAND.sub("", node.value)))
    yield from comments(text)


def pages():
    """Return the pages, by the function that reads their prose."""
    named = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    found = dict.fromkeys([*named, *sorted((ROOT / "docs").rglob("*.md"))], pieces_of_markdown)
    return found | dict.fromkeys(sorted((ROOT / "docs" / "tutorials").glob("*.py")), pieces_of_tutorial)


def source():
    """Return the files of the package, by the function that reads their prose."""
    return dict.fromkeys(sorted((ROOT / "src").rglob("*.py")), pieces_of_source)


def findings(path, pieces):
    """Yield what the patterns find in the pieces of a file."""
    for piece in pieces:
        for pattern in patterns_now():
            if pattern.get("only", piece.kind) != piece.kind or path in pattern.get("except", ()):
                continue
            for match in pattern["regex"].finditer(piece.text):
                line = piece.line + piece.text[: match.start()].count("\n")
                found = " ".join(match[0].split())
                yield Finding(path, line, pattern["name"], found[:60], pattern["advice"])


_patterns: list[dict] = []


def patterns_now():
    """Return the patterns, read once."""
    if not _patterns:
        _patterns.extend(patterns())
    return _patterns


def words(pieces):
    """Return the number of words of prose, headings and tables."""
    return sum(len(re.findall(r"[A-Za-z][\w'-]*", piece.text)) for piece in pieces)


def main():
    """Print the findings, or the number of words; the exit code is 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", action="store_true", help="count the words of each page")
    options = parser.parse_args()
    files = pages() if options.count else pages() | source()
    read = {
        str(path.relative_to(ROOT)): list(reader(path.read_text(encoding="utf-8")))
        for path, reader in files.items()
    }
    if options.count:
        counts = {path: words(pieces) for path, pieces in read.items()}
        for path, count in sorted(counts.items(), key=lambda item: -item[1]):
            print(f"{count:6,} {path}{' (reference)' if path in REFERENCE else ''}")
        own = {path: count for path, count in counts.items() if path not in REFERENCE}
        print(f"{sum(own.values()):6,} words on {len(own)} pages for users")
        return
    found = [finding for path, pieces in read.items() for finding in findings(path, pieces)]
    for finding in found:
        print(finding)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
