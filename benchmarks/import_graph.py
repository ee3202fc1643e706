"""The package graph, drawn from the imports: what each part of the package imports, in layers.

    python benchmarks/import_graph.py             prints the graph as Mermaid
    python benchmarks/import_graph.py --write     puts it into ARCHITECTURE.md

A part is a module or a folder of the package. An arrow is an import, anywhere in a file; a dotted arrow is an
entry of `temperance/loaders.py`, which a lower part loads on use. An import by name anywhere else is an
error, and so is an import that does not point to a lower layer.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "temperance"
PAGE = ROOT / "ARCHITECTURE.md"

# From the bottom up. Parts of one layer do not import each other.
LAYERS = (
    ("errors", "progress"),
    ("core", "files", "json_fields", "loaders"),
    ("inputs",),
    ("formulas", "population"),
    ("calibrators", "data", "metrics"),
    ("calibrator_file", "decisions"),
    ("serving",),
    ("adapters", "comparison", "dask", "monitoring", "onnx", "sklearn", "streaming", "torch"),
    ("display",),
    ("report", "study"),
    ("cli",),
)
BY_NAME = {"import_module", "__import__"}  # calls that only these files may make:
MAY_IMPORT_BY_NAME = {"loaders.py", "__init__.py", "data/__init__.py"}


def part_of(path: Path) -> str:
    """Return the first name under the package: a module or a folder of modules."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def layer_of(part: str) -> int:
    """Return the number of a part's layer; the package's own `__init__` and `__main__` are above all."""
    return next((i for i, parts in enumerate(LAYERS) if part in parts), len(LAYERS))


def imported_names(tree: ast.AST) -> list[str]:
    """Return the dotted names that a file imports by statements, in functions and for types too."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            bare = node.module == "temperance"
            names += [f"temperance.{alias.name}" for alias in node.names] if bare else [str(node.module)]
    return names


def calls_by_name(tree: ast.AST) -> list[int]:
    """Return the lines that import by name."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "id", "") in BY_NAME or getattr(node.func, "attr", "") in BY_NAME)
    ]


def static_imports() -> dict[tuple[str, str], set[str]]:
    """Return the files behind each import of one part by another."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        part = part_of(path)
        for name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
            if name.startswith("temperance.") and name.split(".")[1] not in (part, "__version__"):
                found.setdefault((part, name.split(".")[1]), set()).add(str(path.relative_to(PACKAGE)))
    return found


def loaded_on_use() -> set[tuple[str, str]]:
    """Return which part reaches which through `loaders.load(...)`."""
    from temperance.loaders import LOADERS

    found = set()
    for path in PACKAGE.rglob("*.py"):
        for asked in re.findall(r'loaders\.load\(f?"([^"]+)"\)', path.read_text(encoding="utf-8")):
            pattern = re.sub(r"\{\w+\}", ".*", asked)  # of an f-string
            matching = [module for name, (module, _) in LOADERS.items() if re.fullmatch(pattern, name)]
            assert matching, f"{path}: no loader is called {asked}"
            found |= {(part_of(path), module.split(".")[1]) for module in matching}
    return found


def violations() -> list[str]:
    """Return the imports that point up or sideways, and those by name outside the loaders."""
    wrong = [
        f"{part} imports {other} in {', '.join(sorted(files))}"
        for (part, other), files in static_imports().items()
        if layer_of(other) >= layer_of(part)
    ]
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in MAY_IMPORT_BY_NAME:
            lines = calls_by_name(ast.parse(path.read_text(encoding="utf-8")))
            wrong += [f"{name}:{line} imports by name; use temperance.loaders" for line in lines]
    return wrong


def draw() -> str:
    """Return the graph as Mermaid, with the arrows that no longer way implies."""
    edges = {edge for edge in static_imports() if layer_of(edge[0]) < len(LAYERS)}
    lines = ["```mermaid", "graph TD"]
    for number, parts in enumerate(reversed(LAYERS)):
        lines.append(f"  subgraph layer{len(LAYERS) - number}[ ]")
        lines += [f"    {part}" for part in parts]
        lines.append("  end")
    lines += [f"  {part} --> {other}" for part, other in sorted(edges) if not _is_implied(part, other, edges)]
    lines += [f"  {low} -. on use .-> {high}" for low, high in sorted(loaded_on_use())]
    return "\n".join([*lines, "```"])


def _is_implied(part: str, other: str, edges: set[tuple[str, str]]) -> bool:
    """Say whether there is a longer way from a part to another, which makes the direct arrow redundant."""
    middle = {b for a, b in edges if a == part and b != other}
    return any(b == other or _reaches(b, other, edges) for b in middle)


def _reaches(part: str, other: str, edges: set[tuple[str, str]]) -> bool:
    return any(a == part and (b == other or _reaches(b, other, edges)) for a, b in edges)


def main() -> None:
    """Print the graph, or write it to the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the graph into ARCHITECTURE.md")
    graph = draw()
    if wrong := violations():
        sys.exit("\n".join(wrong))
    if not parser.parse_args().write:
        print(graph)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.index("```mermaid"), page.index("```", page.index("```mermaid") + 3) + 3
    PAGE.write_text(page[:before] + graph + page[after:], encoding="utf-8")


if __name__ == "__main__":
    main()
