"""Claims: the statements of a paper, as data; and the records that a job claims. `evidence` judges them.

Formulas are parsed, never `eval`ed. In a claim's `value`, a call asks something of the runs that a label or a pattern names:
`claim_functions` has what may be asked.
"""

import ast
import fnmatch
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from mpi_compress.core.errors import UserError, checked_at, nearest
from mpi_compress.core.expressions import DomainError, calculate, names_in, parsed
from mpi_compress.core.registry import checked
from mpi_compress.job.claim_functions import FUNCTIONS, Question, Window
from mpi_compress.job.dotted import combined, refuse_unknown
from mpi_compress.job.tables import Claim, Tables
from mpi_compress.results.columns import COLUMNS
from mpi_compress.results.targets import goal


def claims_of(
    tables: Sequence[Tables], labels: Sequence[str], answer: Callable[[Question], float] = lambda question: math.nan
) -> list[Claim]:
    """The claims of a job's [[claim]] tables on the runs of these labels; UserError if no result could give one a value, or if
    `answer` refuses its questions."""
    places = [(table, f"claim {i}") for i, table in enumerate(tables, 1)]
    claims = [checked(Claim, point, place) for table, place in places for point in _points(table, place)]
    for claim in claims:
        checked_at(f"claim {claim.id}", meets, claim.holds, 0.0)
        for formula in filter(None, (claim.value, claim.reference)):
            checked_at(f"claim {claim.id}", value_of, replace(claim, value=formula), labels, answer)
    return claims


def _points(claim: Tables, where: str) -> Iterator[Tables]:
    """A claim for each point of its `grid`, whose values stand where its texts have their names in braces."""
    texts = {key: value for key, value in claim.items() if key != "grid"}
    grid = claim.get("grid", {})
    if not isinstance(grid, Mapping) or not all(isinstance(values, list) and values for values in grid.values()):
        raise UserError(f"{where}: grid = {grid!r} should name lists of values, such as {{ k = [1, 10] }}")
    said = {}
    if grid and not (texts.get("words") or texts.get("sentence")):
        few = {k: " or ".join(map(str, v)) if len(v) < 5 else f"{v[0]} … {v[-1]}" for k, v in grid.items()}
        said["sentence"] = f"{texts.get('id')}: " + str(_filled(texts.get("says"), few, f"{where}.says"))
    for point in combined(grid):
        yield {key: _filled(text, point, f"{where}.{key}") for key, text in texts.items()} | said


def _filled(text: Any, values: Tables, where: str) -> Any:
    """A text with values in place of their names in braces, where there are any; UserError for a name of none."""

    def value(name: re.Match[str]) -> str:
        if name[1] not in values:
            raise UserError(f"{where}: '{name[0]}': {nearest(name[1], values, 'list in grid')}")
        return str(values[name[1]])

    return re.sub(r"\{([A-Za-z_]\w*)\}", value, text) if values and isinstance(text, str) else text


def meets(condition: str, value: float) -> bool:
    """True if a value meets ">= 3", "< 1.1", "in [0.5, 2]", or a paper's "6 times", "about 2" or "3 orders"; NaN meets none.
    ValueError if the condition has another form."""
    low, high = _ends(condition)
    return low <= value <= high


def divides(condition: str, low: float, high: float) -> bool:
    """True if a condition is met by some of the values from `low` to `high` and not by others."""
    ends = {meets(condition, low), meets(condition, high)}
    return len(ends) > 1 or (ends == {False} and any(low < end < high for end in _ends(condition)))


def required(text: str) -> str:
    """The bar of what a paper says, as a reader has it: where it follows from a number "at least half of the paper's 6 (>= 3)"."""
    condition, words = bar(text)
    return f"{words} ({condition})" if words else condition


def bar(text: str) -> tuple[str, str]:
    """A condition, and in words how it follows from what a paper says, by the rule of docs/figures.md: "6 times" is ">= 3", and
    always more than 1; "about 2" is "in [1, 4]"; "3 orders" of magnitude are ">= 316.2". Others are conditions as they are, ""."""
    says = re.fullmatch(r"\s*(?:(?P<about>about\s+(\S+))|(\S+)\s+(times|orders?))\s*", text)
    if not says:
        return text, ""
    n = float(says[2] or says[3])
    if says["about"]:
        return f"in [{n / 2:.4g}, {2 * n:.4g}]", f"from half of the paper's {says[2]} to twice that"
    if says[4] == "times":
        more = f"more than half of the paper's {says[3]}" if n == 2 else f"more than 1, where the paper has {says[3]}"
        return (f">= {n / 2:.4g}", f"at least half of the paper's {says[3]}") if n > 2 else ("> 1", more)
    return f">= {10 ** (n - 0.5):.4g}", f"at least the paper's {says[3]} {says[4]} of magnitude less a half"


