"""Mutations of a module: small changes of its syntax tree, each of which some test should notice.

A mutant is known by its module, its function, the kind of change and the text before and after, not by its
line: code that moves within a function keeps the names of its mutants.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
OPPOSITES = ("min max", "minimum maximum", "argmin argmax", "any all", "floor ceil", "left right")
OPPOSITE = {a: b for pair in OPPOSITES for a, b in (pair.split(), pair.split()[::-1])}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One change of one module, at import or in a function. A test that runs one of its lines may notice."""

    id: str
    path: Path
    at_import: bool
    lines: tuple[int, ...]
    node: int
    variant: int

    def source(self) -> str:
        """Return the code of the changed module."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        target = list(ast.walk(tree))[self.node]
        new = ast.copy_location(_variants(target)[self.variant][1], target)
        for parent in ast.walk(tree):
            for field, value in ast.iter_fields(parent):
                if value is target:
                    setattr(parent, field, new)
                elif isinstance(value, list):
                    setattr(parent, field, [new if one is target else one for one in value])
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Return all mutants of a file below `root`, the folder that its package is in."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    unseen = {i for i, line in enumerate(text.splitlines(), 1) if "pragma: no cover" in line}
    module = ".".join(path.relative_to(root).with_suffix("").parts)
    index = {id(node): i for i, node in enumerate(ast.walk(tree))}
    found, seen = [], Counter()
    for node, around in _behaviour(tree, (), unseen):
        place = ".".join(one.name for one in around) or "<module>"
        at_import = not any(isinstance(one, FUNCTION) for one in around)
        for variant, (kind, new) in enumerate(_variants(node)):
            change = f"{_short(node)} -> {_short(ast.fix_missing_locations(new))}"
            name = f"{module}:{place}:{kind}: {change}"
            seen[name] += 1
            name += f" #{seen[name]}" if seen[name] > 1 else ""
            found.append(Mutant(name, path, at_import, tuple(_lines(node)), index[id(node)], variant))
    return found


def _behaviour(
    node: ast.AST, around: tuple[ast.AST, ...], unseen: set[int]
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Yield the nodes that decide what the code does, each with the classes and functions around it.

    Annotations, docstrings, decorators and imports are not among them.
    """
    yield node, around
    inside = (*around, node) if isinstance(node, FUNCTION | ast.ClassDef) else around
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list") or (
            isinstance(node, ast.ClassDef) and field != "body"
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _decides_nothing(child, unseen):
                # The defaults of a function are computed where it is defined.
                yield from _behaviour(child, around if isinstance(child, ast.arguments) else inside, unseen)


def _decides_nothing(node: ast.AST, unseen: set[int]) -> bool:
    """Whether a node is text, an import, for type checkers alone, never run, or an assertion.

    `stacklevel` says where a warning points to; `strict` asserts that two lists are of one length.
    """
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.keyword) and node.arg in ("stacklevel", "strict"):
        return True
    return isinstance(node, ast.Import | ast.ImportFrom) or not unseen.isdisjoint(_lines(node))


def _lines(node: ast.AST) -> range:
    """Return the lines of a node, of a compound statement those before its body."""
    if not hasattr(node, "lineno"):
        return range(0)
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno
    return range(node.lineno, max(last, node.lineno) + 1)


def _short(node: ast.AST) -> str:
    """Return the text of a node, of a condition without what depends on it."""
    text = " ".join(ast.unparse(node.test if isinstance(node, ast.If | ast.While) else node).split())
    return text if len(text) <= 80 else f"{text[:60]} ... {text[-15:]}"


def _variants(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """Return the changes of a node, each with its kind."""
    node = copy.deepcopy(node)
    match node:
        case ast.Compare(left, ops, right):
            changes = [[*ops[:i], COMPARISONS[type(one)](), *ops[i + 1 :]] for i, one in enumerate(ops)]
            return [("comparison", ast.Compare(left, changed, right)) for changed in changes]
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
            return [("arithmetic", ast.BinOp(left, ARITHMETIC[type(op)](), right))]
        case ast.AugAssign(target, op, value) if type(op) in ARITHMETIC:
            changed = ast.AugAssign(target, ARITHMETIC[type(op)](), value)
            return [("deleted", ast.Pass()), ("arithmetic", changed)]
        case ast.UnaryOp(operand=operand):
            return [("sign or not", operand)]
        case ast.BoolOp(op, values):
            return [("and or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))]
        # A comparison has a change of its own.
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare):
            node.test = ast.UnaryOp(ast.Not(), node.test)
            return [("condition", node)]
        case ast.Constant(value=bool(value)):
            return [("constant", ast.Constant(not value))]
        case ast.Constant(value=int(value)):
            return [("constant", ast.Constant(value + 1))]
        case ast.Constant(value=float(value)):
            return [("constant", ast.Constant(float(f"{value * 1.1:.15g}") if value else 1.0))]
        case ast.Return(ast.Tuple([first, second, *rest])):
            return [("return", ast.Return(ast.Tuple([second, first, *rest], ast.Load())))]
        case ast.Name(name, ast.Load()) if name in OPPOSITE:
            return [("opposite", ast.Name(OPPOSITE[name], ast.Load()))]
        case ast.Attribute(value, name, ast.Load()) if name in OPPOSITE:
            return [("opposite", ast.Attribute(value, OPPOSITE[name], ast.Load()))]
        case ast.Expr() | ast.Raise() | ast.AugAssign():
            return [("deleted", ast.Pass())]
        case ast.Assign(targets) if all(isinstance(one, ast.Subscript | ast.Attribute) for one in targets):
            return [("deleted", ast.Pass())]
    return []
