"""Formulas in jobs ("1/L", "1e-4 L"), sizes ("576 B") and times ("5 min"). They are parsed, never `eval`ed."""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any

from mpi_compress.core.errors import checked_at, nearest
from mpi_compress.core.fields import Checked

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt, "log": math.log, "log2": math.log2, "exp": math.exp, "min": min, "max": max, "abs": abs,
}  # fmt: skip
_LONGEST, _DEEPEST = 1000, 50  # characters and levels of a formula
_KEPT = 1000  # formulas that are read once: jobs of many runs and trials repeat theirs


class DomainError(ValueError):
    """A formula has no real value, such as log(0)."""


def evaluate(text: str | float, names: Mapping[str, float]) -> float:
    """The value of a formula in + - * / ** ( ), numbers, `names`, and sqrt log log2 exp min max abs. A number before a name
    multiplies it: "1e-4 L" is 1e-4 · L. ValueError if it cannot be read, or names something unknown, or its value is not a finite
    number."""
    if not isinstance(text, str):
        return float(text)
    try:
        if math.isfinite(value := float(calculate(_parse(text), names))):
            return value
        what = f"is {value}, not a finite number"
    except ZeroDivisionError:
        what = "divides by zero"
    except OverflowError:
        what = "is too large a number"
    given = ", ".join(f"{name} = {names[name]:g}" for name in sorted(names_in(text)) if name in names)
    raise ValueError(f"'{text}' {what} (with {given or 'numbers alone'})")


def names_in(text: str | float) -> frozenset[str]:
    """The names that a formula needs."""
    nodes = ast.walk(_parse(text)) if isinstance(text, str) else ()
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)) - set(_FUNCTIONS)


@lru_cache(_KEPT)
def _parse(text: str) -> ast.expr:
    if len(text) <= _LONGEST:  # else `parsed` refuses it
        text = re.sub(r"(?<![A-Za-z_0-9])((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s+(?=[A-Za-z_(])", r"\1*", text.strip())
    try:
        return parsed(text)
    except SyntaxError:
        raise ValueError(f'\'{text}\' cannot be read as a formula, such as "1/L" or "1e-4 L"') from None


def parsed(text: str) -> ast.expr:
    """The formula in a text, by Python's parser; ValueError if it is too long or too deep, SyntaxError if it is none."""
    if len(text) > _LONGEST:
        raise ValueError(f"a formula of {len(text)} characters is too long; up to {_LONGEST} can be read")
    try:
        formula = ast.parse(text, mode="eval").body
    except (RecursionError, MemoryError):  # Python's parser raises these
        raise ValueError(_too_deep(text)) from None
    except ValueError as error:  # a zero byte, or a number of thousands of digits
        raise SyntaxError(str(error)) from None
    level: list[ast.AST] = [formula]
    for _ in range(_DEEPEST):
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]
    if level:
        raise ValueError(_too_deep(text))
    return formula


def _too_deep(text: str) -> str:
    return f"'{text:.40}…' has more than {_DEEPEST} levels, one inside the other"


def calculate(node: ast.expr, names: Mapping[str, float], call: Callable[[ast.Call], float] | None = None) -> Any:
    """The value of a parsed formula; `call` gives the values of functions other than sqrt, log, …. ValueError if something in it is
    not allowed in a formula, or is an unknown name."""
    value = partial(calculate, names=names, call=call)
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if name in names:
                return names[name]
            raise ValueError(nearest(name, names, "quantity"))
        case ast.UnaryOp() if type(node.op) in _UNARY:
            return _UNARY[type(node.op)](value(node.operand))
        case ast.BinOp() if type(node.op) in _BINARY:
            found = _BINARY[type(node.op)](float(value(node.left)), float(value(node.right)))
            if isinstance(found, complex):
                raise DomainError(f"'{ast.unparse(node)}' is not a real number")
            return found
        case ast.Call(func=ast.Name(id=function), keywords=[]) if function in _FUNCTIONS:
            arguments = [value(a) for a in node.args]
            try:
                return _FUNCTIONS[function](*arguments)
            except (ValueError, TypeError) as error:
                kind = DomainError if isinstance(error, ValueError) else ValueError
                raise kind(f"'{ast.unparse(node)}': {error}") from None
        case ast.Call() if call is not None:
            return call(node)
    raise ValueError(
        f"'{ast.unparse(node)}' is not allowed in a formula: only + - * / **, numbers, names and {', '.join(_FUNCTIONS)}"
    )


