"""`mpi-compress list [KIND]`"""

import inspect
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from mpi_compress.core.errors import UserError, nearest


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", help="algorithms, compressors, codecs, losses, costs, datasets, partitions or columns")


def act(options: Namespace) -> int:
    from mpi_compress.results.columns import listing

    kind, parts = options.kind, _parts()
    if kind not in (None, *parts, "columns"):
        raise UserError(nearest(kind, [*parts, "columns"], "list"))
    lists = {name: [line for key, part in members.items() for line in _described(key, part)] for name, members in parts.items()}
    for name, lines in {**lists, "columns": listing()}.items():
        if kind in (None, name):
            print(f"{name}:", *lines, sep="\n")
    return 0


def _parts() -> dict[str, Mapping[str, Any]]:
    from mpi_compress.algorithms import algorithms
    from mpi_compress.messages.codecs import codecs
    from mpi_compress.messages.compressors import compressors
    from mpi_compress.messages.costs import costs
    from mpi_compress.problem.datasets import KNOWN, generators
    from mpi_compress.problem.losses import losses
    from mpi_compress.problem.partitions import partitions

    return {
        "algorithms": algorithms, "compressors": compressors, "codecs": codecs, "losses": losses, "costs": costs,
        "datasets": {**generators, **KNOWN}, "partitions": partitions,
    }  # fmt: skip


def _described(key: str, part: Any) -> Iterator[str]:
    if not isinstance(part, type):
        size = f"{part.samples:,} × " if part.samples else "part of a set, d = "
        yield f"  {key:22s} {size}{part.dim:,}"
        return
    paper = getattr(part, "paper", "")
    first = getattr(part, "formula", "") or (inspect.getdoc(part) or "").partition("\n")[0]
    yield f"  {key:16s} {first}" + (f" [{paper}]" if paper and paper not in first else "")
    settings = [f.name if f.default is MISSING else f"{f.name} = {json.dumps(f.default)}" for f in fields(part) if f.init]
    if settings:
        yield f"  {'':16s} parameters: {', '.join(settings)}"
