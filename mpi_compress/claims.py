"""Claims: what a paper says, held against a job's results. Formulas are parsed, never `eval`ed; nothing is typed in by hand.

In a claim's `value`, a column's name is a function: `cost_up('GD')` is its last entry in the run labelled GD, and
`cost_up('GD', loss=0.4)` its entry in the first row whose loss has come down to 0.4. `largest('error_norm', 'GD')`, `smallest`
and `mean` are taken over the rows of the run, of a column or of a formula in columns such as 'distance / bound'. The smallest over
several runs is `cost_up('T = *', loss=0.4)`, where their labels match. Runs that differ in their seed alone are taken seed by seed.
"""

import ast
import fnmatch
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpi_compress.errors import UserError, nearest
from mpi_compress.expressions import calculate, evaluate, names_in
from mpi_compress.job import Job
from mpi_compress.results import Run
from mpi_compress.tables import Claim

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

    @property
    def holds(self) -> bool | None:
        """Whether the median over seeds meets the claim; None: not run."""
        return meets(self.claim.holds, self.median) if self.values else None

    @property
    def median(self) -> float:
        return float(np.median(self.values))

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
        ours = "–"
        if self.values:
            ours = f"{self.median:.4g}"
            if len(self.values) > 1:
                ours += f" ({min(self.values):.4g} … {max(self.values):.4g} over {len(self.values)} seeds)"
        paper = f"paper {self.paper}; " if self.paper else ""
        outcome = f"{self.outcome}: {self.reason}" if self.reason else self.outcome
        note = f"\n    note: {c.note}" if c.note else ""
        return f"{c.id}: {c.says}\n    {paper}ours {ours}; wanted {c.holds}: {outcome}{note}"


def check(job: Job, runs: Sequence[Run]) -> list[Verdict]:
    """Every claim of a job against its results."""
    return [_verdict(claim, job, runs) for claim in job.claims]


def meets(condition: str, value: float) -> bool:
    """Whether a value meets ">= 3", "< 1.1" or "in [0.5, 2]"; no comparison with NaN holds.

    Raises:
        UserError: a condition of no such form.
    """
    within = re.fullmatch(r"\s*in\s*\[\s*(\S+)\s*,\s*(\S+)\s*\]\s*", condition)
    compared = re.fullmatch(r"\s*(>=|<=|>|<)\s*(\S+)\s*", condition)
    try:
        if within:
            return float(within[1]) <= value <= float(within[2])
        if compared:
            return _COMPARISONS[compared[1]](value, float(compared[2]))
    except ValueError:
        pass
    raise UserError(f"holds = '{condition}' is no condition; write '>= 3', '< 1.1' or 'in [0.5, 2]'")


def _verdict(claim: Claim, job: Job, runs: Sequence[Run]) -> Verdict:
    meets(claim.holds, 0.0)  # a wrong condition is told even where there are no results
    seeds = sorted({spec.seed for spec in job.runs})
    values = []
    for seed in seeds:
        by_label: dict[str, Run] = {}
        for spec in job.runs:
            found = [r for r in runs if r.label == spec.label and r.attrs["run_id"] == spec.run_id] if spec.seed == seed else []
            if found:
                by_label[spec.label] = found[0]
        labels = [spec.label for spec in job.runs]
        try:
            values.append(_value(claim, by_label, labels))
        except _Missing as missing:
            return Verdict(claim, [], str(missing))
    return Verdict(claim, values)


def _over_rows(formula: str, run: Run) -> np.ndarray:
    """A column, or a formula in columns, row by row; NaN where it divides by 0."""
    names = sorted(names_in(formula))
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


def _value(claim: Claim, runs: dict[str, Run], labels: Sequence[str]) -> float:
    def runs_of(node: ast.expr) -> list[Run]:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            raise ValueError(f"'{ast.unparse(node)}' should be a run's label in quotes")
        wanted = [node.value] if node.value in labels else fnmatch.filter(labels, node.value)
        if not wanted:
            raise ValueError(nearest(node.value, labels, "run"))
        for label in wanted:
            if label not in runs:
                raise _Missing(f"'{label}' has no result")
        return [runs[label] for label in wanted]

    def call(node: ast.Call) -> float:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _OVER_ROWS and len(node.args) == 2 and isinstance(node.args[0], ast.Constant):
            formula = str(node.args[0].value)
            return min(float(_OVER_ROWS[name](_over_rows(formula, run))) for run in runs_of(node.args[1]))
        if len(node.args) != 1:
            raise ValueError(f"'{ast.unparse(node)}' should be column('label') or column('label', loss=0.4)")
        return min(entry(run.column(name), run, node.keywords) for run in runs_of(node.args[0]))

    def entry(column: np.ndarray, run: Run, keywords: Sequence[ast.keyword]) -> float:
        if not keywords:
            return float(column[-1])
        if len(keywords) > 1:
            raise ValueError(f"{', '.join(map(ast.unparse, keywords))} are several levels, and one is wanted")
        (where,) = keywords
        level = calculate(where.value, {}, call)
        reached = np.flatnonzero(run.column(str(where.arg)) <= level)
        return float(column[reached[0]]) if reached.size else math.inf

    try:
        return float(calculate(ast.parse(f"({claim.value})", mode="eval").body, {}, call))
    except (ZeroDivisionError, OverflowError):
        return math.nan
    except (ValueError, SyntaxError) as error:
        raise UserError(f'claim {claim.id}: value = "{claim.value}": {error}') from None
