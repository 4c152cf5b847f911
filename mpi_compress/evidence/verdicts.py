"""Verdicts: a job's claims compared with its results, and its records with what their runs took."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Literal

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import DomainError
from mpi_compress.evidence.answers import NOTES, Answers
from mpi_compress.evidence.endings import other_points
from mpi_compress.evidence.notes import said_of
from mpi_compress.job.claim_functions import Missing, Question, Unknown
from mpi_compress.job.claims import divides, meets, required, value_of
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import Claim
from mpi_compress.messages.compressors.base import AmongWorkers
from mpi_compress.problem.datasets.said import elsewhere
from mpi_compress.problem.losses import Loss
from mpi_compress.results.reader import Run, rising
from mpi_compress.results.targets import goal, share_text
from mpi_compress.results.units import COSTS, charged

CONFIDENCE = 0.9  # the least probability that an interval over seeds holds the median
_MISSED = 0.0, math.inf  # values of a factor of which one of the two never comes to its target
_BY_FORMULA = re.compile(r"\b(cost|paper_bits)(?=(_up|_down)?\b)")  # of a column in a claim
_ALIKE = 1.2  # a factor by which ratios by formula and on the wire may differ unsaid
_DIGITS = 6  # a factor of more has none that means anything
SEEDS = 5  # at least, where anything is random

Word = Literal["holds", "does not hold", "undecided", "not judged", "not tested", "not run"]


@dataclass(frozen=True)
class Verdict:
    """A claim, and what the results say about it."""

    claim: Claim
    values: list[float]  # one for each seed; empty where results are missing
    why: str = ""  # why there is no value
    notes: Mapping[str, Sequence[str]] = field(default_factory=lambda: dict.fromkeys(NOTES, ()))  # as `Answers.notes` has them
    untested: str = ""  # why the values are no test of the claim
    between: Sequence[tuple[float, float]] = ()  # for each seed where the value lies; empty where it is known
    off: float = 0.0  # by how much the claim's reference is off
    is_random: bool = False  # True if a run of it draws random numbers
    elsewhere: str = ""  # what makes the data others than the claim's
    changed: str = ""  # what is set otherwise than in the job, as by --set
    on_wire: float = math.nan  # the median where bits on the wire are in place of a formula's

    @property
    def outcome(self) -> Word:
        """Whether the median over seeds meets the claim; undecided where its interval, or a grid of trials, leaves both possible. A
        value that is no number tests nothing, and neither does a run that was cut off where its further rounds would decide."""
        return self._judged[0]

    @property
    def reason(self) -> str:
        """Why it does not hold, as far as the job says, or why it has no value."""
        return self._judged[1]

    @cached_property
    def _judged(self) -> tuple[Word, str]:
        """The outcome, and the reason for it."""
        cut, holds = self.notes["cut"], self.claim.holds
        if not (self.values or self.untested):
            return "not run", self.why
        if self.untested or math.isnan(self.median):
            return "not tested", self.untested or "its value is no number"
        if self.claim.reference and not meets(holds, self.off):
            return "not judged", f"its reference is off by {self.off:.3g}"
        seeds = len(self.values)
        if self.is_random and seeds < SEEDS and (seeds == 1 or len({*self.values}) > 1):  # equal values do not depend on the seed
            few = f"its runs draw random numbers, and {seeds} of {SEEDS} seeds are there"
            return "undecided", f"{few}; [grid] seed = {[*range(SEEDS)]} would do"
        if self._is_open and not cut:
            return "undecided", f"trials are too far apart: {'; '.join(self.notes['steps'])}"
        if self.interval is not None and divides(holds, *self.interval):
            return "undecided", "the interval holds values that meet the claim, and values that do not"
        if self._is_open:
            return "not tested", "; ".join(cut)
        if meets(holds, self.median):
            return "holds", ""
        return "does not hold", f"the job says: {self.claim.why}" if self.claim.why else ""

    @property
    def _is_open(self) -> bool:
        """True if what is not known of the value would decide: some values between its ends meet the claim, and others do not."""
        if not self.between:
            return False
        lows, highs = zip(*self.between, strict=True)
        low = (median_interval(lows) or [float(np.median(lows))])[0]
        high = (median_interval(highs) or [float(np.median(highs))])[-1]
        return math.isnan(low + high) or divides(self.claim.holds, low, high)

    @property
    def holds(self) -> bool | None:
        """True if the claim holds, False if it does not; None if the results do not say."""
        return {"holds": True, "does not hold": False}.get(self.outcome)

    @property
    def median(self) -> float:
        return float(np.median(self.values)) if self.values else math.nan

    @property
    def interval(self) -> tuple[float, float] | None:
        """An interval that holds the median with probability `CONFIDENCE` or more; None: too few seeds, or a value is no number."""
        return median_interval(self.values)

    @property
    def ours(self) -> str:
        """The median, "≥ 170" or "≤ 0.2" where it is only known to be no less or no more, or a dash where it says nothing. Of a
        factor, of which one of the two never comes to its target, how many seeds miss it."""
        low, high = np.median(self.between, axis=0).tolist() if self.between else (math.nan, math.nan)
        if self.median == math.inf and math.isfinite(low):
            return f"≥ {low:.4g}"
        if self.median == 0 < high < math.inf and self.notes["cut"]:
            return f"≤ {high:.4g}"
        if math.isnan(self.median) or (self.outcome == "not tested" and self.median in _MISSED):
            return "–"
        if not self._is_missed:
            return self._text(self.median)
        missed, of = sum(value in _MISSED for value in self.values), len(self.values)
        return f"no value ({missed} of {of} seeds miss the target)" if of > 1 else "no value (the target is missed)"

    @property
    def ours_in_unit(self) -> str:
        """`ours` with its unit, if it is a number."""
        return self.ours if self.ours.startswith("no value") else f"{self.ours} {self.claim.unit}".strip()

    @property
    def _is_missed(self) -> bool:
        """True of a factor that is 0 or infinite, since one of the two never comes to its target."""
        return self.claim.unit.startswith("×") and self.median in _MISSED

    def _text(self, value: float) -> str:
        """A value as text; a factor beyond a million, as where a run ended at rounding, has no digit that means anything."""
        if self.claim.unit.startswith("×") and value in _MISSED:
            return "no value"
        if self.claim.unit.startswith("×") and 0 < value < math.inf and abs(math.log10(value)) > _DIGITS:
            return "> 10⁶" if value > 1 else "< 10⁻⁶"
        return f"{value:.4g}"

    @property
    def spread(self) -> str:
        """The interval of the median over several seeds, or their range where they are too few; or ""."""
        if len(self.values) < 2 or math.isnan(self.median):
            return ""
        low, high = self.interval or (np.min(self.values), np.max(self.values))
        if low == math.inf or (high == 0 and self._is_missed):
            return ""
        if not self.is_random and len({*self.values}) == 1:  # of copies
            return f"{len(self.values)} seeds, equal: 1 run"
        return "interval " * bool(self.interval) + f"{self._text(low)} … {self._text(high)} over {len(self.values)} seeds"

    @property
    def remarks(self) -> list[str]:
        """What the reader of a value has to know: levels never reached, best runs at the edge of a grid, the ratio on the wire."""
        bounded = self.outcome != "not tested" and self.median in _MISSED
        ratio = self.on_wire / (self.median or math.nan) if self.claim.unit.startswith("×") else math.nan
        is_apart = 0 < ratio < 1 / _ALIKE or _ALIKE < ratio < math.inf
        wire = [f"by bits on the wire {self.on_wire:.4g} ×"] * is_apart
        cut = self.notes["cut"] if bounded else ()
        return [*self.notes["unreached"], *cut, *self.notes["edges"], *self.notes["others"], *wire]

    @property
    def is_elsewhere(self) -> bool:
        """True if its data are not those of its paper, as `check` and the report say; another claim of its job may have its own."""
        return self.elsewhere != "" or self.claim.basis == "other data"

    @property
    def required(self) -> str:
        """The bar, and where it follows from the paper's number in words, too: "at least half of the paper's 6 (>= 3)"."""
        return required(self.claim.holds)

    @property
    def paper(self) -> str:
        """The paper's figure, or ""."""
        figure = self.claim.paper
        return "" if figure is None else f"{figure:g}" if isinstance(figure, float) else figure

    def __str__(self) -> str:
        c = self.claim
        ours = self.ours_in_unit + f" ({self.spread})" * bool(self.spread)
        paper = f"paper {self.paper}; " if self.paper else ""
        remarks = f" ({'; '.join(self.remarks)})" if self.remarks else ""
        outcome = (f"{self.outcome}: {self.reason}" if self.reason else self.outcome) + remarks
        data = filter(None, ["on other data" * self.is_elsewhere, self.elsewhere])
        basis = "a line of our own" if c.basis == "ours" else ": ".join(data)
        setting = "; ".join(filter(None, (basis, self.changed and f"with {self.changed}")))
        words = (f" [{setting}]" if setting else "") + (f'\n    the paper: "{c.words}"' if c.words else "")
        note = f"\n    note: {c.note}" if c.note else ""
        return f"{c.id}: {c.says}{words}\n    {paper}ours {ours}; required {self.required}: {outcome}{note}"


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The order statistics closest to the middle between which the median of the distribution lies with probability `CONFIDENCE`.
    The k-th smallest and the k-th largest of n independent values hold it with probability 1 − 2 Σ_{j<k} C(n, j)/2ⁿ, whatever their
    continuous distribution: for 5 values the least and the largest do with 15/16. None: no pair does, or a value is NaN."""
    n, inside, found = len(values), 1.0, None
    if np.isnan(values).any():
        return None
    ordered = sorted(values)
    for k in range(n // 2):
        inside -= 2 * math.comb(n, k) / 2**n
        if inside < CONFIDENCE:
            break
        found = ordered[k], ordered[n - 1 - k]
    return found


def check(job: Job, runs: Sequence[Run]) -> list[Verdict]:
    """Every claim of a job against its results."""
    if not job.claims:
        return []
    done = {(r.label, r.attrs["run_id"]): r for r in runs}
    by_label = defaultdict[str, dict[int, Run | None]](dict)
    short, draws = dict[str, str](), dict[str, bool]()
    for spec in job.runs:
        run = by_label[spec.label][spec.seed] = None if spec.missing else done.get((spec.label, spec.run_id))
        draws[spec.label] = run is not None and _draws(spec, run)
        if run is not None and (text := _shortened(spec, run)):
            short[spec.label] = text
    claims = [replace(claim, why="") for claim in job.claims] if job.changes else job.claims  # the reason is another setting's
    judged, verdicts = partial(_verdict, by_label=by_label, short=short, draws=draws), []
    for claim in claims:
        sent = _BY_FORMULA.sub("wire_bits", claim.value)
        on_wire = judged(replace(claim, value=sent)).median if sent != claim.value else math.nan
        verdicts.append(replace(judged(claim), changed=job.changes, on_wire=on_wire))
    return verdicts


def _draws(spec: RunSpec, run: Run) -> bool:
    """True if a run draws random numbers: for its workers, start or minibatches, a coin of its method, or a compressor. The split
    of samples belongs to the problem, as the data do."""
    method, links = spec.algorithm, (spec.up.compressor, spec.down.compressor)
    times = spec.computing and spec.computing.law.draws
    drawn = spec.workers.participate or times or spec.start.at == "random" or not isinstance(spec.loss, Loss)
    if drawn or method.batch is not None or hasattr(method, "p"):
        return True
    try:
        return any(isinstance(C, AmongWorkers) or C.draws_indices or bool(C.omega(int(run.attrs["dim"]))) for C in links)
    except ValueError:  # the method sets a parameter of it
        return True

def _shortened(spec: RunSpec, run: Run) -> str:
    """That a run has ended by what was set of [stop] from outside, before the job's own rounds; or ""."""
    rounds, of_job = int(run.trace["round"][-1]), spec.rounds_of_job
    shorter = spec.stop.rounds == rounds < of_job and {"stop", "stop.rounds"} & spec.overridden.keys()
    return f"'{run.label}' ends after {rounds} of the job's {of_job} rounds".replace("inf ", "") if shorter else ""


