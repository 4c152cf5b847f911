"""Claims: what a paper says, held against a job's results. Formulas are parsed, never `eval`ed; nothing is typed in by hand.

In a claim's `value`, a column's name is a function: `cost_up('GD')` is its last entry in the run labelled GD, and
`cost_up('GD', loss=0.4)` its entry in the first row whose loss has come down to 0.4. `largest('error_norm', 'GD')`, `smallest`
and `mean` are taken over the rows of the run, of a column or of a formula in columns such as 'distance / bound'. The smallest over
several runs is `cost_up('T = *', loss=0.4)`, where their labels match. Runs that differ in their seed alone are taken seed by seed;
a run of one seed stands beside each.
"""

import ast
import fnmatch
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.expressions import DomainError, calculate, evaluate, names_in
from mpi_compress.core.registry import checked
from mpi_compress.figures.lines import entry_at
from mpi_compress.job.tables import Claim
from mpi_compress.results.reader import Run

if TYPE_CHECKING:
    from mpi_compress.job.loading import Job

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}

_OVER_ROWS: dict[str, Callable[[np.ndarray], float]] = {"largest": np.nanmax, "smallest": np.nanmin, "mean": np.nanmean}


@dataclass(frozen=True)
class Verdict:
    """A claim, and what the results say of it."""

    claim: Claim
    values: list[float]  # one for each seed; empty where results are missing
    why: str = ""  # why there is no value
    unreached: Sequence[str] = ()  # levels that runs never came down to, which count as infinite

    @property
    def holds(self) -> bool | None:
        """Whether the median over seeds meets the claim; None: not run."""
        return meets(self.claim.holds, self.median) if self.values else None

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @property
    def ours(self) -> str:
        """The median, or a dash."""
        return f"{self.median:.4g}" if self.values else "–"

    @property
    def spread(self) -> str:
        """The range over seeds; "" where there is one."""
        several = len(self.values) > 1
        return f"{np.min(self.values):.4g} … {np.max(self.values):.4g} over {len(self.values)} seeds" if several else ""

    @property
    def outcome(self) -> str:
        return {True: "holds", False: "does not hold", None: "not run"}[self.holds]

    @property
    def reason(self) -> str:
        """Why it does not hold, as far as the job says, or why it has no value."""
        return {True: "", False: self.claim.why, None: self.why}[self.holds]

    @property
    def paper(self) -> str:
        """The paper's figure; "" where it has none."""
        figure = self.claim.paper
        return "" if figure is None else f"{figure:g}" if isinstance(figure, float) else figure

    def __str__(self) -> str:
        c = self.claim
        ours = f"{self.ours} ({self.spread})" if self.spread else self.ours
        paper = f"paper {self.paper}; " if self.paper else ""
        outcome = f"{self.outcome}: {self.reason}" if self.reason else self.outcome
        if self.unreached:
            outcome += f" ({'; '.join(self.unreached)})"
        note = f"\n    note: {c.note}" if c.note else ""
        return f"{c.id}: {c.says}\n    {paper}ours {ours}; wanted {c.holds}: {outcome}{note}"


