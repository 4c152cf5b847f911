"""`mpi-compress list [JOB] [KIND|PART]`"""

import inspect
import json
import re
import sys
import textwrap
import tomllib
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.installed import broken, declared, imports, package, package_of
from mpi_compress.core.plugins import parts_of_plugins
from mpi_compress.core.progress import print_line
from mpi_compress.core.registry import registries
from mpi_compress.core.shipped import TOML, named, shipped_jobs
from mpi_compress.core.tables import plain
from mpi_compress.core.terminal import BOLD, coloured, room, say, shortened
from mpi_compress.job.claim_functions import listing as functions_of_claims
from mpi_compress.job.dotted import leaves
from mpi_compress.job.loading import Job, load_job
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.datasets.known import KNOWN, PUBLISHED
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.results.columns import listing as columns

_FIELD = re.compile(r"^    (\w+)\s*: .*?  # (.+)$", re.MULTILINE)  # with the comment beside it
_PLURALS = {
    "algorithm": "algorithms", "server": "servers", "downlink": "downlinks", "compressor": "compressors", "codec": "codecs",
    "loss": "losses", "penalty": "penalties", "model": "models", "partition": "partitions", "metric": "metrics", "stop": "stops",
    "cost model": "costs", "format": "formats",
}  # fmt: skip


_PURPOSES = {
    "METHODS": ("algorithms", "servers", "downlinks"), "MESSAGES": ("compressors", "codecs", "costs"),
    "PROBLEMS": ("datasets", "formats", "losses", "penalties", "models", "partitions"), "RESULTS": ("metrics", "stops"),
}  # fmt: skip


def act(options: Namespace) -> int:
    for entry in declared():
        with suppress(UserError):  # a name that is taken, which `broken` says
            imports(entry)
    known = {*_parts(), *chain(*_parts().values())}
    jobs = [what for what in options.what if what.endswith(TOML) or (what not in known and named(what).endswith(TOML))]
    of_jobs = [line for job in map(load_job, jobs) for line in (*_of_job(job), *_of_plugins(job))]
    names = [what for what in options.what if what not in jobs]
    lines = [line for name in names for line in _listed(name, _parts())]  # all names are known before anything is printed
    say(*lines, *of_jobs, *(() if options.what else _names(_parts())), fits=True)
    for line in broken.values():
        print_line(f"mpi-compress: {line}")
    return 0


def _listed(what: str, parts: dict[str, Mapping[str, Any]]) -> list[str]:
    """The lines of a kind in the singular or plural, of a part, or of KIND/NAME."""
    plural = {kind.split()[0]: plural for kind, plural in _PLURALS.items()} | {kind.removesuffix("s"): kind for kind in _LISTINGS}
    kind, _, name = what.partition("/")
    kind = {**plural, "dataset": "datasets", "data": "datasets", "generator": "generators"}.get(kind, kind)
    parts = {**parts, "generators": generators} if kind == "generators" else parts
    parts, what = ({kind: parts[kind]}, name) if name and kind in parts else (parts, what if name else kind)
    if what in _LISTINGS:
        return [*_LISTINGS[what]()]
    chosen = {what: parts[what]} if what in parts else {kind: {what: own[what]} for kind, own in parts.items() if what in {*own}}
    if not chosen:
        known = {*chain(*parts.values()), *(() if kind in parts else (*parts, *_LISTINGS))}
        raise UserError(f"{nearest(what, known, 'part or kind')}; `list JOB` describes a job, and the parts of its plugins")
    return [line for kind, members in chosen.items() for line in _lines_of(kind, members)]


def _lines_of(kind: str, members: Mapping[str, Any]) -> Iterator[str]:
    yield f"{kind}:"
    for key, part in members.items():
        yield from _described(key, part)


def _of_job(job: Job) -> Iterator[str]:
    """What a job is about, each of its settings in one line."""
    yield job.title + (f" [{job.paper.removeprefix('none: ')}]" if job.paper and job.paper not in job.title else "")
    facts = {
        "data": (spec.data_shown for spec in job.runs),
        "workers": (str(spec.workers.count) for spec in job.runs),
        "methods": (f"{spec.label} ({spec.algorithm.name}, {spec.up.compressor.name})" for spec in job.runs),
        "stop": (", ".join(f"{key} = {value}" for key, value in spec.written["stop"].items()) for spec in job.runs),
        "claims": (f"{claim.id}: {claim.says}" for claim in job.claims),
    }
    yield from (f"  {name:9s} {shortened('; '.join(dict.fromkeys(each)) or 'none', 400)}" for name, each in facts.items())


def _of_plugins(job: Job) -> Iterator[str]:
    found = parts_of_plugins({name for spec in job.runs for name in spec.written.get("plugins", [])})
    for kind, members in found.items():
        if members:
            yield from _lines_of(_PLURALS.get(kind, kind), members)


