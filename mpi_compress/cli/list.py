"""`mpi-compress list [JOB] [KIND|PART]`"""

import inspect
import json
import re
import textwrap
import tomllib
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mpi_compress.algorithms import algorithms, downlinks, servers
from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.installed import broken, declared, imports, package, package_of
from mpi_compress.core.plugins import parts_of_plugins
from mpi_compress.core.progress import print_line
from mpi_compress.core.shipped import TOML, named, shipped_jobs
from mpi_compress.core.tables import plain
from mpi_compress.core.terminal import say, shortened
from mpi_compress.job.claim_functions import listing as functions_of_claims
from mpi_compress.job.dotted import leaves
from mpi_compress.job.loading import Job, load_job
from mpi_compress.job.stops import stops
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.costs import costs
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.datasets.formats import formats
from mpi_compress.problem.datasets.known import KNOWN, PUBLISHED
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.losses import losses
from mpi_compress.problem.metrics import metrics
from mpi_compress.problem.models import models
from mpi_compress.problem.partitions import partitions
from mpi_compress.problem.penalties import penalties
from mpi_compress.results.columns import listing as columns

_FIELD = re.compile(r"^    (\w+)\s*: .*?  # (.+)$", re.MULTILINE)  # with the comment beside it
_MANY = 60  # names of a kind, in the list of all


def act(options: Namespace) -> int:
    for entry in declared():
        with suppress(UserError):  # a name that is taken, which `broken` says
            imports(entry)
    known = {*_parts(), *chain(*_parts().values())}
    jobs = [what for what in options.what if what.endswith(TOML) or (what not in known and named(what).endswith(TOML))]
    of_jobs = [line for job in jobs for line in (*_of_job(load_job(job)), *_of_plugins(named(job)))]
    names = [what for what in options.what if what not in jobs]
    lines = [line for what in names for line in _listed(what, _parts())]  # all names are known before anything is printed
    if lines or of_jobs:
        say(*lines, *of_jobs, fits=True)
    else:
        _print_names(_parts())
        for each in dict.fromkeys(package(entry) for entry in declared() if entry not in broken):
            parts = ((f"{kind}/{key}", part) for kind, members in _parts().items() for key, part in members.items())
            its = ", ".join(name for name, part in parts if package_of(part.__module__) == each)
            say(f"from {each}: {its}", fits=True)
    for line in broken.values():
        print_line(f"mpi-compress: {line}")
    return 0


def _listed(what: str, parts: dict[str, Mapping[str, Any]]) -> list[str]:
    """The lines of a kind in the singular or plural, of a part, or of KIND/NAME."""
    listings = {"columns": columns, "claims": functions_of_claims}
    plural = {getattr(parts.get(kind), "kind", kind.removesuffix("s")).split()[0]: kind for kind in (*parts, *listings, "jobs")}
    kind, _, name = what.partition("/")
    kind = plural.get(kind, {"data": "datasets", "generator": "generators"}.get(kind, kind))
    parts = {**parts, "generators": generators} if kind == "generators" else parts
    parts, what = ({kind: parts[kind]}, name) if name and kind in parts else (parts, what if name else kind)
    if what == "jobs":
        return _jobs()
    if what in listings:
        return [f"{what}:", *listings[what]()]
    named = {kind: {what: members[what]} for kind, members in parts.items() if what in {*members}}
    chosen = {what: parts[what]} if what in parts else named
    if not chosen:
        names = {key for members in parts.values() for key in members}
        known = names if kind in parts else {*parts, *listings, "jobs", *names}
        raise UserError(f"{nearest(what, known, 'part or kind')}; `list JOB` describes a job, and the parts of its plugins")
    return [line for kind, members in chosen.items() for line in _lines_of(kind, members)]


def _lines_of(kind: str, members: Mapping[str, Any]) -> Iterator[str]:
    yield f"{kind}:"
    for key, part in members.items():
        yield from _described(key, part)


def _of_job(job: Job) -> Iterator[str]:
    """What a job is about, each of its settings in one line."""
    yield job.title + (f" [{job.paper}]" if job.paper and job.paper not in job.title else "")
    facts = {
        "data": (spec.data_shown for spec in job.runs),
        "workers": (str(spec.workers.count) for spec in job.runs),
        "methods": (f"{spec.label} ({spec.algorithm.name}, {spec.up.compressor.name})" for spec in job.runs),
        "stop": (", ".join(f"{key} = {value}" for key, value in spec.written["stop"].items()) for spec in job.runs),
        "claims": (f"{claim.id}: {claim.says}" for claim in job.claims),
    }
    yield from (f"  {name:9s} {shortened('; '.join(dict.fromkeys(each)) or 'none', 400)}" for name, each in facts.items())


