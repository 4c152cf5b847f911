"""`mpi-compress list [KIND]`"""

import inspect
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from mpi_compress.core.errors import UserError, nearest


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", help="algorithms, compressors, codecs, losses, costs, datasets or columns")


def act(options: Namespace) -> int:
    for line in listing(options.kind):
        print(line)
    return 0


def listing(kind: str | None) -> Iterator[str]:
    """What exists: parts with their parameters and papers, and the columns of results.

    Raises:
        UserError: there is no such kind of parts.
    """
    parts = _parts()
    if kind is not None and kind not in (*parts, "columns"):
        raise UserError(nearest(kind, [*parts, "columns"], "list"))
    for name, members in parts.items():
        if kind in (None, name):
            yield f"{name}:"
            for key, part in members.items():
                yield from _described(key, part)
    if kind in (None, "columns"):
        from mpi_compress.results import columns

        yield "columns:"
        yield from columns.listing()


def _parts() -> dict[str, Mapping[str, Any]]:
    from mpi_compress.algorithms import algorithms
    from mpi_compress.messages.codecs import codecs
    from mpi_compress.messages.compressors import compressors
    from mpi_compress.messages.costs import costs
    from mpi_compress.problem.datasets import KNOWN, generators
    from mpi_compress.problem.losses import losses

    return {
        "algorithms": algorithms, "compressors": compressors, "codecs": codecs, "losses": losses, "costs": costs,
        "datasets": {**generators, **KNOWN},
    }  # fmt: skip


def _described(key: str, part: Any) -> Iterator[str]:
    if not isinstance(part, type):
        size = f"{part.samples:,} × " if part.samples else "part of a set, d = "
        yield f"  {key:22s} {size}{part.dim:,}"
        return
    paper = getattr(part, "paper", "")
    first = getattr(part, "formula", "") or (inspect.getdoc(part) or "").partition("\n")[0]
    yield f"  {key:16s} {first}" + (f" [{paper}]" if paper and paper not in first else "")
    settings = [f"{f.name}{_default(f)}" for f in fields(part) if f.init]
    if settings:
        yield f"  {'':16s} parameters: {', '.join(settings)}"


def _default(field: Any) -> str:
    return "" if field.default is MISSING else f" = {json.dumps(field.default)}"