def _names(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A line for each part, of as many letters as a terminal has; kinds stand by purpose, and related parts together."""
    letters = room(sys.stdout)
    for purpose, kinds in _PURPOSES.items():
        yield coloured(purpose, BOLD, sys.stdout)
        for kind in kinds:
            yield f"{kind}:"
            for key, part in sorted(parts[kind].items(), key=lambda each: getattr(each[1], "__module__", "")):
                line = next(_described(key, part))
                yield line if letters is None or len(line) <= letters else f"{line[: letters - 1]}…"
    yield "`mpi-compress list KIND` describes parts, or jobs, columns, claims; `list KIND/NAME` one, `list JOB.toml` its plugins'"
    for each in dict.fromkeys(package(entry) for entry in declared() if entry not in broken):
        named = ((f"{kind}/{key}", part) for kind, members in parts.items() for key, part in members.items())
        yield f"from {each}: {', '.join(name for name, part in named if package_of(part.__module__) == each)}"


def _jobs() -> list[str]:
    """Each job's name, where its data are, and its title."""
    rows = []
    for name, file in shipped_jobs().items():
        tables = tomllib.loads(file.read_text(encoding="utf-8-sig"))
        paper, title = tables.get("paper", ""), tables["title"]
        rows.append([f"  {name}", _where_data_are(tables), title + (f" [{paper}]" if paper and paper not in title else "")])
    legend = "to get: `mpi-compress data get NAME` fetches a set; partly here: some runs go without that"
    return plain(("jobs:", "data", f"title ({legend})"), rows)


_LISTINGS: Mapping[str, Callable[[], Iterable[str]]] = {
    "columns": lambda: ("columns:", *columns()), "claims": lambda: ("claims:", *functions_of_claims()), "jobs": _jobs,
}  # fmt: skip
"""Kinds that have no parts."""


def _where_data_are(tables: Mapping[str, Any]) -> str:
    """Whether the data of a job are generated, or here, all or some of them, or to be fetched."""
    settings = [leaf for table in (tables, *tables.get("run", [])) for leaf in leaves(table)]
    named = chain(*(value if isinstance(value, list) else [value] for key, value in settings if key.endswith("data.name")))
    here = [DataTable(name=name).is_here(Path()) for name in named]
    some = any(here) or any(key.endswith("data.generator") for key, _ in settings)
    return "generated" if not here else "here" if all(here) else "partly here" if some else "to get"


def _parts() -> dict[str, Mapping[str, Any]]:
    found = {registry.kind: registry for registry in registries}
    return {plural: found[kind] for kind, plural in _PLURALS.items()} | {"datasets": {**generators, **KNOWN, **PUBLISHED}}


def _described(key: str, part: Any) -> Iterator[str]:
    """A part's first line, and a line for each of its parameters."""
    if not isinstance(part, type):
        size = f"{part.samples:,} × {part.dim:,}" if getattr(part, "samples", 0) else "part of a set, d = {0.dim:,}"
        yield f"  {key:22s} " + ("{0.size}, format {0.format}" if hasattr(part, "format") else size).format(part)
        return
    paper = getattr(part, "paper", "")
    first = getattr(part, "formula", "") or (inspect.getdoc(part) or "").partition("\n")[0]
    if hasattr(part, "on_wire"):
        first += " Charges the bytes sent." if part.on_wire else " Charges bits by the papers' formula."
    whose = f" (from {found})" if (found := package_of(part.__module__)) else ""
    yield f"  {key:20s} {first}" + (f" [{paper}]" if paper and paper not in first else "") + whose
    if (parts := getattr(part, "parts", plain := ("step", "mean"))) != plain:
        yield f"    x moves by the server {parts[0]}, workers hear by {parts[1]}"
    theory, theorem = getattr(part, "theory", ""), getattr(part, "theorem", None)
    if theory and theorem is not None:
        yield f"    in formulas, theory is {theory}{', for convex f_i' * theorem.convex}"
        if theorem.tight:
            yield f"    and tight is {theorem.tight}"
    known, hints = meanings(part), get_type_hints(part)
    for field in sorted(fields(part), key=lambda field: field.kw_only is True):
        if field.init:
            meaning = known.get(field.name, "")
            if field.default is not None:  # which is shown, so none is left out
                meaning = meaning.partition("; left out:")[0]
            meaning += _choices(hints[field.name])
            yield f"    {_default(field):26s}  {meaning}".rstrip()


def _default(field: Field[Any]) -> str:
    if field.default is None:
        return f"{field.name}, optional"
    value = field.default if field.default_factory is MISSING else field.default_factory()
    return field.name if value is MISSING else f"{field.name} = {json.dumps(value, ensure_ascii=False)}"


def _choices(hint: Any) -> str:
    """The values that a parameter may have, if its type names them."""
    kinds = [hint] if get_origin(hint) is Literal else [kind for kind in get_args(hint) if kind is not type(None)]
    is_one = [get_origin(kind) for kind in kinds] == [Literal]
    return f" (one of {', '.join(map(json.dumps, get_args(kinds[0])))})" if is_one else ""


def meanings(cls: Any) -> dict[str, str]:
    """The comment beside each field of a class, by its name; a field that is declared again without one keeps the former."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= _beside_fields(base)
    return found


@cache
def _beside_fields(cls: Any) -> dict[str, str]:
    try:
        return dict(_FIELD.findall(textwrap.dedent(inspect.getsource(cls))))
    except (OSError, TypeError):  # defined in a session
        return {}
