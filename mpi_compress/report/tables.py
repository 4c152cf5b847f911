"""The tables of targets on one page: one for each job, and one for each problem that several jobs have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.problems import Problem, by_problem
from mpi_compress.report import reach, series


@dataclass(frozen=True)
class OfProblem:
    """A problem of several jobs."""

    words: str
    jobs: Sequence[tuple[str, str]]  # anchor and key
    table: reach.TargetTable


@dataclass(frozen=True)
class OfData:
    """A data set on which several jobs have a problem in common."""

    id: str
    name: str
    problems: Sequence[OfProblem]
    others: Sequence[tuple[str, str, str]]  # problems of one job alone: in words, the job's anchor and key


@dataclass(frozen=True)
class Tables:
    """All tables of a page, and what their sliders need."""

    of_jobs: Mapping[str, reach.TargetTable]  # by the jobs' anchors
    of_data: Sequence[OfData]
    data: str  # JSON

    @classmethod
    def of(cls, found: Sequence[Outcome], ids: Mapping[Outcome, str]) -> "Tables":
        """The tables of these jobs."""
        each = {o: reach.table(f"{ids[o]}-reach", [(run, o.key) for run in o.shown], [o]) for o in found if o.job}
        of_jobs = {ids[o]: table for o, table in each.items() if table is not None}
        of_data = list(_of_data(found, ids))
        all_tables = [*of_jobs.values(), *(problem.table for each in of_data for problem in each.problems)]
        return cls(of_jobs, of_data, series.as_json(reach.data(all_tables)))


def _of_data(found: Sequence[Outcome], ids: Mapping[Outcome, str]) -> list[OfData]:
    sets: dict[str, list[Problem]] = {}
    for problem in by_problem(found):
        sets.setdefault(problem.data, []).append(problem)
    made: list[OfData] = []
    for name, problems in sets.items():
        shared = [each for each in problems if len(each.jobs) > 1]
        tables = [(p, reach.table(f"data-{len(made) + 1}-{i}", p.runs, p.outcomes)) for i, p in enumerate(shared, 1)]
        own = [OfProblem(each.words, _jobs(each, ids), table) for each, table in tables if table is not None]
        alone = [(each.words, *_jobs(each, ids)[0]) for each in problems if len(each.jobs) == 1]
        if own:
            made.append(OfData(f"data-{len(made) + 1}", name, own, alone))
    return made


def _jobs(problem: Problem, ids: Mapping[Outcome, str]) -> list[tuple[str, str]]:
    return [(ids[o], o.key) for o in problem.outcomes if o.key in problem.jobs]
