"""What ran, what did not, and why: the first table, a row for each method of each job, or one for each job where there are many."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mpi_compress.cluster.submission import Statuses
from mpi_compress.core.progress import count_text
from mpi_compress.evidence.lines import by_seed
from mpi_compress.evidence.method_status import MethodStatus, known_of, method_status
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.results.reader import Run
from mpi_compress.results.status import LastRow, State

FEW = 30  # methods, up to which the first page has a row for each
_NAMED = 3  # methods of one job and reason that are named

@dataclass(frozen=True)
class Ran:
    """A job and its methods."""

    outcome: Outcome
    methods: Sequence[MethodStatus] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """How many runs are in which state, as a page calls it."""
        return Counter(state.shown for method in self.methods for state in method.states)

    @property
    def whole(self) -> MethodStatus:
        """The job in one row: the least loss and gap of its methods, all their bits and seconds."""
        ends = [m.last for m in self.methods if m.look != "fails"]
        least = [known_of(min, [getattr(last, name) for last in ends]) for name in ("loss", "gap")]
        sums = [known_of(sum, [getattr(m.last, name) * len(m.states) for m in self.methods]) for name in ("up", "down", "seconds")]
        every = [state for m in self.methods for state in m.states] or [State.TO_DO]
        return MethodStatus(self.outcome.title, every, self.outcome.problem, LastRow(0, *least, *sums))


def ran(found: Sequence[Outcome]) -> list[Ran]:
    """What ran of each job."""
    return [Ran(o, list(_methods(o))) for o in found]


def incomplete(jobs: Sequence[Ran]) -> list[tuple[Outcome, MethodStatus, str]]:
    """The methods of a job that did not complete, for one reason: the first one, the names of a few, and how many others there are.
    First comes what diverged or failed, then what was stopped or is under way, last what was not run."""
    groups = defaultdict[tuple[Outcome, str, str], list[MethodStatus]](list)
    for job in jobs:
        for method in job.methods:
            if method.look != "holds":
                groups[job.outcome, method.state, method.why].append(method)
    found = []
    for (o, *_), methods in groups.items():
        names = [method.name for method in methods[:_NAMED]]
        names += [count_text(others, "other")] if (others := len(methods) - _NAMED) > 0 else []
        found.append((o, methods[0], "; ".join(names)))
    return sorted(found, key=lambda each: (each[1].look != "fails", each[1].state == State.TO_DO.shown))


def sentence(jobs: Sequence[Ran]) -> str:
    """What ran, in one sentence: "2 jobs, 7 runs: 5 complete, 1 diverged, 1 not run." """
    counts = sum((job.counts for job in jobs), Counter[str]())
    order = dict.fromkeys(state.shown for state in State)
    states = ", ".join(f"{counts[shown]} {shown}" for shown in order if counts[shown])
    unread = sum(job.outcome.job is None for job in jobs)
    others = f"; {count_text(unread, 'job')} cannot be read" if unread else ""
    return f"{count_text(len(jobs), 'job')}, {count_text(counts.total(), 'run')}{f': {states}' if states else ''}{others}."


def _methods(o: Outcome) -> Iterator[MethodStatus]:
    """The methods with rows, then those without."""
    if o.job is None:
        return
    unknown = [spec for spec, why in o.missing if not why]  # the others may have no run id: it follows from data
    each = zip(unknown, Statuses(replace(o.job, runs=unknown), o.out, prepares=False).all(), strict=True)
    known = {(spec.run_id, spec.label): status for spec, status in each}
    for runs in by_seed(o.shown):
        statuses = {i: known[_key(run)] for i, run in enumerate(runs) if run in o.begun and _key(run) in known}
        yield method_status(runs, statuses)
    begun, groups = {_key(run) for run in o.begun}, defaultdict[tuple[str, str], list[State]](list)
    for spec, why in o.missing:
        if why:
            groups[spec.label, why].append(State.LACKING)
    for key, status in known.items():
        if key not in begun:
            groups[key[1], ", ".join(status.details)].append(status.state)
    yield from (MethodStatus(label, each, why) for (label, why), each in groups.items())


def _key(run: Run) -> tuple[str, str]:
    return str(run.attrs.get("run_id")), run.label