def _of_plugins(file: str) -> Iterator[str]:
    job = load_job(file)
    found = parts_of_plugins({name for spec in job.runs for name in spec.written.get("plugins", [])})
    kinds = {getattr(registry, "kind", ""): name for name, registry in _parts().items()}
    for kind, members in found.items():
        if members:
            yield from _lines_of(kinds.get(kind, kind), members)


def _print_names(parts: Mapping[str, Mapping[str, Any]]) -> None:
    """The names of all parts, kind by kind; too many are counted."""
    others = {"jobs": f"{len(shipped_jobs())}, of papers' figures and comparisons", "columns": "those that results can have"}
    others["stops"] = "keys of [stop] that plugins register"
    others["claims"] = "functions that the value of a claim can call"
    for kind, members in {**parts, **{name: {} for name in others if name not in parts}}.items():
        names = [*members] if len(members) <= _MANY else [*[*members][:_MANY], f"… {len(members) - _MANY} more"]
        text = ", ".join(names) or others[kind]
        say(f"{kind + ':':14s}{text}", fits=True)
    say(
        "`mpi-compress list KIND` describes parts, `list KIND/NAME` one, `list JOB.toml` its plugins'",
        fits=True,
    )


def _jobs() -> list[str]:
    """Each job's name, where its data are, and its title."""
    rows = []
    for name, file in shipped_jobs().items():
        tables = tomllib.loads(file.read_text(encoding="utf-8-sig"))
        paper, title = tables.get("paper", ""), tables["title"]
        rows.append([f"  {name}", _where_data_are(tables), title + (f" [{paper}]" if paper and paper not in title else "")])
    return plain(("jobs:", "data", "title"), rows)


def _where_data_are(tables: Mapping[str, Any]) -> str:
    """Whether the data of a job are generated, or here, or to be fetched."""
    settings = [leaf for table in (tables, *tables.get("run", [])) for leaf in leaves(table)]
    named = [value if isinstance(value, list) else [value] for key, value in settings if key.endswith("data.name")]
    if all(DataTable(name=name).is_here(Path()) for name in chain(*named)):
        return "here" if named else "generated"
    return "to get"


def _parts() -> dict[str, Mapping[str, Any]]:
    return {
        "algorithms": algorithms, "servers": servers, "downlinks": downlinks,
        "compressors": compressors, "codecs": codecs, "losses": losses, "penalties": penalties,
        "models": models, "partitions": partitions, "metrics": metrics, "stops": stops, "costs": costs,
        "formats": formats, "datasets": {**generators, **KNOWN, **PUBLISHED},
    }  # fmt: skip


def _described(key: str, part: Any) -> Iterator[str]:
    """A part's first line, and a line for each of its parameters."""
    if not isinstance(part, type):
        size = f"{part.samples:,} × {part.dim:,}" if getattr(part, "samples", 0) else "part of a set, d = {0.dim:,}"
        yield f"  {key:22s} " + ("{0.size}, format {0.format}" if hasattr(part, "format") else size).format(part)
        return
    paper = getattr(part, "paper", "")
    first = getattr(part, "formula", "") or (inspect.getdoc(part) or "").partition("\n")[0]
    whose = f" (from {found})" if (found := package_of(part.__module__)) else ""
    yield f"  {key:16s} {first}" + (f" [{paper}]" if paper and paper not in first else "") + whose
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
            meaning = known.get(field.name, "") + _choices(hints[field.name])
            yield f"    {_default(field):26s}  {meaning}".rstrip()


def _default(field: Field[Any]) -> str:
    if field.default is None:
        return f"{field.name}, optional"
    if field.default_factory is not MISSING:
        return f"{field.name} = {json.dumps(field.default_factory(), ensure_ascii=False)}"
    return field.name if field.default is MISSING else f"{field.name} = {json.dumps(field.default, ensure_ascii=False)}"


def _choices(hint: Any) -> str:
    """The values that a parameter may have, if its type names them."""
    kinds = [hint] if get_origin(hint) is Literal else [kind for kind in get_args(hint) if kind is not type(None)]
    if len(kinds) != 1 or get_origin(kinds[0]) is not Literal:
        return ""
    return f" (one of {', '.join(json.dumps(value) for value in get_args(kinds[0]))})"


def meanings(cls: Any) -> dict[str, str]:
    """The comment beside each field of a class, by its name; a field that is declared again without one keeps the former."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= _beside_fields(base)
    return found


@cache
def _beside_fields(cls: Any) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # defined in a session
        return {}
    return dict(_FIELD.findall(source))