def _verdict(
    claim: Claim, by_label: Mapping[str, Mapping[int, Run | None]], short: Mapping[str, str], draws: Mapping[str, bool]
) -> Verdict:
    """The verdict from the values of each seed, by label and seed; a run of one seed is compared with every seed of the others."""
    labels = list(by_label)
    used = _labels_in(claim, labels)
    several = {seed for label in used for seed in by_label[label] if len(by_label[label]) > 1}
    values, between, counts = [], [], {kind: Counter[str]() for kind in NOTES}
    off, tuned = 0.0, dict[tuple[str, str], None]()
    for seed in sorted(several) or [0]:
        chosen = {label: next(iter(own.values())) if len(own) == 1 else own.get(seed) for label, own in by_label.items()}
        answers = Answers(chosen, short)
        try:
            values.append(_number(claim, labels, answers))
            corners = [_number_of(claim, labels, corner) for corner in product(*answers.ends)]
            off = _number(replace(claim, value=claim.reference), labels, answers) if claim.reference else 0.0
        except Unknown as unknown:
            return Verdict(claim, [], untested=str(unknown))
        except Missing as missing:
            of_seed = f" of seed {seed}" if len(by_label[missing.label]) > 1 else ""
            return Verdict(claim, [], f"'{missing.label}' has no {missing.what}{of_seed}")
        between.append((float(np.min(corners)), float(np.max(corners))))  # NaN if one is no number
        for kind, texts in counts.items():
            texts.update(answers.notes[kind])
        tuned |= answers.tuned
    groups = {label: [run for run in by_label[label].values() if run is not None] for label in sorted(used)}
    own = [run for group in groups.values() for run in group]
    notes = {kind: _counted(texts, len(values)) for kind, texts in counts.items()}
    notes["others"] = [f"{column} is {bits}" for column in COSTS if column in claim.value and (bits := charged(column, own))]
    if "grad_norm" in claim.value:
        notes["others"] += said_of(other_points([*groups.values()]), [*groups]).values()
    notes["others"] += said_of((text for text, _ in tuned), [label for _, label in tuned]).values()
    untested = _untested(claim, own) or "; ".join(notes["above"])
    if not untested and (notes["unreached"] or notes["cut"]) and np.isnan(values).any():  # of what it compares none gets there
        untested = ": ".join(filter(None, ["no run reaches the target", "; ".join(notes["cut"])]))
    known = all(low == high for low, high in between)
    is_random, others = any(draws[label] for label in used), dict.fromkeys(filter(None, map(elsewhere, own)))
    return Verdict(claim, values, "", notes, untested, () if known else between, off, is_random, "; ".join(others))