_NUMBER, _PLAIN = r"[0-9.eE+-]+?", r"\d+\.?\d*|\.\d+"  # with and without sign and exponent
_UNITS = {"bit": 1, "bits": 1, "B": 8, "kB": 8e3, "KB": 8e3, "MB": 8e6, "GB": 8e9, "KiB": 8 * 2**10, "MiB": 8 * 2**20}
_TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_RATES = {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "B": 8.0, "kB": 8e3, "MB": 8e6, "GB": 8e9}


def _measured(
    text: float | str, number: str, units: Mapping[str, float], usual: str, no: str, per: str = "", more: str = ""
) -> float:
    """The value of a number and a unit; without a unit it is in the `usual` one, "" if a unit is needed.

    Args:
        number: the regular expression of a number.
        no: what the text should be.
        per: what follows the unit.
    """
    if not isinstance(text, str):
        return float(text)
    match = re.fullmatch(rf"\s*({number})\s*(?:([A-Za-zµ]+){per})?\s*", text)
    try:
        return float(match[1]) * units[match[2] or usual] if match else units[""]
    except (ValueError, KeyError):
        names = f"{per}, ".join(units) + per
        raise ValueError(f"'{text}' is no {no}; write a number and a unit, one of: {names}{more}") from None


@lru_cache(_KEPT)
def bits(size: float | str) -> float:
    """A size in bits: "576 B", "54 bits", or a number in any other unit, returned as it is; ValueError if it is none, or
    negative."""
    value = _measured(size, _NUMBER, _UNITS, "", "size")
    if not (0 <= value < math.inf):
        raise ValueError(f"a size of {size} is not possible; it must be 0 or more")
    return value


def seconds(time: float | str) -> float:
    """A time in seconds: "5 min", "01:30:00", or a number of seconds; ValueError if it is none."""
    if clock := re.fullmatch(r"\s*(?:(\d+)-)?(\d+):(\d\d+):(\d\d)\s*", str(time)):
        days, hours, minutes, rest = (int(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60.0 + rest
    return _measured(time, _PLAIN, _TIMES, "s", "time", more="; or hours:minutes:seconds")


def time_of(text: str, option: str, unit: float = 1.0) -> float:
    """The seconds that an option gives, a number alone in units of so many seconds; UserError if it is no time."""
    return checked_at(option, lambda: seconds(text) * (unit if text.strip().isdigit() else 1.0))


def bits_per_second(rate: float | str) -> float:
    """A bandwidth in bits a second: "40 Mbit/s", or a number of bits a second; ValueError if it is none, or not more than 0."""
    value = _measured(rate, _NUMBER, _RATES, "bit", "bandwidth", per="/s")
    if not 0 < value < math.inf:
        raise ValueError(f"a bandwidth of {rate} is not possible; it must be more than 0")
    return value


def rate_text(rate: float) -> str:
    """A bandwidth in bits a second as text: "40 Mbit/s"."""
    unit = next((unit for unit in ("Gbit", "Mbit", "kbit") if rate >= _RATES[unit]), "bit")
    return f"{rate / _RATES[unit]:.4g} {unit}/s"


def _readable(read: Callable[[Any], Any], wanted: str, converts: bool = False) -> Checked:
    """A field's check: `read` takes the value, which is `wanted`; the field holds it as given, or as it `converts`."""

    def check(value: float | str) -> Any:
        try:
            found = read(value)
        except ValueError:
            raise ValueError(wanted) from None
        return found if converts else value

    return Checked(check)


if TYPE_CHECKING:
    Expression = Any  # in a run it is a number, whatever was written
else:
    Expression = Annotated[float | str, _readable(names_in, 'a number or a formula, such as "1/L" or "1e-4 L"')]
    """A part's field: a number, or a formula in the problem's L, L_max, L_mean, L_rms, L_pm, L_row, g0, mu, n, d, N, kappa."""

Size = Annotated[float | str, _readable(bits, f"a size of 0 or more, a number and one of: {', '.join(_UNITS)}")]
"""A field of a part: a size such as "576 B", or a plain number."""

_A_TIME = f"a time of 0 or more: a number and one of: {', '.join(_TIMES)}; or hours:minutes:seconds"
Time = Annotated[float | str, _readable(seconds, _A_TIME, converts=True)]
"""A field of a table: seconds, or a time such as "10 min" or "5 ms"."""
