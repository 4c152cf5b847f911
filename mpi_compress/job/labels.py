"""Labels of runs: their names in figures, tables and --only."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.tables import html
from mpi_compress.job.dotted import leaves
from mpi_compress.job.runs import RunSpec


def label_of(own: Mapping[str, Any], key: str) -> str:
    """The label of a [[run]] table; `key` is what it was written as."""
    label = own.get("label")
    if not isinstance(label, str) or not label:
        raise UserError('run: every [[run]] needs a label = "…", its name in figures')
    if not label.isprintable():
        raise UserError(f"{key} = {label!r} has characters that cannot be printed; write it without them, in one line")
    return label


def refuse_one_label_for_two(runs: Sequence[RunSpec]) -> None:
    """UserError if two runs of one label differ in more than their seed: figures and tables could not tell them apart."""
    first: dict[str, dict[str, Any]] = {}
    for spec in runs:
        own = {key: value for key, value in leaves(spec.written) if key != "seed"}
        other = first.setdefault(spec.label, own)
        differing = [key for key in {**other, **own} if _text(other.get(key)) != _text(own.get(key))]
        if differing:
            shown = ", ".join(differing[:3]) + (", …" if len(differing) > 3 else "")
            why = f"two runs have this label, and differ in {shown}; give each run a label of its own"
            raise UserError(f'run "{spec.label}": {why}')


def one_line(runs: Sequence[RunSpec]) -> str:
    """How many runs there are, and the labels of the first ones."""
    labels = [*dict.fromkeys(spec.label for spec in runs)]
    shown = ", ".join(labels[:4]) + (", …" if len(labels) > 4 else "")
    return f"{len(runs)} run{'s' * (len(runs) != 1)}: {textwrap.shorten(shown, 100, placeholder=' …')}"


def table_of(title: str, runs: Sequence[RunSpec]) -> str:
    """A table of HTML with a row for each run."""
    rows = [(str(s.index), s.label, s.algorithm.name, s.up.compressor.name, str(s.workers.count), str(s.seed)) for s in runs]
    return html(("", "label", "algorithm", "compressor", "workers", "seed"), rows, title)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
