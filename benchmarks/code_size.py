"""How large the package is, and how far a call travels in it: counts of the source, and walks as measured.

    python benchmarks/code_size.py                prints both tables
    python benchmarks/code_size.py --source DIR   counts the source in another folder
    python benchmarks/code_size.py --write        puts the walks into ARCHITECTURE.md

A code line is a line that is not blank, comment or docstring. A numeric constant is a name in capitals that a
module or a class sets to a number. A walk is one call on 600 x 5 logits in one thread, after one that has
imported everything: the files and the functions of the package that it passes through, by `sys.setprofile`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import sys
import tempfile
import tokenize
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

os.environ["TEMPERANCE_THREADS"] = "1"

import temperance
from temperance import compare, data, load, make_calibrator, monitoring

PACKAGE = Path(temperance.__file__).resolve().parent
PAGE = Path(__file__).resolve().parents[1] / "ARCHITECTURE.md"
BEGIN, END = "<!-- walks -->", "<!-- end of walks -->"
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Count the lines of a module that are not blank, comment or docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, docstring.end_lineno + 1))
    return len(lines)


def is_number(node: ast.AST | None) -> bool:
    """Say whether an expression is made of numbers alone."""
    parts = list(ast.walk(node)) if node else []
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    allowed = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    return (
        bool(constants)
        and all(isinstance(part, allowed) for part in parts)
        and (all(isinstance(value, int | float) and not isinstance(value, bool) for value in constants))
    )


def numeric_constants(tree: ast.Module) -> int:
    """Count the names in capitals that modules and classes set to numbers."""
    count = 0
    bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    for statement in (statement for body in bodies for statement in body):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and is_number(statement.value):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            count += sum(isinstance(target, ast.Name) and target.id.isupper() for target in targets)
    return count


def sizes(folder: Path) -> dict[str, int]:
    """Count what stands below a folder."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {
        "code lines": sum(map(code_lines, texts)),
        "files": len(texts),
        "classes": sum(isinstance(node, ast.ClassDef) for node in nodes),
        "functions": sum(isinstance(node, ast.FunctionDef) for node in nodes),
        "numeric constants": sum(map(numeric_constants, trees)),
    }


def walk(call: Callable[[], Any]) -> dict[str, set[str]]:
    """Return the files of the package that a call passes through, in their order, with their functions."""
    seen: dict[str, set[str]] = {}

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(PACKAGE)):
            file = Path(code.co_filename).relative_to(PACKAGE).as_posix()
            seen.setdefault(file, set()).add(f"{code.co_qualname}:{code.co_firstlineno}")

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        call()
        sys.setprofile(profile)
        try:
            call()
        finally:
            sys.setprofile(None)
    return seen


def command(*words: str) -> Callable[[], None]:
    """Return a call of the command line."""
    from temperance.cli import main

    def run() -> None:
        with contextlib.suppress(SystemExit):
            main(list(words))

    return run


def walks(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the calls to measure, by name."""
    task = data.simulate(1200, 5, random_state=0)
    logits, labels = task.logits[:600], task.labels[:600]
    saved, rows, out = folder / "cal.json", folder / "rows.npz", folder / "probs.npz"
    calibrator = make_calibrator("ts").fit(logits, labels)
    calibrator.save(saved)
    np.savez(rows, logits=task.logits[600:], labels=task.labels[600:])
    loaded, new = load(saved), task.logits[600:]
    return {
        "fit ts": lambda: make_calibrator("ts").fit(logits, labels),
        "fit bayes": lambda: make_calibrator("bayes").fit(logits, labels),
        "predict_proba": lambda: calibrator.predict_proba(logits),
        "compare, two methods": lambda: compare(logits, labels, methods=["ts", "hts"]),
        "temperance apply": command("apply", str(saved), str(rows), "-o", str(out), "--force"),
        "monitoring.check": lambda: monitoring.check(loaded, new, task.labels[600:], history=folder / "h"),
        "temperance compare --report": command(
            "compare", str(rows), "-m", "ts,hts", "--report", str(folder / "report.html"), "--force"
        ),
    }


def walks_page(found: dict[str, dict[str, set[str]]]) -> str:
    """Return the walks for the page: their length, and the files of the short ones."""
    lines = ["| call | files | functions |", "|---|---|---|"]
    for name, seen in found.items():
        lines.append(f"| {name} | {len(seen)} | {sum(map(len, seen.values()))} |")
    for name in ("fit ts", "predict_proba", "temperance apply"):
        files = ", ".join(f"`{file}` {len(functions)}" for file, functions in found[name].items())
        lines += ["", f"**{name}**, file by file, with the number of functions: {files}."]
    return "\n".join(lines)


def main() -> None:
    """Print the tables, or write the walks to the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, default=PACKAGE, help="folder to count")
    parser.add_argument("--tests", type=Path, default=PACKAGE.parents[1] / "tests", help="tests to count")
    parser.add_argument("--write", action="store_true", help="put the walks into ARCHITECTURE.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {name: walk(call) for name, call in walks(Path(folder)).items()}
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = (page.index(mark) for mark in (BEGIN, END))
        PAGE.write_text(f"{page[:before]}{BEGIN}\n{walks_page(found)}\n{page[after:]}", encoding="utf-8")
        return
    for name, count in sizes(options.source).items():
        print(f"{name:30}{count:8,}")
    print(f"{'code lines in tests':30}{sizes(options.tests)['code lines']:8,}")
    print(f"\n{'':30}{'files':>8}{'functions':>11}")
    for name, seen in found.items():
        print(f"{name:30}{len(seen):8}{sum(map(len, seen.values())):11}")


if __name__ == "__main__":
    main()