def _number_of(claim: Claim, labels: Sequence[str], answers: Sequence[float]) -> float:
    """A claim's value from these answers to its questions."""
    following = iter(answers)
    return _number(claim, labels, lambda question: next(following, math.nan))


def _number(claim: Claim, labels: Sequence[str], answer: Callable[[Question], float]) -> float:
    try:
        return value_of(claim, labels, answer)
    except DomainError:
        return math.nan


def _counted(texts: Counter[str], seeds: int) -> list[str]:
    """Each text, and with how many seeds it is so where that is not all of them."""
    return [text if n == seeds else f"{text} with {n} of {seeds} seeds" for text, n in sorted(texts.items())]


def _untested(claim: Claim, runs: Sequence[Run]) -> str:
    """Why runs are no test of a claim about workers that run at once; "" if they are one."""
    for run in runs if claim.alone else ():
        ranks, workers = int(run.attrs["n_ranks"]), int(run.attrs["n_workers"])
        if min(run.cores, ranks) < workers:
            return f"it takes a rank and a core for each worker; the {workers} of '{run.label}' had {ranks} on {run.cores}"
    return ""


def answerable(job: Job) -> list[Claim]:
    """The claims that are about the job's runs alone; others are left when some runs are taken, as by --only."""
    found = []
    for claim in job.claims:
        with suppress(UserError):
            _labels_in(claim, [spec.label for spec in job.runs])
            found.append(claim)
    return found


def _labels_in(claim: Claim, labels: Sequence[str]) -> set[str]:
    found: set[str] = set()

    def note(question: Question) -> float:
        found.update(question.labels)
        return math.nan

    value_of(claim, labels, note)
    return found


def check_records(job: Job, runs: Sequence[Run]) -> Iterator[tuple[bool | None, str]]:
    """For each number of each record whether these runs need no more, None without a result, and a line that says so. Of several
    seeds the median counts; it is infinite where half of them do not reach the record's target."""
    for record in job.records:
        those = [run for run in runs if run.label == record.run]
        target = goal(record.to, rising(those))
        for column, claimed in record.claimed.items():
            said = f"{record.run}, {target}: {claimed:,} {column} claimed"
            took = [target.took(run, column) for run in those]
            spent, share = float(np.median(took or math.nan)), share_text(took)
            if math.isnan(spent):
                yield None, f"{said}; not run"
            elif spent == math.inf:
                yield False, f"{said}; not reached: does not hold{share}"
            else:
                verdict = "equal" if spent == claimed else "fewer" if spent < claimed else "more: does not hold"
                yield spent <= claimed, f"{said}, {spent:,.10g} found: {verdict}{share}"
