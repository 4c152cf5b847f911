"""`mpi-compress show RESULT.h5 [OTHER.h5]`"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import bits_text

if TYPE_CHECKING:
    from mpi_compress.results.reader import Run


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("result", metavar="RESULT.h5")
    parser.add_argument("other", nargs="?", metavar="OTHER.h5")
    parser.add_argument("--csv", action="store_true", help="its rows as CSV: all columns of the trace, and seconds")
    parser.add_argument("--split", metavar="FIGURE", help="draw which rows each worker had, to a .png, .pdf or .svg")


def act(options: Namespace) -> int:
    from mpi_compress.results.reader import difference, read

    first = read(options.result)
    if options.csv:
        if options.other:
            raise UserError("show --csv: takes one result; two results are compared without it")
        sys.stdout.writelines(first.to_csv())
        return 0
    if options.split:
        return _draw_split(first, options)
    for line in difference(first, read(options.other)) if options.other else summary(first):
        print(line)
    return 0


def _draw_split(run: "Run", options: Namespace) -> int:
    if options.other:
        raise UserError("show --split: takes one result")
    import matplotlib as mpl

    mpl.use("agg")
    from mpi_compress.figures.plotting import save
    from mpi_compress.figures.splits import draw_split

    save(draw_split(run), Path(options.split), option="--split")
    print(options.split)
    return 0


def summary(run: "Run") -> Iterator[str]:
    """What is in a result, and where its time and bits went."""
    from mpi_compress.results import bounds, split

    yield from _head(run)
    yield from split.summary(run)
    last = {k: v[-1] for k, v in run.trace.items() if len(v)}
    if not last:
        yield "  no rows yet"
        return
    yield from _reached(run, last)
    yield from _further_columns(run, last)
    yield from bounds.summary(run)
    yield from _time(run)


def _head(run: "Run") -> Iterator[str]:
    a = run.attrs
    yield f"{run.file}"
    if run.x is not None and not run.has_checksums:
        yield "  no checksums: an earlier version wrote this file, and damage to it may not show"
    yield f"  {a['label']}: {a['status']}" + (f" ({a['reason']})" if a.get("reason") else "")
    hosts = f"{_count(a['n_workers'], 'worker')} on {_count(a['n_ranks'], 'rank')}"
    yield f"  data      {a['data']}: {a['n_samples']} samples, d = {a['dim']}; {hosts}"
    L = f"L = {a['L']:.9g}" + (", an estimate" if a.get("L_source") == "estimate" else "")
    sources = {"lowest seen": "the lowest seen", "given": "given by the job"}
    how = sources.get(a.get("f_star_source", ""), f"to {a['f_star_accuracy']:.1g}")
    yield f"  problem   {L}, mu = {a['mu']:.6g}, f* = {a['f_star']:.10g} ({how})"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _reached(run: "Run", last: dict[str, Any]) -> Iterator[str]:
    """The last row: the point, bits and cost, coordinates sent."""
    point = ", ".join(f"{k} {last[k]:.10g}" for k in ("loss", "suboptimality", "grad_norm"))
    yield f"  reached   round {last['round']}: {point}"
    for way in ("up", "down"):
        yield (
            f"  {way:8s}  {bits_text(last[f'wire_bits_{way}'])} on the wire, {bits_text(last[f'paper_bits_{way}'])} by the paper's "
            f"formula, cost {last[f'cost_{way}']:.6g}"
        )
    yield from _round_0(run)
    sent = last["elements_up"] / max(1, last["round"]) / run.attrs["n_workers"]
    yield f"  sent      {sent:.4g} coordinates a round and worker"


def _round_0(run: "Run") -> Iterator[str]:
    """The cost of the first round, where it differs from the other rounds'."""
    if len(run.trace["round"]) < 3 or run.trace["round"][1] != 1:
        return
    ways = [run.column(f"bits_{way}") for way in ("up", "down")]
    first, later = [float(each[1]) for each in ways], [float(each[2:].mean()) for each in ways]
    if any(abs(a - b) > 0.01 * b for a, b in zip(first, later, strict=True)):
        yield (
            f"  round 0   {first[0]:.4g} bits a coordinate and message up and {first[1]:.4g} down, on the wire; "
            f"{later[0]:.4g} and {later[1]:.4g} in later rounds"
        )


def _further_columns(run: "Run", last: dict[str, Any]) -> Iterator[str]:
    """What the run settled and tuned, and the columns that its algorithm adds."""
    import numpy as np

    from mpi_compress.results.columns import named

    if settled := json.loads(run.attrs.get("settled", "{}")):
        yield f"  settled   {', '.join(f'{k} = {v:.9g}' for k, v in settled.items())}"
    if run.tuned:
        tried = ", ".join(f"{value}: {merit:.4g}" for value, merit in run.tuned["tried"])
        yield f"  tuned     {run.tuned['parameter']} = {run.tuned['value']}, by {run.tuned['merit']}: {tried}"
    for name in sorted(n for n in set(last).difference(named("counter", "evaluation")) if not np.all(np.isnan(run.trace[n]))):
        after_rounds = run.trace[name][1:] if last["round"] else run.trace[name]  # row 0 comes before the first
        yield f"  {name:8s}  {last[name]:.6g} at the end, {np.nanmean(after_rounds):.6g} in the mean"


def _time(run: "Run") -> Iterator[str]:
    """Seconds, and what the run was made with and on."""
    a, seconds = run.attrs, {k: v[-1] for k, v in run.timing.items()}
    total = max(seconds.pop("seconds"), 1e-30)
    evaluate = seconds.pop("evaluate")
    parts = ", ".join(f"{k} {v:.3g} s ({v / total:.0%})" for k, v in seconds.items())
    yield f"  time      {total:.4g} s: {parts}; evaluation, off the clock, {evaluate:.3g} s"
    yield f"  made by   {', '.join(f'{k} {v}' for k, v in json.loads(a['versions']).items())}; {a['mpi_library']}"
    yield f"  on        {a['host']}" + (f", commit {a['commit']}" if a.get("commit") else "")