def of_job(tables: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[Claim]:
    """The claims of a job's [[claim]] tables on the runs of these labels.

    Raises:
        UserError: what no result can give a value: a wrong condition, a formula that cannot be read, a run that there is not.
    """
    claims = [
        checked(Claim, point, f"claim {i + 1}") for i, table in enumerate(tables) for point in _points(table, f"claim {i + 1}")
    ]
    for claim in claims:
        try:
            meets(claim.holds, 0.0)
        except UserError as error:
            raise UserError(f"claim {claim.id}: {error}") from None
        try:
            _value(claim, labels, lambda of, take: math.nan)
        except DomainError as error:
            raise UserError(f"claim {claim.id}: {error}") from None
    return claims


def _points(claim: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """A claim for each point of its `grid`, whose values stand where its texts have their names in braces."""
    texts = {key: value for key, value in claim.items() if key != "grid"}
    grid = claim.get("grid", {})
    if not isinstance(grid, Mapping) or not all(isinstance(values, list) and values for values in grid.values()):
        raise UserError(f"{where}: grid = {grid!r} should name lists of values, such as {{ k = [1, 10] }}")
    for key, text in texts.items():
        for name in re.findall(r"\{([A-Za-z_]\w*)\}", text) if grid and isinstance(text, str) else ():
            if name not in grid:
                raise UserError(f"{where}.{key}: '{{{name}}}': {nearest(name, grid, 'list in grid')}")
    for point in itertools.product(*grid.values()):
        filled = dict(texts)
        for name, value in zip(grid, point, strict=True):
            filled = {k: v.replace(f"{{{name}}}", str(value)) if isinstance(v, str) else v for k, v in filled.items()}
        yield filled


def check(job: "Job", runs: Sequence[Run]) -> list[Verdict]:
    """Every claim of a job against its results."""
    return [_verdict(claim, job, runs) for claim in job.claims]


def meets(condition: str, value: float) -> bool:
    """Whether a value meets ">= 3", "< 1.1" or "in [0.5, 2]"; NaN meets none.

    Raises:
        UserError: a condition of no such form.
    """
    within = re.fullmatch(r"\s*in\s*\[\s*(\S+)\s*,\s*(\S+)\s*\]\s*", condition)
    compared = re.fullmatch(r"\s*(>=|<=|>|<)\s*(\S+)\s*", condition)
    try:
        if within and (low := float(within[1])) <= (high := float(within[2])):
            return low <= value <= high
        if compared and not math.isnan(level := float(compared[2])):
            return _COMPARISONS[compared[1]](value, level)
    except ValueError:
        pass
    raise UserError(f"holds = '{condition}' is no condition; write '>= 3', '< 1.1' or 'in [0.5, 2]'")


def _verdict(claim: Claim, job: "Job", runs: Sequence[Run]) -> Verdict:
    """Seed by seed; a run of one seed stands beside each seed of the others."""
    labels = list(dict.fromkeys(spec.label for spec in job.runs))
    done = {(r.label, r.attrs["run_id"]): r for r in runs}
    by_label: dict[str, dict[int, Run | None]] = {label: {} for label in labels}
    for spec in job.runs:
        by_label[spec.label][spec.seed] = done.get((spec.label, spec.run_id))
    used = _labels_in(claim, labels)
    several = {seed for label in used for seed in by_label[label] if len(by_label[label]) > 1}
    values, unreached = [], Counter[str]()
    for seed in sorted(several) or [0]:
        chosen = {label: next(iter(own.values())) if len(own) == 1 else own.get(seed) for label, own in by_label.items()}
        of_this_seed = set[str]()
        try:
            values.append(_value(claim, labels, partial(_smallest, chosen), of_this_seed))
        except DomainError:
            values.append(math.nan)
        except _Missing as missing:
            of_seed = f" of seed {seed}" if len(by_label[missing.label]) > 1 else ""
            return Verdict(claim, [], f"'{missing.label}' has no result{of_seed}")
        unreached.update(of_this_seed)
    seeds = len(values)
    told = [text if n == seeds else f"{text} with {n} of {seeds} seeds" for text, n in sorted(unreached.items())]
    return Verdict(claim, values, unreached=told)


def _labels_in(claim: Claim, labels: Sequence[str]) -> set[str]:
    """The runs that a claim's value needs, by label."""
    found: set[str] = set()

    def note(of: Sequence[str], _: Any) -> float:
        found.update(of)
        return math.nan

    _value(claim, labels, note)
    return found


def _over_rows(formula: str, names: Sequence[str], run: Run) -> np.ndarray:
    """A column, or a formula in the columns of these names, row by row; NaN where it divides by 0."""
    if formula in names:
        return run.column(formula)
    rows = zip(*(run.column(name).tolist() for name in names), strict=True)
    return np.array([_at_row(formula, dict(zip(names, row, strict=True))) for row in rows])


def _at_row(formula: str, names: Mapping[str, float]) -> float:
    try:
        return evaluate(formula, names) if all(map(math.isfinite, names.values())) else math.nan
    except ValueError:
        return math.nan


class _Missing(Exception):
    """A run that a claim needs has no result."""

    def __init__(self, label: str):
        self.label = label


def _smallest(runs: Mapping[str, Run | None], labels: Sequence[str], take: Callable[[Run], float]) -> float:
    """What is taken of the runs of these labels: the smallest number."""
    for label in labels:
        if runs[label] is None:
            raise _Missing(label)
    taken = [take(runs[label]) for label in labels]  # type: ignore[arg-type]
    return min((value for value in taken if not math.isnan(value)), default=math.nan)


def _value(
    claim: Claim,
    labels: Sequence[str],
    over: Callable[[Sequence[str], Callable[[Run], float]], float],
    unreached: set[str] | None = None,
) -> float:
    """A claim's value; `over` gives what a call takes of each run, over the runs that it names of a job's `labels`.

    `unreached` gets what no run came down to.
    """

    def named(node: ast.expr) -> list[str]:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            raise ValueError(f"'{ast.unparse(node)}' should be a run's label in quotes")
        wanted = [node.value] if node.value in labels else fnmatch.filter(labels, node.value)
        if not wanted:
            raise ValueError(nearest(node.value, labels, "run"))
        return wanted

    def call(node: ast.Call) -> float:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(formula)), of], keywords=[]) if name in _OVER_ROWS:
                names = sorted(names_in(formula))
                if not names:
                    raise ValueError(f"'{formula}' names no column")
                return over(named(of), lambda run: float(_OVER_ROWS[name](_over_rows(formula, names, run))))
            case ast.Call(func=ast.Name(id=name), args=[of], keywords=[]):
                return over(named(of), lambda run: float(run.column(name)[-1]))
            case ast.Call(func=ast.Name(id=name), args=[of], keywords=[ast.keyword(arg=str(falling), value=low)]):
                level = calculate(low, {}, call)
                entry = over(named(of), lambda run: entry_at(run.column(name), run.column(falling), level))
                if entry == math.inf and unreached is not None:
                    unreached.add(f"{ast.unparse(of)} never comes down to {falling} = {level:g}")
                return entry
            case ast.Call(args=[_], keywords=[_, _, *_]):
                raise ValueError(f"{', '.join(map(ast.unparse, node.keywords))} are several levels, and one is wanted")
        raise ValueError(f"'{ast.unparse(node)}' should be column('label') or column('label', loss=0.4)")

    try:
        return float(calculate(ast.parse(f"({claim.value})", mode="eval").body, {}, call))
    except (ZeroDivisionError, OverflowError):
        return math.nan
    except DomainError:
        raise
    except RecursionError:
        raise UserError(f"claim {claim.id}: value is too long a formula") from None
    except (ValueError, SyntaxError) as error:
        raise UserError(f'claim {claim.id}: value = "{" ".join(claim.value.split())}": {error}') from None
