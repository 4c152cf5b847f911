"""Small mistakes in Python source, drawn by operator from its syntax tree: for `random_mistakes.py`."""

import ast
import copy
import warnings
from collections.abc import Iterator
from typing import NamedTuple

NUMBERS = {"L", "L_max", "L_rms", "L_pm", "L_row", "g0", "mu", "n", "d", "N", "r", "omega", "delta", "batch", "step", "p", "zeta"}  # of formulas
TURNED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
PAIRS = ("min max", "minimum maximum", "argmin argmax", "nanmin nanmax", "all any", "floor ceil")
WITHOUT_EFFECT = {"strict", "exist_ok", "parents", "copy", "encoding"}  # keywords that change nothing where all is right
OTHER = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}


class Slip(NamedTuple):
    """A mistake in one place of a source."""

    line: int
    start: int  # of the text that is replaced, in bytes of UTF-8
    end: int
    operator: str
    right: str
    wrong: str

    def put_into(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.wrong.encode() + data[self.end :]).decode()


def slips_of(source: str) -> list[Slip]:
    """All mistakes that can be made in a source, in its order; docstrings, annotations, assertions and texts of errors are left out."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in _nodes(ast.parse(source)):
        for operator, wrong in _wrong(node):
            start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            text = wrong if isinstance(wrong, str) else f"({ast.unparse(wrong)})" if isinstance(node, ast.expr) else ast.unparse(wrong)
            found.append(Slip(node.lineno, start, end, operator, source.encode()[start:end].decode(), text))
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that mistakes are made in."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not _is_left_out(node) and not (isinstance(node, ast.keyword) and node.arg in WITHOUT_EFFECT):
                yield node
                yield from _nodes(node)


def _is_left_out(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Pass() | ast.pattern():
            return True
        case ast.Expr(value=ast.Constant()):  # a docstring, or one of a field
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Name(id="isinstance" | "print_line" | "cast" | "field" | "TypeVar")):
            return True
    return False


def _wrong(node: ast.AST) -> Iterator[tuple[str, ast.AST | str]]:
    """What may stand in place of a node by mistake, each with the name of the operator."""
    match node:
        case ast.BinOp(left=left, op=op):
            if _is_text(node):
                return
            if type(op) in TURNED:
                yield "sign" if isinstance(op, ast.Add | ast.Sub) else "operator", _with(node, op=TURNED[type(op)]())
            if isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div):
                yield "dropped term", left
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "sign", operand
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", operand
        case ast.Compare(ops=[op]):
            yield "bound" if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else "comparison", _with(node, ops=[TURNED[type(op)]()])
        case ast.BoolOp(op=op, values=[first, *others]):
            yield "and/or", _with(node, op=TURNED[type(op)]())
            yield "dropped term", first if len(others) == 1 else _with(node, values=[first, *others[:-1]])
        case ast.Constant(value=bool()):
            yield "turned", repr(not node.value)
        case ast.Constant(value=int()):
            yield "off by one", repr(node.value + 1)
        case ast.Constant(value=float()) if node.value not in (0.0, float("inf")):
            yield "half", repr(node.value / 2)
        case ast.Constant(value=str()):
            yield from ((operator, repr(wrong)) for operator, wrong in _formulas(node.value))
        case ast.Subscript(slice=ast.Slice() as cut):
            for end in ("lower", "upper"):
                if getattr(cut, end) is not None:
                    yield "index", _with(node, slice=_with(cut, **{end: None}))
        case ast.Subscript(slice=ast.Constant(value=int() as at)):
            yield "index", _with(node, slice=ast.Constant(at + 1))
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))):
            yield "index", _with(node, slice=ast.Constant(0))
        case ast.Call(func=ast.Name(id=name)) if name in OTHER:
            yield "min/max" if "m" in name else "all/any", _with(node, func=ast.Name(OTHER[name]))
        case ast.Call(func=ast.Attribute(attr=name)) if name in OTHER:
            yield "min/max" if "m" in name else "all/any", _with(node, func=_with(node.func, attr=OTHER[name]))
        case ast.AugAssign(op=op) if type(op) in TURNED:
            yield "sign" if isinstance(op, ast.Add | ast.Sub) else "operator", _with(node, op=TURNED[type(op)]())


def _is_text(node: ast.AST) -> bool:
    """True if an operator joins texts, lists, or the parts of a path."""
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr() | ast.List() | ast.Tuple() | ast.Dict():
            return True
        case ast.IfExp(body=body, orelse=other):
            return _is_text(body) or _is_text(other)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Div() | ast.Mod(), right=right):
            return _is_text(left) or _is_text(right)
    return False


def _formulas(text: str) -> Iterator[tuple[str, str]]:
    """The mistakes in a text that is a formula in quantities of a problem."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if names & NUMBERS and isinstance(tree, ast.BinOp | ast.Call):
        for slip in slips_of(f"({text})"):
            yield slip.operator, slip.put_into(f"({text})")


def _with(node: ast.AST, **changed: object) -> ast.AST:
    """A node with other fields."""
    other = copy.copy(node)
    for name, value in changed.items():
        setattr(other, name, value)
    return other
