"""Parts by their names, checked against what they state: alone, or as the runs of a job have them."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.plugins import with_inner
from mpi_compress.core.registry import registries
from mpi_compress.engine.hosting import rehearse
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.guard.findings import Finding, tried
from mpi_compress.guard.testing import findings, states_something
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.preparing.runs import Prepared, prepare
from mpi_compress.problem.models import Model

_ROWS = 200  # of a job's data, at most, on which a model is checked


def findings_by_name(name: str, parameters: Mapping[str, Any]) -> dict[str, list[Finding]]:
    """What checks find of every part of a name, by its kind; UserError if there is none."""
    known = [registry for registry in registries if name in registry]
    if not known:
        raise UserError(nearest(name, {each for registry in registries for each in registry}, "part"))
    built = {r.kind: r.build({"name": name, **parameters}, name) if parameters else r[name] for r in known}
    return {kind: findings(part) for kind, part in built.items()}


def findings_in_job(name: str, job: Job) -> dict[str, list[Finding]]:
    """What checks find of every part of a name in a job's runs, as they have it, by the run; UserError if none has it."""
    found: dict[str, list[Finding]] = {}
    seen: list[Any] = []
    for spec in job.runs:
        for part in (each for each in _parts_of(spec) if each.name == name):
            if part not in seen:
                seen.append(part)
                found[f"{spec.label} ({type(part).__name__})"] = list(_in_run(part, spec))
    if not found:
        raise UserError(nearest(name, {part.name for spec in job.runs for part in _parts_of(spec)}, "part in this job"))
    return found


def _parts_of(spec: RunSpec) -> list[Any]:
    links = (part for table in (spec.up, spec.down) for part in (table.compressor, table.codec))
    return [*with_inner((spec.algorithm, *links, spec.cost, spec.loss, spec.penalty, spec.partition, *spec.metrics))]


def _in_run(part: Any, spec: RunSpec) -> Iterator[Finding]:
    if not (isinstance(part, Model) or not states_something(part)):
        yield from findings(part)
        return
    p = prepare(spec, Ranks(), {}, quiet=True, force=True)
    if isinstance(part, Model):
        yield from findings(p.problem.loss, p.problem.data.read(0, min(p.problem.data.n_samples, _ROWS)))
    else:
        yield from tried("rehearsal", partial(_rehearsed, p))


def _rehearsed(p: Prepared) -> Iterator[Finding]:
    why = rehearse(p, p.problem.data.read(0, 1))
    yield Finding("rehearsal", not why, why or "two rounds change what they may; run JOB --verify plays them on several layouts")
