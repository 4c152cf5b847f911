"""Parts by their names, checked against what they state: alone, or as the runs of a job have them."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from mpi_compress.algorithms.contract import Method
from mpi_compress.core.errors import UserError, checked_at, nearest
from mpi_compress.core.plugins import with_inner
from mpi_compress.core.registry import Registry, registries
from mpi_compress.engine.hosting import objectives_of, rehearse, view_of
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.guard.findings import Finding, tried
from mpi_compress.guard.of_algorithms import of_method
from mpi_compress.guard.of_data import of_format, of_metric
from mpi_compress.guard.of_messages import usual
from mpi_compress.guard.testing import findings
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.preparing.runs import Prepared, prepare
from mpi_compress.problem.datasets.formats import Format
from mpi_compress.problem.metrics import Metric
from mpi_compress.problem.models import Model

_ROWS = 200  # of a job's data, at most, on which a model is checked
_COORDINATES = 4_000_000  # of all workers, up to which a method's rounds are compared


def findings_by_name(name: str, parameters: Mapping[str, Any]) -> dict[str, list[Finding]]:
    """What checks find of every part of a name, by its kind; UserError if there is none."""
    known = [registry for registry in registries if name in registry]
    if not known:
        here = nearest(name, {each for registry in registries for each in registry}, "part")
        raise UserError(f"{here}; --job JOB knows those of its plugins, too")
    return {registry.kind: findings(_built(registry, name, parameters)) for registry in known}


def _built(registry: Registry[Any], name: str, parameters: Mapping[str, Any]) -> Any:
    """A part with these parameters; of a compressor without any, with those that tests use."""
    if parameters or not issubclass(registry[name], Compressor):
        return registry.build({"name": name, **parameters}, name)
    return checked_at(name, lambda: usual(registry[name]))


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
    data = spec.data.build_generator() if spec.data.generator is not None else spec.data.build_format(spec.folder)
    asked = (*spec.metrics, *spec.stop.own)
    return [*with_inner((spec.algorithm, *links, spec.cost, spec.loss, spec.penalty, spec.partition, *asked, data))]


def _in_run(part: Any, spec: RunSpec) -> Iterator[Finding]:
    if isinstance(part, Format):
        yield from tried("rows", partial(of_format, part, spec.data.file(spec.folder), spec.data.known_dim))
    elif isinstance(part, Model | Metric | Method):
        p = prepare(spec, Ranks(), {}, quiet=True, force=True)
        yield from _in_problem(part, p)
    else:
        yield from findings(part)


def _in_problem(part: Any, p: Prepared) -> Iterator[Finding]:
    data, n = p.problem.data, p.spec.workers.count
    if isinstance(part, Model):
        yield from findings(p.problem.loss, data.read(0, min(data.n_samples, _ROWS)))
    elif isinstance(part, Metric):
        yield from of_metric(part, view_of(p.problem, p.spec.data.test_rows), p.problem.dim)
    else:
        yield from tried("rehearsal", partial(_rehearsed, p))
        if not p.algorithm.shares_memory and n * p.problem.dim <= _COORDINATES:
            rows = dict(enumerate(data.shards(range(n), n)))
            yield from of_method(p.algorithm, objectives_of(p, rows), p.x0)


def _rehearsed(p: Prepared) -> Iterator[Finding]:
    why = rehearse(p, p.problem.data.read(0, 1))
    yield Finding("rehearsal", not why, why or "two rounds change what they may; run JOB --verify plays them on several layouts")
