"""Text about jobs and results: plans, summaries, differences, and what exists."""

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.algorithms import algorithms
from mpi_compress.cluster import slurm
from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import bits_text
from mpi_compress.engine import memory_needs as footprint
from mpi_compress.engine import theory
from mpi_compress.engine.runner import result_file
from mpi_compress.job.loading import Job
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.costs import costs
from mpi_compress.problem.datasets import KNOWN, generators
from mpi_compress.problem.objective import LOSSES
from mpi_compress.results.reader import Run, read
from mpi_compress.results.writer import is_being_written, part_of

COMPARED = ("trace", "workers", "theory")  # /final too; /timing is measured, and never compared


def plan_lines(job: Job, out: Path, ranks: int | None = None) -> Iterator[str]:
    """One line a run: index, label, run id, the memory that it needs, and what became of it."""
    width = max(len(s.label) for s in job.runs)
    tasks = slurm.tasks(job.name, out / job.name)
    for spec in job.runs:
        file = result_file(job, spec, spec.run_id, out)
        state = state_of(file, tasks.get(spec.run_id))
        yield f"{spec.index:3d}  {spec.label:{width}s}  {spec.run_id}  {footprint.text(spec, ranks)}  {state}"


def state_of(file: Path, task: slurm.Task | None = None) -> str:
    """What became of a run: done, diverged, running, queued, stopped, failed, broken off, or to do; where it is, and why."""
    if file.exists():
        run = read(file)
        why = f": {run.attrs['reason']}" if run.attrs["reason"] else ""
        return f"{'done' if run.status == 'complete' else run.status}{why}"
    status, reason, reached = _begun(part_of(file))
    if is_being_written(part_of(file)):
        return f"running{f', SLURM {task.id}' if task else ''}{reached}"
    if task and task.state:
        known = {
            "PENDING": f"queued ({task.reason})",
            "RUNNING": "starting" if not reached else "running",
            slurm.SILENT: f"not known ({task.reason})",
        }
        return f"{known.get(task.state, task.state.lower())}, SLURM {task.id}{reached}"
    if status not in ("", "running"):
        return f"{status}: {reason}{reached}"
    words = task.last_words() if task else ""
    if words:
        return f"failed: {words}{reached} (all of it: {task.log})"  # type: ignore[union-attr]
    if status:
        return f"broken off{reached}"
    return f"left SLURM's queue without a word, {task.id}" if task else "to do"


def _begun(part: Path) -> tuple[str, str, str]:
    """Status, reason, and how far it came, of a result that is not whole; "" where there is nothing."""
    try:
        run = read(part)
    except UserError:
        return ("running" if part.exists() else ""), "", ""
    reached = f" (round {run.trace['round'][-1]}, loss {run.trace['loss'][-1]:.6g})" if "round" in run.trace else ""
    return run.status, str(run.attrs["reason"]), reached


def results_of(job: Job, out: Path, unfinished: bool = False) -> list[Run]:
    """The results of a job that are there; with `unfinished`, also what runs have written so far.

    Raises:
        UserError: none is.
    """
    files = [result_file(job, spec, spec.run_id, out) for spec in job.runs]
    found = [run for file in files if (run := _result(file, unfinished)) is not None]
    if not found:
        raise UserError(f"no results of '{job.name}' in {out}; `mpi-compress run` makes them")
    return found


def _result(file: Path, unfinished: bool) -> Run | None:
    """A run's result, or with `unfinished` what it has written so far; None where there is nothing."""
    if unfinished and not file.exists():
        with suppress(UserError):  # there is none, or it was completed meanwhile
            part = read(part_of(file))
            if "round" in part.trace:
                return part
    return read(file) if file.exists() else None


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def summary(run: Run) -> Iterator[str]:
    """What is in a result, and where its time and bits went."""
    a, last = run.attrs, {k: v[-1] for k, v in run.trace.items() if len(v)}
    yield f"{run.file}"
    yield f"  {a['label']}: {a['status']}" + (f" ({a['reason']})" if a.get("reason") else "")
    hosts = f"{_count(a['n_workers'], 'worker')} on {_count(a['n_ranks'], 'rank')}"
    yield f"  data      {a['data']}: {a['n_samples']} samples, d = {a['dim']}; {hosts}"
    yield f"  problem   L = {a['L']:.9g}, mu = {a['mu']:.6g}, f* = {a['f_star']:.10g} (to {a['f_star_accuracy']:.1g})"
    if not last:
        yield "  no rows yet"
        return
    point = ", ".join(f"{k} {last[k]:.10g}" for k in ("loss", "suboptimality", "grad_norm"))
    yield f"  reached   round {last['round']}: {point}"
    for way in ("up", "down"):
        yield (
            f"  {way:8s}  {bits_text(last[f'wire_bits_{way}'])} on the wire, {bits_text(last[f'paper_bits_{way}'])} by the paper's "
            f"formula, cost {last[f'cost_{way}']:.6g}"
        )
    yield from _round_0(run)
    rounds = max(1, last["round"])
    yield f"  sent      {last['elements_up'] / rounds / a['n_workers']:.4g} coordinates a round and worker"
    settled = json.loads(a.get("settled", "{}"))
    if settled:
        yield f"  settled   {', '.join(f'{k} = {v:.9g}' for k, v in settled.items())}"
    if run.tuned:
        tried = ", ".join(f"{value}: {merit:.4g}" for value, merit in run.tuned["tried"])
        yield f"  tuned     {run.tuned['parameter']} = {run.tuned['value']}, by {run.tuned['merit']}: {tried}"
    for name in sorted(n for n in set(last) - set(_COMMON) if not np.all(np.isnan(run.trace[n]))):
        after_rounds = run.trace[name][1:] if last["round"] else run.trace[name]  # row 0 comes before the first
        yield f"  {name:8s}  {last[name]:.6g} at the end, {np.nanmean(after_rounds):.6g} in the mean"
    yield from theory.summary(run)
    seconds = {k: v[-1] for k, v in run.timing.items()}
    total = max(seconds.pop("seconds"), 1e-30)
    evaluate = seconds.pop("evaluate")
    parts = ", ".join(f"{k} {v:.3g} s ({v / total:.0%})" for k, v in seconds.items())
    yield f"  time      {total:.4g} s: {parts}; evaluation, off the clock, {evaluate:.3g} s"
    yield f"  made by   {', '.join(f'{k} {v}' for k, v in json.loads(a['versions']).items())}; {a['mpi_library']}"
    yield f"  on        {a['host']}" + (f", commit {a['commit']}" if a.get("commit") else "")


