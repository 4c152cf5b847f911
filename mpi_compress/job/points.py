"""The runs that a job's tables mean, each its label and its tables, before a part of them is looked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.patterns import Choice, is_chosen
from mpi_compress.job.dotted import grid_of, labelled, list_of_tables, points_of, refuse_unknown, with_values
from mpi_compress.job.runs import refuse_tables
from mpi_compress.job.tables import OF_A_RUN
from mpi_compress.job.tuning import for_the_question, untuned

Tables = Mapping[str, Any]


def whole(tables: Tables, own: Tables) -> tuple[str, Tables, Tables]:
    """The label of a [[run]] table, its tables with those that the job's runs share, and its grid likewise."""
    label = _label_of(own, "run: label" if "run" in tables else "title")
    where = f'run "{label}"'
    refuse_unknown(own, ("label", "grid", *OF_A_RUN), where)
    shared = {k: tables[k] for k in ("plugins", *tables) if k in tables and k in ("plugins", *OF_A_RUN)}
    grid = {**grid_of(tables, ""), **grid_of(own, f"{where}: ")}
    grid = untuned(grid) if own.get("tune") == {} else grid
    tables_of_run = {**shared, **{k: v for k, v in own.items() if k in OF_A_RUN}}
    return label, {k: v for k, v in tables_of_run.items() if (k, v) != ("tune", {})}, grid


def _label_of(own: Tables, key: str = "run: label") -> str:
    """The label of a [[run]] table; `key` is what it was written as."""
    label = own.get("label")
    if not isinstance(label, str) or not label:
        raise UserError('run: every [[run]] needs a label = "…", its name in figures')
    if not label.isprintable():
        raise UserError(f"{key} = {label!r} has characters that cannot be printed; write it without them, in one line")
    return label


def check_plain(tables: Tables, written: Sequence[tuple[Tables, Tables]], values: Tables, only: Choice, index: int | None) -> None:
    """UserError for what no plugin mends: a wrong label, or, without `index`, a wrong table in which no part stands."""
    for label, run, grid in (whole(*pair) for pair in written):
        for point in points_of(grid) if index is None else ():
            changed = with_values(run, {**point, **(values if is_chosen(labelled(label, point), only) else {})})
            refuse_tables(for_the_question(changed, tables.get("figure"), grid), f'run "{label}": ' if len(written) > 1 else "")
    for own in list_of_tables(full, "run", "full.") if isinstance(full := tables.get("full"), Mapping) else ():
        _label_of(own)
