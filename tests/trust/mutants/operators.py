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
    for types, change in _CHANGES:
        if isinstance(node, types):
            return list(change(copy.deepcopy(node)))
    return []


def _of_comparison(node: ast.Compare) -> Iterator[tuple[str, ast.AST]]:
    for i, operator in enumerate(node.ops):
        new = copy.deepcopy(node)
        new.ops[i] = COMPARISONS[type(operator)]()
        yield "comparison", new


def _of_arithmetic(node: ast.BinOp | ast.AugAssign) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.AugAssign):
        yield "deleted", ast.Pass()
    if type(node.op) in ARITHMETIC:
        new = copy.deepcopy(node)
        new.op = ARITHMETIC[type(node.op)]()
        yield "arithmetic", new


def _of_unary(node: ast.UnaryOp) -> Iterator[tuple[str, ast.AST]]:
    yield "sign or not", node.operand


def _of_boolean(node: ast.BoolOp) -> Iterator[tuple[str, ast.AST]]:
    yield "and or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _of_condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[tuple[str, ast.AST]]:
    if not isinstance(node.test, ast.Compare):  # which has a change of its own
        node.test = ast.UnaryOp(ast.Not(), node.test)
        yield "condition", node


def _of_constant(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", ast.Constant(float(f"{node.value * 1.1:.15g}") if node.value else 1.0)


def _of_return(node: ast.Return) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        first, second, *rest = node.value.elts
        yield "return", ast.Return(ast.Tuple([second, first, *rest], ast.Load()))


def _of_name(node: ast.Name | ast.Attribute) -> Iterator[tuple[str, ast.AST]]:
    field = "id" if isinstance(node, ast.Name) else "attr"
    if isinstance(node.ctx, ast.Load) and getattr(node, field) in OPPOSITE:
        setattr(node, field, OPPOSITE[getattr(node, field)])
        yield "opposite", node


def _of_statement(node: ast.Expr | ast.Raise) -> Iterator[tuple[str, ast.AST]]:
    yield "deleted", ast.Pass()


def _of_assignment(node: ast.Assign) -> Iterator[tuple[str, ast.AST]]:
    if all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
        yield "deleted", ast.Pass()


_CHANGES = (
    (ast.Compare, _of_comparison),
    (ast.BinOp | ast.AugAssign, _of_arithmetic),
    (ast.UnaryOp, _of_unary),
    (ast.BoolOp, _of_boolean),
    (ast.If | ast.While | ast.IfExp, _of_condition),
    (ast.Constant, _of_constant),
    (ast.Return, _of_return),
    (ast.Name | ast.Attribute, _of_name),
    (ast.Expr | ast.Raise, _of_statement),
    (ast.Assign, _of_assignment),
)
