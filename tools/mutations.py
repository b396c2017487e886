"""Single-operator mutants of Python source: where one can be made, and the changed tree.

No mutants are made of what decides nothing: annotations, docstrings, decorators, assertions (they
state an invariant for the type checker), the texts of errors, and the sizes of caches.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}
SKIPPED_KEYWORDS = {"maxsize", "strict", "frozen", "slots"}
PLAIN_TESTS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.NamedExpr)
Functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Site:
    """One mutant: its location, what it changes, and whether it is inside a function."""

    line: int
    column: int
    change: str
    in_function: bool


@dataclass(frozen=True)
class Edit:
    """A mutant that can be made in the tree that it was found in."""

    site: Site
    make: Callable[[], None]


def sites_of(source: str) -> list[Site]:
    """Every mutant of a module, in the order of its text."""
    return [edit.site for edit in edits_of(ast.parse(source))]


def mutate(source: str, number: int) -> ast.Module:
    """The tree of a module with the mutant of that number."""
    tree = ast.parse(source)
    edits_of(tree)[number].make()
    return ast.fix_missing_locations(tree)


def edits_of(tree: ast.Module) -> list[Edit]:
    """Every mutant of a tree."""
    return list(visit(tree, in_function=False))


def visit(node: ast.AST, *, in_function: bool) -> Iterator[Edit]:
    """The mutants of a node and of all nodes below it."""
    for name, held in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        inside = in_function or (isinstance(node, Functions) and name == "body")
        for index, child in enumerate(held if isinstance(held, list) else [held]):
            if not isinstance(child, ast.AST) or is_skipped(child):
                continue
            place = (held, index) if isinstance(held, list) else (node, name)
            for change, make in edits(node, child, place):
                at: Any = child.ifs[0] if isinstance(child, ast.comprehension) else child
                line, column = at.lineno, at.col_offset
                yield Edit(Site(line, column, change, inside), make)
            yield from visit(child, in_function=inside)


def is_skipped(node: ast.AST) -> bool:
    """Whether nothing below the node decides."""
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.keyword(arg=str() as name):
            return name in SKIPPED_KEYWORDS
        case _:
            return False


Made = Iterator[tuple[str, Callable[[], None]]]


def edits(parent: ast.AST, node: ast.AST, place: tuple[object, object]) -> Made:
    """The mutants of one node itself."""
    yield from edits_of_operators(node, place)
    yield from edits_of_conditions(node)
    yield from edits_of_statements(parent, node, place)


def edits_of_operators(node: ast.AST, place: tuple[object, object]) -> Made:
    """Operators, constants and calls."""
    match node:
        case ast.BoolOp(op=ast.And()):
            yield "and → or", lambda: setattr(node, "op", ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "or → and", lambda: setattr(node, "op", ast.And())
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                other = COMPARISONS[type(operator)]
                change = f"{type(operator).__name__} → {other.__name__}"
                yield change, setter(node.ops, index, other())
        case ast.UnaryOp(op=ast.Not()):
            yield "not x → x", setter(*place, node.operand)
        case ast.BinOp() if (other_type := ARITHMETIC.get(type(node.op))) is not None:
            change = f"{type(node.op).__name__} → {other_type.__name__}"
            yield change, setter(node, "op", other_type())
        case ast.AugAssign() if (other_type := ARITHMETIC.get(type(node.op))) is not None:
            change = f"{type(node.op).__name__}= → {other_type.__name__}="
            yield change, setter(node, "op", other_type())
        case ast.Constant(value=bool() as value):
            yield f"{value} → {not value}", setter(node, "value", not value)
        case ast.Constant(value=int() as value):
            yield f"{value} → {value + 1}", setter(node, "value", value + 1)
            yield f"{value} → {value - 1}", setter(node, "value", value - 1)
        case ast.Call(func=ast.Name(id=name), args=[_, *_]) if name in FUNCTIONS:
            yield f"{name} → {FUNCTIONS[name]}", setter(node.func, "id", FUNCTIONS[name])
    if isinstance(node, ast.Call):
        yield from swaps(node)


def swaps(node: ast.Call) -> Made:
    """Two positional arguments that change places."""
    match node.args:
        case [ast.Starred(), *_] | [_, ast.Starred(), *_]:
            return
        case [first, second, *_] if type(first) is type(second) and not same(first, second):
            yield "arguments swapped", setter(node, "args", [second, first, *node.args[2:]])


def same(first: ast.expr, second: ast.expr) -> bool:
    """Whether two expressions read the same."""
    return ast.dump(first) == ast.dump(second)


def edits_of_conditions(node: ast.AST) -> Made:
    """A condition without an operator of its own is negated."""
    if isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(node.test, PLAIN_TESTS):
        yield "if x → if not x", setter(node, "test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.comprehension):
        for index, test in enumerate(node.ifs):
            if isinstance(test, PLAIN_TESTS):
                yield "if x → if not x", setter(node.ifs, index, ast.UnaryOp(ast.Not(), test))


def edits_of_statements(parent: ast.AST, node: ast.AST, place: tuple[object, object]) -> Made:
    """Statements that are dropped, or end a loop in another way."""
    match node:
        case ast.Continue():
            yield "continue → break", setter(*place, ast.Break())
            yield "continue dropped", setter(*place, ast.Pass())
        case ast.Break():
            yield "break → continue", setter(*place, ast.Continue())
        case ast.Expr(value=ast.Call() | ast.Await() | ast.YieldFrom() | ast.Yield()):
            yield "statement dropped", setter(*place, ast.Pass())
        case ast.AugAssign() | ast.Delete() | ast.Raise():
            yield "statement dropped", setter(*place, ast.Pass())
        case ast.Return() if isinstance(parent, ast.If | ast.For | ast.While | ast.Try | ast.With):
            yield "return dropped", setter(*place, ast.Pass())


def setter(holder: object, key: object, value: object) -> Callable[[], None]:
    """What writes one value into a list or a node."""

    def write() -> None:
        if isinstance(holder, list):
            holder[key] = value  # type: ignore[call-overload]
        else:
            setattr(holder, str(key), value)

    return write