def _round_0(run: Run) -> Iterator[str]:
    """What the first round cost, where that is not what the others do."""
    if len(run.trace["round"]) < 3 or run.trace["round"][1] != 1:
        return
    ways = [run.column(f"bits_{way}") for way in ("up", "down")]
    first, later = [float(each[1]) for each in ways], [float(each[2:].mean()) for each in ways]
    if any(abs(a - b) > 0.01 * b for a, b in zip(first, later, strict=True)):
        yield (
            f"  round 0   {first[0]:.4g} bits a coordinate and message up and {first[1]:.4g} down, on the wire; "
            f"{later[0]:.4g} and {later[1]:.4g} in later rounds"
        )


_COMMON = (
    "round", "epoch", "loss", "suboptimality", "grad_norm", "wire_bits_up", "wire_bits_down", "paper_bits_up", "paper_bits_down",
    "elements_up", "cost_up", "cost_down",
)  # fmt: skip


def difference(one: Run, other: Run) -> Iterator[str]:
    """The first round and column where two results part; bit for bit, /timing left out."""
    parted, alone = [], 0
    for table in COMPARED:
        a, b = getattr(one, table), getattr(other, table)
        for column in sorted(set(a) | set(b)):
            if column not in a or column not in b:
                yield f"/{table}/{column} is in {(one if column in a else other).file} only"
                alone += 1
                continue
            n = min(len(a[column]), len(b[column]))
            unequal = [i for i in range(n) if a[column][i].tobytes() != b[column][i].tobytes()]
            if unequal:
                parted.append((unequal[0], f"/{table}/{column}: {a[column][unequal[0]]} against {b[column][unequal[0]]}"))
    rows = [len(r.trace.get("round", ())) for r in (one, other)]
    if parted:
        row = min(row for row, _ in parted)
        yield f"they part in row {row} (round {one.trace['round'][row]}):"
        for at, text in parted:
            if at == row:
                yield f"  {text}"
    elif rows[0] != rows[1]:
        yield f"equal in all rows that both have; {rows[0]} rows against {rows[1]}"
    elif (one.x is None) != (other.x is None) or (one.x is not None and one.x.tobytes() != other.x.tobytes()):  # type: ignore[union-attr]
        yield "all rows are equal, the last points are not"
    else:
        yield f"equal, bit for bit: {rows[0]} rows{' of the columns that both have' if alone else ''}"


def listing(kind: str | None) -> Iterator[str]:
    """What exists, its parameters, its paper."""
    parts: dict[str, Mapping[str, Any]] = {
        "algorithms": algorithms, "compressors": compressors, "codecs": codecs, "losses": LOSSES, "costs": costs,
        "datasets": {**generators, **KNOWN},
    }  # fmt: skip
    if kind is not None and kind not in parts:
        raise UserError(nearest(kind, parts, "list"))
    for name, members in parts.items():
        if kind in (None, name):
            yield f"{name}:"
            for key, part in members.items():
                yield from _described(key, part)


def _described(key: str, part: Any) -> Iterator[str]:
    if not inspect.isclass(part):
        if hasattr(part, "formula"):
            yield f"  {key:16s} {part.formula}"
        else:
            size = f"{part.samples:,} × " if part.samples else "part of a set, d = "
            yield f"  {key:22s} {size}{part.dim:,}"
        return
    paper = getattr(part, "paper", "")
    first = inspect.getdoc(part).splitlines()[0]  # type: ignore[union-attr]
    yield f"  {key:16s} {first}" + (f" [{paper}]" if paper and paper not in first else "")
    settings = [f"{f.name}{_default(f)}" for f in fields(part) if f.init]  # type: ignore[arg-type]
    if settings:
        yield f"  {'':16s} parameters: {', '.join(settings)}"


def _default(field: Any) -> str:
    return "" if field.default is MISSING else f" = {json.dumps(field.default)}"
