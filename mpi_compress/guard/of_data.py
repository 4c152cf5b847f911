"""Partitions, metrics, generators, formats and stops against what they state, and what a run asks of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError
from mpi_compress.guard.findings import Finding, Findings, NeedsAJob, either, seeded
from mpi_compress.job.stops.base import StopRule, why_it_ends
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.formats import Format
from mpi_compress.problem.datasets.generators import Generator
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.losses import losses
from mpi_compress.problem.metrics import Metric, ProblemView
from mpi_compress.problem.partitions import Partition, Split, sizes_of
from mpi_compress.problem.rows import Rows
from mpi_compress.results.columns import COLUMNS, OF_CLOCK

_ROWS, _DIM = 120, 6  # of made-up data
_WORKERS = (1, 3, 7)
_ENTRIES = 4_000_000  # of a generator, from which on no further chunk is looked at
_PARTS = 3  # of a file that is read in shares


def partition(part: Partition) -> Findings:
    """Every row goes to one worker, and the seed decides which, or nothing does where it says so."""
    rng = seeded()
    two, four = rng.choice([-1.0, 1.0], _ROWS), rng.integers(0, 4, _ROWS) * 1.0
    kinds = {"two classes": two, "four classes": four, "real labels": rng.random(_ROWS)}
    tried, refused = [], ""
    for kind, y in kinds.items():
        y.flags.writeable = False
        for n in _WORKERS:
            try:
                sizes = sizes_of(part, n)
                once, again, other = (repr([np.asarray(of).tolist() for of in Split(part, n, seed).deal(y)]) for seed in (1, 1, 2))
            except ValueError as error:
                if isinstance(error, UserError) and not isinstance(error.__cause__, ValueError):
                    yield Finding("rows", False, str(error))
                refused = refused or str(error)
                continue
            tried.append(f"n = {n} and {kind}")
            if once != again:
                yield Finding("seed", False, f"the same seed assigns other samples the second time, for {tried[-1]}")
            if once != other and not (part.seeded or isinstance(sizes, float | int)):
                yield Finding("seed", False, f"seeded = False is stated, and another seed assigns other samples, for {tried[-1]}")
    text = f"each goes to one worker, for {', '.join(tried)}" if tried else f"none are assigned: {refused}"
    yield Finding("rows", bool(tried), text)


def made_up_view() -> ProblemView:
    """A logistic regression on made-up samples, whose metrics can be asked."""
    rng = seeded()
    data = DataSet(Path("made-up"), "made-up samples", _ROWS, _DIM, _ROWS * _DIM)
    view = ProblemView(data, losses["logistic"](), 0.1, None, rng.standard_normal(_DIM), 0.5)
    vars(view)["rows"] = Rows((rng.standard_normal((_ROWS, _DIM)),), rng.choice([-1.0, 1.0], _ROWS), _DIM)
    return view


def value(metric: Metric, view: ProblemView) -> Findings:
    """A finite number of the point and the problem alone, which changes neither."""
    rng, dim = seeded(), view.rows.dim
    before = _content(view.rows)
    points = [np.zeros(dim), *(rng.standard_normal(dim) * scale for scale in (1e-3, 1.0, 30.0))]
    try:
        values = [[arrays.number(metric.value(arrays.read_only(x), view), "the value") for x in points] for _ in range(2)]
    except ValueError as error:
        raise NeedsAJob(f"{metric.name}: {error}") from None
    finite = bool(np.isfinite(values).all())
    yield Finding("value", finite, f"at {len(points)} points: {', '.join(f'{value:.6g}' for value in values[0])}")
    other = f"give {values[1]} when asked again at these points"
    yield either("calls", values[0] == values[1], "give the same when asked again", other)
    yield either("arguments", _content(view.rows) == before, "are left as they are", "the problem's samples are changed")


def generator(made: Generator) -> Findings:
    """The same rows each time, finite, and as many as it says."""
    once, again = _rows_of(_first_chunks(made)), _rows_of(_first_chunks(made))
    yield _same("calls", once, again, "give the same samples when asked again", "give other samples when asked again")
    yield _finite(once)
    if once[0].nnz < _ENTRIES and (size := made.size()) is not None:
        yield Finding("size", once[0].shape == size[:2], f"{size[0]} rows of {size[1]} are stated, and {once[0].shape} are made")


def _first_chunks(generator: Generator) -> Iterator[tuple[int, Any, Vector]]:
    """The chunks, as far as they have so many entries in all."""
    entries = 0
    for i, (samples, labels) in enumerate(generator.chunks()):
        yield i, samples, labels
        entries += samples.nnz if scipy.sparse.issparse(samples) else samples.size
        if entries >= _ENTRIES:
            return


def format_of_files(how: Format, file: tuple[Path, int | None]) -> Findings:
    """The rows of a file of d columns, if they are known: the same each time, and in shares those of the whole."""
    path, dim = file
    whole, again = (_rows_of(how.read(path, dim, 0, 1).blocks) for _ in range(2))
    yield _same("calls", whole, again, "read the same samples again", "read other samples the second time")
    yield _finite(whole)
    if how.in_shares:
        shares = (block for i in range(_PARTS) for block in how.read(path, dim, i, _PARTS).blocks)
        text = f"{_PARTS} shares, each block in the place of its number,"
        yield _same("shares", whole, _rows_of(shares), f"{text} are the whole", f"{text} are other samples than the whole")


def _rows_of(blocks: Any) -> tuple[Any, Vector]:
    """All samples (N, d), sparse, and labels (N,) of numbered blocks."""
    in_order = sorted(blocks, key=lambda block: block[0])
    samples = [scipy.sparse.csr_matrix(some) for _, some, _ in in_order]
    width = max(some.shape[1] for some in samples)
    for some in samples:
        some.resize(some.shape[0], width)
    return scipy.sparse.vstack(samples, "csr"), np.concatenate([labels for *_, labels in in_order])


def _same(what: str, one: Any, other: Any, yes: str, no: str) -> Finding:
    same = one[0].shape == other[0].shape and (one[0] != other[0]).nnz == 0 and np.array_equal(one[1], other[1])
    return either(what, same, yes, no)


def _finite(rows: tuple[Any, Vector]) -> Finding:
    samples, labels = rows
    right = bool(np.isfinite(samples.data).all() and np.isfinite(labels).all()) and samples.shape[0] == labels.size
    return Finding("rows", right, f"{samples.shape} with {labels.shape} labels, {'all' if right else 'not all'} finite")


def _content(rows: Rows) -> Sequence[str]:
    return [blake2b(array.tobytes()).hexdigest() for array in (*rows.matrix, rows.labels)]


_LOGGED = 60  # of a made-up run
_SHAPES = {"falls": -0.2, "stalls": 0.0, "rises": 0.2}  # the logarithm of what a row's loss is over that of the row before

Row = Mapping[str, float]
Memories = dict[str, dict[str, float]]


def answers(rule: StopRule) -> Findings:
    """The same answers when asked again, and where a run goes on from a checkpoint."""
    ended, again, resumed = [], True, True
    for shape, rows in _made_up_runs():
        whole = _asked(rule, rows)
        again &= _asked(rule, rows) == whole
        resumed &= all(_asked(rule, rows, at) == whole for at in (1, _LOGGED // 3, _LOGGED - 1))
        ended.append(f"one that {shape} {f'ends with record {whole[0]}' if whole[0] is not None else 'goes on'}")
    yield Finding("answers", True, f"of {_LOGGED} records of three runs: {', '.join(ended)}")
    yield either("calls", again, "give the same when asked again", "give something else when asked again")
    why = "what a stop knows of earlier records has to be in memory"
    same = "a run that goes on from a checkpoint ends with the same record"
    yield either("checkpoints", resumed, same, f"a run that goes on ends elsewhere, or notes something else: {why}")


def _made_up_runs() -> Iterator[tuple[str, Sequence[Row]]]:
    """Rows with all columns that a trace can have: counts rise, all others move as the loss does, and f* is not known."""
    rng, columns = seeded(), [c.name for c in COLUMNS if c.table == "trace"]
    counts = [c.name for c in COLUMNS if c.since in ("counter", "convention", *OF_CLOCK)]
    for shape, pace in _SHAPES.items():
        loss = np.exp(np.cumsum(pace * (1 + rng.random(_LOGGED))) + 0.01 * rng.standard_normal(_LOGGED)).tolist()
        rows = [dict.fromkeys(columns, loss[k]) | dict.fromkeys(counts, 1000.0 * k) for k in range(_LOGGED)]
        yield shape, [{**row, "round": float(k), "loss": loss[k], "suboptimality": float("nan")} for k, row in enumerate(rows)]


def _asked(rule: StopRule, rows: Sequence[Row], saved_at: int = 0) -> tuple[int | None, str, Memories]:
    """The row that ends a run, why, and what the rule remembers then; another process sees the rows from `saved_at` on: a copy of
    the rule, and its memory as it was saved."""
    asked, memories = (deepcopy(rule) if saved_at else rule), Memories()
    for k, row in enumerate(rows):
        if saved_at and k == saved_at:
            asked, memories = deepcopy(rule), json.loads(json.dumps(memories))
        if why := why_it_ends((asked,), row, memories):
            return k, why, memories
    return None, "", memories
