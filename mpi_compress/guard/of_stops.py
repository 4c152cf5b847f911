"""Stops of one's own against what a run asks of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy

import numpy as np

from mpi_compress.guard.findings import SEED, Finding
from mpi_compress.job.stops.base import StopRule, why_it_ends
from mpi_compress.results.columns import COLUMNS

_ROWS = 60  # of a made-up run
_SHAPES = {"falls": -0.2, "stalls": 0.0, "rises": 0.2}  # the logarithm of what a row's loss is over that of the row before

Row = Mapping[str, float]
Memories = dict[str, dict[str, float]]


def of_stop(rule: StopRule) -> Iterator[Finding]:
    """The same answers when asked again, and where a run goes on from a checkpoint."""
    ended, again, resumed = [], True, True
    for shape, rows in _made_up_runs():
        whole = _asked(rule, rows, {})
        again &= _asked(rule, rows, {}) == whole
        resumed &= all(_from_a_checkpoint(rule, rows, at) == whole for at in (1, _ROWS // 3, _ROWS - 1))
        ended.append(f"one that {shape} {f'ends with row {whole[0]}' if whole[0] is not None else 'goes on'}")
    yield Finding("answers", True, f"of {_ROWS} rows of three runs: {', '.join(ended)}")
    yield Finding("calls", again, "give the same when asked again" if again else "give something else when asked again")
    why = "what a stop knows of earlier rows has to be in memory"
    same = "a run that goes on from a checkpoint ends with the same row"
    yield Finding("checkpoints", resumed, same if resumed else f"a run that goes on ends elsewhere, or notes something else: {why}")


def _made_up_runs() -> Iterator[tuple[str, Sequence[Row]]]:
    """Rows with all columns that a trace can have: counts rise, all others move as the loss does, and f* is not known."""
    rng = np.random.default_rng(SEED)
    for shape, pace in _SHAPES.items():
        loss = np.exp(np.cumsum(pace * (1 + rng.random(_ROWS))) + 0.01 * rng.standard_normal(_ROWS))
        yield shape, [_row(k, float(loss[k])) for k in range(_ROWS)]


def _row(k: int, loss: float) -> Row:
    counts = {c.name: 1000.0 * k for c in COLUMNS if c.since in ("counter", "convention", "model")}
    others = {c.name: loss for c in COLUMNS if c.table == "trace" and c.name not in counts}
    return {**others, **counts, "round": float(k), "loss": loss, "suboptimality": float("nan")}


def _asked(rule: StopRule, rows: Sequence[Row], memories: Memories, first: int = 0) -> tuple[int | None, str, Memories]:
    """The row that ends a run, why, and what the rule remembers then; it is asked from row `first` on."""
    for k in range(first, len(rows)):
        if why := why_it_ends((rule,), rows[k], memories):
            return k, why, memories
    return None, "", memories


def _from_a_checkpoint(rule: StopRule, rows: Sequence[Row], at: int) -> tuple[int | None, str, Memories]:
    """`_asked` where the rows from `at` on are seen by another process: a copy of the rule, and its memory as it was saved."""
    fresh, memories = deepcopy(rule), Memories()
    begun = _asked(deepcopy(rule), rows[:at], memories)
    return begun if begun[0] is not None else _asked(fresh, rows, json.loads(json.dumps(memories)), at)