def _ends(text: str) -> tuple[float, float]:
    """The least and the largest number that meet a condition."""
    low, high = -math.inf, math.inf
    with suppress(ValueError):
        condition = bar(text)[0]
        if within := re.fullmatch(r"\s*in\s*\[\s*(\S+)\s*,\s*(\S+)\s*\]\s*", condition):
            low, high = float(within[1]), float(within[2])
        elif compared := re.fullmatch(r"\s*([<>])(=?)\s*(\S+)\s*", condition):
            level, far = float(compared[3]), math.inf if compared[1] == ">" else -math.inf
            low, high = sorted((level if compared[2] else math.nextafter(level, far), far))
        if (within or compared) and low <= high:
            return low, high
    raise ValueError(f"holds = '{text}' is no condition; write '>= 3', '< 1.1', 'in [0.5, 2]', '6 times', 'about 2' or '3 orders'")


def value_of(claim: Claim, labels: Sequence[str], answer: Callable[[Question], float]) -> float:
    """A claim's value, from the answers to what it asks of the runs of a job's `labels`; NaN where it divides by 0.

    Raises:
        UserError: the formula cannot be read, or names a run that there is not.
        DomainError: an answer is no argument of a function in the formula, such as a logarithm of 0.
    """

    def call(node: ast.Call) -> float:
        return answer(_question(node, labels, lambda level: float(calculate(level, {}, call))))

    try:
        return float(calculate(parsed(f"({claim.value})"), {}, call))
    except (ZeroDivisionError, OverflowError):
        return math.nan
    except DomainError:
        raise
    except (ValueError, SyntaxError) as error:
        raise UserError(f'claim {claim.id}: value = "{" ".join(claim.value.split())}": {error}') from None


def _question(call: ast.Call, labels: Sequence[str], number: Callable[[ast.expr], float]) -> Question:
    """What a call in a formula asks; `number` gives a level's value. ValueError if no run could answer it."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    function = FUNCTIONS.get(name)
    match call.args, call.keywords:
        case [ast.Constant(value=str(formula)), of], ([] | [ast.keyword(arg=str(), value=ast.Tuple(elts=[_, _]))]) as among if (
            function and function.of_rows
        ):
            if not (columns := sorted(names_in(formula))):
                raise ValueError(f"'{formula}' names no column")
            return Question(_runs(of, labels), name, formula, columns, window=_window(among[0], number) if among else None)
        case [of], [] if name and not (function and function.of_rows):
            return Question(_runs(of, labels), name, columns=() if function else [name])
        case [of], [ast.keyword(arg=str(until), value=low)] if name and not function:
            return Question(_runs(of, labels), name, columns=[name], until=until, level=number(low), runs=ast.unparse(of))
        case [_], [_, _, *_]:
            raise ValueError(f"{', '.join(map(ast.unparse, call.keywords))} are several targets, and one is required")
    raise ValueError(f"'{ast.unparse(call)}' should be column('label') or column('label', loss=0.4)")


def _window(keyword: Any, number: Callable[[ast.expr], float]) -> Window:
    """The rows that `epoch=(9, 10)` names."""
    window = Window(keyword.arg, *map(number, keyword.value.elts))
    if not (window.low < window.high or math.isnan(window.low + window.high)):
        raise ValueError(f"no record has {window}")
    return window


def _runs(node: ast.expr, labels: Sequence[str]) -> list[str]:
    """The labels that a text names, itself or as a pattern."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise ValueError(f"'{ast.unparse(node)}' should be a run's label in quotes")
    wanted = [node.value] if node.value in labels else fnmatch.filter(labels, node.value)
    if not wanted:
        raise ValueError(nearest(node.value, labels, "run"))
    return wanted


@dataclass(frozen=True)
class Record:
    """What a run is said to need up to a level, over all workers."""

    run: str  # its label
    to: dict[str, float]  # { suboptimality = 1e-9 }
    claimed: Tables  # by column: wire_bits = 3e6, up and down, or another budget

    def __post_init__(self) -> None:
        goal(self.to)
        if not self.claimed:
            raise ValueError("wire_bits or another budget is required, the number that is claimed")
        if wrong := [column for column, number in self.claimed.items() if not isinstance(number, int | float)]:
            raise ValueError(f"{wrong[0]} = {self.claimed[wrong[0]]!r} should be the number that is claimed")


def records_of(tables: Sequence[Tables], labels: Sequence[str]) -> list[Record]:
    """The records of a job's [[record]] tables, each of which names a run by its label; UserError where one is wrong."""
    records = []
    for i, table in enumerate(tables, 1):
        claimed = {key: value for key, value in table.items() if key not in ("run", "to")}
        refuse_unknown(claimed, ["run", "to", *(c.name for c in COLUMNS if c.grows)], f"record {i}")
        given = {key: value for key, value in table.items() if key not in claimed}
        records.append(record := checked(Record, {**given, "claimed": claimed}, f"record {i}"))
        if record.run not in labels:
            raise UserError(f"record {i}.run: {nearest(record.run, labels, 'run')}")
    return records
