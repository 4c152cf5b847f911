"""Parts checked against what they state, by their names or as the runs of a job have them."""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.contract import Method
from mpi_compress.core.errors import UserError, checked_at, nearest
from mpi_compress.core.plugins import parts_of_plugins
from mpi_compress.core.registry import Registry, is_ours, registries, with_inner
from mpi_compress.core.sources import file_of
from mpi_compress.engine.hosting import objectives_of
from mpi_compress.engine.metrics import view_of
from mpi_compress.engine.warm_up import bound_alone, run_two_rounds
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.guard.checks import Subject, everything
from mpi_compress.guard.findings import Finding
from mpi_compress.guard.of_messages import usual
from mpi_compress.guard.testing import findings
from mpi_compress.guard.theorem import theorem as of_theorem
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors import Compressor
from mpi_compress.preparing.problems import within
from mpi_compress.preparing.runs import Prepared, prepare
from mpi_compress.problem.datasets.formats import Format
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.metrics import Metric
from mpi_compress.problem.models import Model

_ALIKE = 0.65  # the name of a part of a plugin resembles some name among so many by more than half
_ROWS = 200  # of a job's data, at most, on which a model is checked
_ROWS_OF_A_WORKER = 64  # at most, on which a method is
_COORDINATES = 4_000_000  # of all workers, up to which a method's rounds are compared

Found = dict[str, list[Finding]]


def findings_by_name(name: str, parameters: Mapping[str, Any], theorem: bool = False) -> Found:
    """What checks find of every part of a name, by its kind, or what is found of its `theorem`; UserError if there is none."""
    known = [r for r in registries if name in r] or [r for r in registries if r.knows(name)]
    if not known:
        here = nearest(name, {each for registry in registries for each in registry}, "part", alike=_ALIKE)
        raise UserError(f"--job JOB knows those of its plugins, too; without it there is {here}")
    known = [r for r in known if theorem and issubclass(r[name], Method)] or known  # a server may have a method's name
    return {registry.kind: _asked(_built(registry, name, parameters), theorem) for registry in known}


def _asked(part: Any, theorem: bool, spec: RunSpec | None = None) -> list[Finding]:
    """What checks find of a part by itself, at the d of a run, or of its theorem."""
    if theorem and not isinstance(part, Method):
        raise UserError(f"--theorem: {part.name} is no method, and V is a method's")
    return [*of_theorem(part)] if theorem else findings(part, dim=_dim(part, spec) if spec else 0)


def _dim(part: Any, spec: RunSpec) -> int:
    """d of a run, for a compressor or a codec; 0 if the run's data are not here."""
    try:
        data = open_data(*spec.source) if isinstance(part, Compressor | Codec) else None
        return within(spec, data).dim if data else 0
    except UserError:
        return 0


def _built(registry: Registry[Any], name: str, parameters: Mapping[str, Any]) -> Any:
    """A part with these parameters; of a compressor without any, with those that tests use."""
    if parameters or not issubclass(registry[name], Compressor):
        return registry.build({"name": name, **parameters}, name)
    return checked_at(name, lambda: usual(registry[name]))


def findings_in_job(name: str, job: Job, parameters: Mapping[str, Any] | None = None, theorem: bool = False) -> Found:
    """What checks find of every part of a name in a job's runs, by the run, or of the `theorem` of a method; of a plugin's part
    that no run has, with these parameters. UserError if there is none."""
    found: dict[str, list[Finding]] = {}
    seen: list[Any] = []
    for spec in job.runs:
        parts = [each for each in _parts_of(spec) if each.name == name and (not theorem or isinstance(each, Method))]
        for part, codec in [(each, codec) for each in parts for codec in _codecs_of(each, spec)]:
            if (part, codec) not in seen:
                seen.append((part, codec))
                where = f'{_class_of(type(part))}, in the run "{spec.label}"'
                where += f", {part}, {codec}" * (where in found)
                links = (spec.up.compressor, spec.down.compressor)
                found[where] = [*of_theorem(part, own=links)] if theorem else _in_run(part, spec, codec)
    if found and parameters:
        raise UserError(f"{name}: its parameters are those of the job's runs; leave {', '.join(parameters)} out")
    return found or _of_plugins(name, job, parameters or {}, theorem)


def _of_plugins(name: str, job: Job, parameters: Mapping[str, Any], theorem: bool) -> Found:
    """What checks find of a part that plugins define and no run has."""
    plugins = {each for spec in job.runs for each in spec.written.get("plugins", [])}
    parts = parts_of_plugins(plugins)
    known = [registry for registry in registries if name in parts[registry.kind]]
    if not known:
        has = {part.name for spec in job.runs for part in _parts_of(spec)}.union(*parts.values())
        raise UserError(nearest(name, has, "part in this job"))
    return {f"{_class_of(r[name])}, in no run": _asked(_built(r, name, parameters), theorem, job.runs[0]) for r in known}


def _class_of(cls: type) -> str:
    """Its name, and the file of a user's."""
    return cls.__name__ if is_ours(cls) else f"{cls.__name__} of {os.path.relpath(file_of(sys.modules[cls.__module__]))}"


def _parts_of(spec: RunSpec) -> list[Any]:
    data = spec.data.build_generator() if spec.data.generator is not None else spec.data.build_format(spec.folder)
    return [*spec.parts, *with_inner((data,))]


def _codecs_of(part: Any, spec: RunSpec) -> Sequence[Codec | None]:
    """The codecs of a compressor's messages in a run, in the floats of its links: within another compressor its own codec."""
    holding = [t for t in (spec.up, spec.down) if any(part is each for each in with_inner([t.compressor]))]
    return [t.codec if part is t.compressor else codecs[part.codec](t.codec.float) for t in holding] or [None]


def _in_run(part: Any, spec: RunSpec, codec: Codec | None) -> list[Finding]:
    if isinstance(part, Format):
        return everything(Subject(part, file=(spec.data.file(spec.folder), spec.data.known_dim)))
    if not isinstance(part, Model | Metric | Method):
        return findings(part, dim=_dim(part, spec), codec=codec)
    p = prepare(spec, Ranks(), {}, quiet=True, force=True)
    if isinstance(part, Model):
        return findings(p.problem.loss, p.problem.data.read(0, min(p.problem.data.n_samples, _ROWS)))
    return everything(Subject(part, view=view_of(p)) if isinstance(part, Metric) else _of_method(p))


def _of_method(p: Prepared) -> Subject:
    """A run's method, its rounds compared if all of its workers fit."""
    data, n = p.problem.data, p.spec.workers.count
    algorithm = bound_alone(p)
    links = (part for link in (algorithm.up, algorithm.down) for part in (link.compressor, link.codec))
    parts = [*with_inner((algorithm, *links, p.problem.loss, p.problem.penalty, *p.spec.stop.own))]
    sizes = max(1, min(n, _COORDINATES // p.problem.dim)), max(2, min(_ROWS_OF_A_WORKER, data.n_samples // n))
    s = Subject(algorithm, parts, play=partial(run_two_rounds, p, algorithm, data.read(0, 1), *sizes))
    if isinstance(p.algorithm, Algorithm) and n * p.problem.dim <= _COORDINATES:
        s.problems = [(p.algorithm, objectives_of(p, dict(enumerate(data.shards(range(n), n)))), p.x0)]
    return s
