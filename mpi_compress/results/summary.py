"""Whether a run ended above its start, and what its split gave each worker, as text."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpi_compress.core import tables
from mpi_compress.core.terminal import shortened
from mpi_compress.messages.batch import LENGTH_BYTES
from mpi_compress.results.reader import DOUBTS, Run
from mpi_compress.results.tuning import in_a_sentence

_WORKERS, _LABELS = 8, 10  # a table shows no more; a line sums up the other workers
_SILENT = 8 * LENGTH_BYTES  # bits that are counted in a round of a worker that says nothing
_LISTED = 40  # letters of the workers that a line names
_RISE = 1e-3  # of the loss, from which on it has risen
_ROUNDED = 1e-13  # of f*, by which a loss may be below it


def no_f_star(run: Run) -> str:
    """That f* of a result is not known, and why, where it says so."""
    return ": ".join(filter(None, ["f* is not known", str(run.attrs.get("f_star_source", ""))]))


def rise(runs: Sequence[Run]) -> str:
    """That complete runs end above their start, with the medians of those that do: "loss rose from 0.6931 to 520", "loss rose
    from 0.6931 to 15.5 in 1 of 5 seeds"; or ""."""
    ends = [run.trace["loss"][[0, -1]] for run in runs if run.rows and run.status == "complete"]
    above = [(first, last) for first, last in ends if last > first + _RISE * abs(first)]
    share = f" in {len(above)} of {len(ends)} seeds" if len(above) < len(ends) else ""
    return "loss rose from {:.4g} to {:.4g}".format(*np.median(above, axis=0)) + share if above else ""


def without_overhead(runs: Sequence[Run]) -> str:
    """That one coordinate was CAT's best budget in every round, since no cost model says what a message costs besides its bits; or
    ""."""
    job = runs[0].written
    planned = "cost" not in job and job.get("algorithm", {}).get("budget", "cat") == "cat"
    alone = planned and all(run.has("budget") and run.rows > 1 and bool(np.all(run.trace["budget"][1:] == 1)) for run in runs)
    return "T = 1 in every round, since no [cost] is given, and by bits alone the shortest message is the best one" if alone else ""


def doubts(runs: Sequence[Run]) -> str:
    """Where users' parts kept something in any of these runs, what they state wrongly, or an f* above a loss; or ""."""
    return next(iter(all_doubts(runs)), "")


def all_doubts(runs: Sequence[Run]) -> list[str]:
    """The same of each run, once."""
    return [*dict.fromkeys(filter(None, [each for run in runs for each in (run.attrs.get(DOUBTS), _f_star_above(run))]))]


def _f_star_above(run: Run) -> str:
    """That the job gives an f* that is above a loss of the run; or ""."""
    if run.attrs.get("f_star_source") != "given" or not run.rows:
        return ""
    given = run.attrs["f_star"]
    above = np.nanmin(run.trace["loss"]) < given - _ROUNDED * abs(given)
    return f"f* = {given:.10g}, as the job gives it, is above a loss that was reached: suboptimality is not right" if above else ""


def never_taken(runs: Sequence[Run]) -> str:
    """That by [time] wait the master took no message of some workers after the first record, before which methods may need all; or
    ""."""
    timed = [run for run in runs if run.has("model_fixed") and run.rows > 2 and partition_of(run) != "everyone"]
    sent = (np.diff(run.workers["wire_bits_up"][[1, -1]] - _SILENT * run.trace["round"][[1, -1], None], axis=0)[0] for run in timed)
    never = [str(i) for i, of_seeds in enumerate(zip(*sent, strict=True)) if not any(of_seeds)]
    who = f"worker{'s' * (len(never) > 1)} {shortened(', '.join(never), _LISTED)}"
    said = f"after its first rounds the master never took {who}, and the loss counts their rows, which no later update saw"
    return said if never else ""


WARNINGS = rise, doubts, never_taken, without_overhead, in_a_sentence
"""What is to be said of seeds of a method, each by a function that returns "" where there is nothing."""


def partition_of(run: Run) -> str:
    """The partition as the job has it, such as "dirichlet, alpha = 0.3"."""
    given: Any = run.written.get("workers", {}).get("partition", "contiguous")
    if isinstance(given, str):
        return given
    settings = {key: value for key, value in given.items() if key != "name"}
    if isinstance(sizes := settings.get("sizes"), list) and len(sizes) > _WORKERS:
        settings["sizes"] = f"{len(sizes)} shares"
    return ", ".join([str(given.get("name")), *(f"{key} = {value}" for key, value in settings.items())])


def split(run: Run) -> Iterator[str]:
    """A table of rows and label counts, a line a worker; nothing for one worker, or for a result that does not say."""
    rows = run.split.get("rows")
    if rows is None or rows.size < 2:
        return
    labels, counts = run.split.get("labels", rows[:0]), run.split.get("counts", rows[:, None])
    yield f"  partition {partition_of(run)}: {_from_to(rows)} samples a worker" + (", of each label:" if labels.size else "")
    lines = [["worker", "samples"], *([str(i), str(m)] for i, m in enumerate(rows))]
    if labels.size:
        others = labels.size > _LABELS
        lines[0] += [*(f"{label:g}" for label in labels[:_LABELS]), *["others"] * others]
        for line, own in zip(lines[1:], counts, strict=True):
            line += [*map(str, own[:_LABELS]), *[str(own[_LABELS:].sum())] * others]
    yield from tables.plain(lines[0], lines[1 : _WORKERS + 1], "r", indent=" " * 12)
    if len(rows) > _WORKERS:
        yield f"            … and {len(rows) - _WORKERS} workers more, of {_from_to(rows[_WORKERS:])} samples"


def _from_to(rows: Any) -> str:
    low, high = min(rows), max(rows)
    return f"{low}" if low == high else f"{low} to {high}"
