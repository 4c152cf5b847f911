"""The pages that the package itself writes when the documentation is built: a page for each kind of part, and one of all commands.

`docs/conf.py` calls `write`; the pages are in docs/generated, which git ignores.
"""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any

import mpi_compress as mc
from mpi_compress.algorithms import downlinks, servers
from mpi_compress.cli.arguments import COMMANDS, Command
from mpi_compress.cli.list import meanings
from mpi_compress.cli.main import main
from mpi_compress.core.tables import Markup, markdown

KINDS = {
    "algorithms": ("Algorithms", "[algorithm] name", mc.algorithms),
    "servers": ("Servers", "[algorithm] server", servers),
    "downlinks": ("Downlinks", "[down] by", downlinks),
    "compressors": ("Compressors", "[up] compressor, [down] compressor", mc.compressors),
    "codecs": ("Codecs", "[up] codec, [down] codec", mc.codecs),
    "costs": ("Cost models", "[cost] model", mc.costs),
    "losses": ("Losses", "[objective] loss", mc.losses),
    "penalties": ("Penalties", "[objective] penalty", mc.penalties),
    "models": ("Models", "[objective] model", mc.models),
    "partitions": ("Splits", "[workers] partition", mc.partitions),
    "metrics": ("Metrics", "[log] metrics", mc.metrics),
    "formats": ("Formats of data", "[data] format", mc.formats),
    "generators": ("Generated data", "[data] generator", mc.generators),
}


def default(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"`{field.default_factory()}`"
    return "needed" if field.default is MISSING else "–" if field.default is None else f"`{field.default}`"


def part(name: str, cls: Any) -> Iterator[str]:
    """A section: what it is, its paper, the step of its theorem, and its parameters."""
    yield f"## {name}\n"
    formula, paper, theory = (getattr(cls, key, "") for key in ("formula", "paper", "theory"))
    says = "\n\n".join(dict.fromkeys(filter(None, (formula, getdoc(cls)))))
    yield f"```text\n{says}\n```\n"
    if paper and paper not in says:
        yield f"Source: {paper}.\n"
    if theory:
        yield f"In formulas, `theory` is `{theory}`" + (", for convex f_i.\n" if cls.theorem.convex else ".\n")
    known = meanings(cls)
    listed = [f for f in fields(cls) if f.init] if is_dataclass(cls) else []
    rows = [[*map(Markup, (f"`{f.name}`", default(f), known.get(f.name, "")))] for f in listed]
    if rows:
        yield markdown(("parameter", "default", "meaning"), rows)


def commands(given: Mapping[str, Command], above: tuple[str, ...] = ()) -> Iterator[str]:
    """A section for each command, with its `--help`."""
    for name, command in given.items():
        words, printed = (*above, name), io.StringIO()
        with redirect_stdout(printed), suppress(SystemExit):
            main([*words, "--help"])
        yield f"## {' '.join(words)}\n\n```text\n{printed.getvalue()}```\n"
        yield from commands(command.commands or {}, words)


def write(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for key, (title, table, members) in KINDS.items():
        lines = [f"# {title}\n", f"Names of `{table}` in a job file.\n"]
        for name, cls in members.items():
            lines += part(name, cls)
        (folder / f"{key}.md").write_text("\n".join(lines), encoding="utf-8")
    os.environ["COLUMNS"] = "110"
    text = "\n".join(["# Commands\n", "What each command prints with `--help`.\n", *commands(COMMANDS)])
    (folder / "commands.md").write_text(text, encoding="utf-8")
