"""Verdicts: a job's claims compared with its results."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import DomainError, evaluate
from mpi_compress.figures.lines import entry_at
from mpi_compress.job.claims import Question, meets, value_of
from mpi_compress.job.loading import Job
from mpi_compress.job.tables import Claim
from mpi_compress.results.reader import Run

_OVER_ROWS: dict[str, Callable[[np.ndarray], float]] = {"largest": np.nanmax, "smallest": np.nanmin, "mean": np.nanmean}


@dataclass(frozen=True)
class Verdict:
    """A claim, and what the results say about it."""

    claim: Claim
    values: list[float]  # one for each seed; empty where results are missing
    why: str = ""  # why there is no value
    unreached: Sequence[str] = ()  # levels that runs never came down to, which count as infinite

    @property
    def holds(self) -> bool | None:
        """True if the median over seeds meets the claim; None: not run."""
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
        """The range over several seeds, or ""."""
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
        """The paper's figure, or ""."""
        figure = self.claim.paper
        return "" if figure is None else f"{figure:g}" if isinstance(figure, float) else figure

    def __str__(self) -> str:
        c = self.claim
        ours = f"{self.ours} ({self.spread})" if self.spread else self.ours
        paper = f"paper {self.paper}; " if self.paper else ""
        unreached = f" ({'; '.join(self.unreached)})" if self.unreached else ""
        outcome = (f"{self.outcome}: {self.reason}" if self.reason else self.outcome) + unreached
        note = f"\n    note: {c.note}" if c.note else ""
        return f"{c.id}: {c.says}\n    {paper}ours {ours}; wanted {c.holds}: {outcome}{note}"


def check(job: Job, runs: Sequence[Run]) -> list[Verdict]:
    """Every claim of a job against its results."""
    return [_verdict(claim, job, runs) for claim in job.claims]


def _verdict(claim: Claim, job: Job, runs: Sequence[Run]) -> Verdict:
    """The verdict from the values of each seed; a run of one seed is compared with every seed of the others."""
    done = {(r.label, r.attrs["run_id"]): r for r in runs}
    by_label: dict[str, dict[int, Run | None]] = {spec.label: {} for spec in job.runs}
    for spec in job.runs:
        by_label[spec.label][spec.seed] = done.get((spec.label, spec.run_id))
    used = _labels_in(claim, list(by_label))
    several = {seed for label in used for seed in by_label[label] if len(by_label[label]) > 1}
    values, unreached = [], Counter[str]()
    for seed in sorted(several) or [0]:
        chosen = {label: next(iter(own.values())) if len(own) == 1 else own.get(seed) for label, own in by_label.items()}
        answers = _Answers(chosen)
        try:
            values.append(value_of(claim, list(by_label), answers))
        except DomainError:
            values.append(math.nan)
        except _Unknown as unknown:
            return Verdict(claim, [], str(unknown))
        except _Missing as missing:
            of_seed = f" of seed {seed}" if len(by_label[str(missing)]) > 1 else ""
            return Verdict(claim, [], f"'{missing}' has no result{of_seed}")
        unreached.update(answers.unreached)
    seeds = len(values)
    levels = [text if n == seeds else f"{text} with {n} of {seeds} seeds" for text, n in sorted(unreached.items())]
    return Verdict(claim, values, unreached=levels)


def answerable(job: Job) -> list[Claim]:
    """The claims that are about the job's runs alone; others are left when some runs are taken, as by --only."""
    found = []
    for claim in job.claims:
        with suppress(UserError):
            _labels_in(claim, [spec.label for spec in job.runs])
            found.append(claim)
    return found


def _labels_in(claim: Claim, labels: Sequence[str]) -> set[str]:
    """The runs that a claim's value needs, by label."""
    found: set[str] = set()

    def note(question: Question) -> float:
        found.update(question.labels)
        return math.nan

    value_of(claim, labels, note)
    return found


class _Missing(Exception):
    """The run of this label, which a claim needs, has no result."""


class _Unknown(Exception):
    """A column that a claim needs has no number in any row: says why."""


class _Answers:
    """Answers questions from the results of one seed, by label, and keeps which levels no run came down to."""

    def __init__(self, runs: Mapping[str, Run | None]):
        self._runs = runs
        self.unreached: set[str] = set()

    def __call__(self, q: Question) -> float:
        answers = [_answer(q, self._run(label)) for label in q.labels]
        smallest = min((value for value in answers if not math.isnan(value)), default=math.nan)
        if q.until and smallest == math.inf:
            self.unreached.add(f"{q.runs} never comes down to {q.until} = {q.level:g}")
        return smallest

    def _run(self, label: str) -> Run:
        if (run := self._runs[label]) is None:
            raise _Missing(label)
        return run


def _answer(q: Question, run: Run) -> float:
    for name in (*q.columns, *([q.until] if q.until else [])):
        if name == "suboptimality" and np.all(np.isnan(run.column(name))):
            raise _Unknown(f"f* of '{run.label}' is not known, and so its suboptimality is not")
    if q.over != "last":
        return float(_OVER_ROWS[q.over](_over_rows(q, run)))
    if q.until:
        return entry_at(run.column(q.formula), run.column(q.until), q.level)
    return float(run.column(q.formula)[-1])


def _over_rows(question: Question, run: Run) -> np.ndarray:
    """A column, or a formula in columns, row by row; NaN where it divides by 0."""
    names = question.columns
    if question.formula in names:
        return run.column(question.formula)
    rows = zip(*(run.column(name).tolist() for name in names), strict=True)
    return np.array([_at_row(question.formula, dict(zip(names, row, strict=True))) for row in rows])


def _at_row(formula: str, columns: Mapping[str, float]) -> float:
    try:
        return evaluate(formula, columns) if all(map(math.isfinite, columns.values())) else math.nan
    except ValueError:
        return math.nan
