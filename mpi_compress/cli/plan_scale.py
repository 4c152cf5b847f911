"""`mpi-compress plan JOB --model N:M`: rounds of more workers, by a model of measured parts."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line

if TYPE_CHECKING:
    from mpi_compress.job.loading import Job
    from mpi_compress.job.runs import RunSpec
    from mpi_compress.planning.scale import Hosting, Way
    from mpi_compress.planning.scale_figure import Modelled
    from mpi_compress.planning.scale_link import LinkCosts

SUFFIXES = (".csv", ".png", ".pdf", ".svg")


def refuse_alone(options: Namespace) -> None:
    """UserError for options of the model without --model."""
    for name, value in (("--link", options.link), ("--shard", options.shard), ("-o", options.figure)):
        if value is not None and options.model is None:
            raise UserError(f"{name} {value}: it belongs to --model, such as --model 10:10000")


def act(options: Namespace, jobs: "Sequence[Job]") -> None:
    """Print a table for each method of a job, and write what -o asks for.

    Raises:
        UserError: several jobs are given, or what is asked for cannot be modelled.
    """
    from mpi_compress.planning import scale
    from mpi_compress.planning.part_costs import PartTimer

    if len(jobs) > 1:
        raise UserError(f"--model {options.model}: one job is modelled at a time, and {len(jobs)} are given")
    runs = jobs[0].runs
    firsts = {spec.label: spec for spec in reversed(runs)}
    methods = [firsts[label] for label in dict.fromkeys(spec.label for spec in runs)]
    ns, target = scale.workers_of(options.model), _target(options, len(methods))
    timer, found = PartTimer(), {}
    for spec in methods:
        link, hosting, way = _link(options, spec), _hosting(options, spec), _way(spec)
        costs = timer.of(spec)
        able = ns if hosting.shard else [n for n in ns if n <= costs.n_samples]
        if not able:
            raise UserError(f"--model {options.model}: {costs.n_samples} rows are too few; --shard ROWS gives each worker as many")
        found[spec.label] = {each: [scale.modelled(costs, link, hosting, each, n) for n in able] for each in scale.WAYS}
        print(spec.label, f"  {_assumed(hosting, way, link)}", sep="\n")
        print(*scale.table(found[spec.label][way]), sep="\n")
        for line in scale.statements(costs, link, hosting, way, able):
            print(f"  {line}")
        last = [f"{each} {scale.time_text(rounds[-1].seconds)}" for each, rounds in found[spec.label].items()]
        print(f"  a round of {scale.workers_text(able[-1])}: {', '.join(last)}\n")
        if len(able) < len(ns):
            print_line(f"{spec.label}: {costs.n_samples} rows are enough for {able[-1]} of these workers; --shard ROWS for more")
    if target is not None:
        _write(found, _way(runs[0]), target)


def _target(options: Namespace, methods: int) -> Path | None:
    """The file of -o; UserError if it is none for a model of so many methods, before they are timed."""
    from mpi_compress.cli.files import ask_for_folder
    from mpi_compress.planning import scale_figure

    if not options.figure:
        return None
    target = Path(options.figure)
    if target.suffix not in SUFFIXES:
        raise UserError(f"-o {target}: a model is written as one of {', '.join(SUFFIXES)}")
    if target.suffix != ".csv" and methods > scale_figure.MOST:
        raise UserError(f"-o {target}: {methods} methods are too many for one figure; --only takes one, and a .csv all")
    ask_for_folder(target)
    return target


def _write(found: "Modelled", way: "Way", target: Path) -> None:
    from mpi_compress.cli.files import text_file
    from mpi_compress.planning.scale_figure import csv_text, draw

    if target.suffix == ".csv":
        text_file(target, csv_text(found))
    else:
        draw(found, way, target)
    print(target)


def _way(spec: "RunSpec") -> "Way":
    return "allgather" if spec.workers.exchange == "allgather" else "tree" if spec.workers.fold == "tree" else "star"


def _link(options: Namespace, spec: "RunSpec") -> "LinkCosts":
    """The link of --link, else that of the run's [cost] table; without either, messages take no time."""
    from mpi_compress.planning.scale_link import LinkCosts

    file = options.link or (spec.cost.files[0] if spec.cost.name == "table" else None)
    return LinkCosts() if file is None else LinkCosts.of(Path(file))


def _hosting(options: Namespace, spec: "RunSpec") -> "Hosting":
    from mpi_compress.planning.scale import Hosting

    return Hosting(options.ranks, spec.workers.master == "worker", options.shard)


def _assumed(hosting: "Hosting", way: "Way", link: "LinkCosts") -> str:
    """What the table assumes."""
    from mpi_compress.planning.scale import time_text

    all_host = hosting.master_hosts or way == "allgather"
    ranks = "one process" if hosting.ranks == 1 else f"{hosting.ranks or ('n' if all_host else 'n + 1')} ranks"
    shard = f"{hosting.shard} rows" if hosting.shard else "N/n rows"
    known = f"{time_text(link.c0)} a message, {time_text(8e6 * link.c1)} a megabyte"
    return f"{way}, {ranks}, {shard} each; " + (known if link.c1 or link.c0 else "no --link: messages take no time")
