"""A child process of a verification: it executes the first rounds of runs by the ordinary engine, and notes hashes of what it sees.

    python -m mpi_compress.engine.recording FOLDER

`FOLDER/play.json` says what to run and how. Each rank appends to `FOLDER/<rank>.jsonl` a list for every message and every state:
the run, the round, a stage of `guard.of_algorithms.STAGES`, whose it is, and a hash; and what parts of one's own kept in the run.
"""

import json
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.algorithms.memories import one
from mpi_compress.core.ending import run_to_the_end
from mpi_compress.core.errors import writing
from mpi_compress.core.signals import Interrupts, Stopped
from mpi_compress.engine.keeper import Keeper
from mpi_compress.engine.request import Request
from mpi_compress.engine.runner import run_as
from mpi_compress.exchange.ranks import Ranks, launched
from mpi_compress.guard.of_algorithms import FAILED, KEPT
from mpi_compress.job.loading import parse_job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import Ending, Stop
from mpi_compress.messages.batch import Batch
from mpi_compress.preparing.problems import without_optimum
from mpi_compress.saving.checkpoint import States
from mpi_compress.saving.frames import dump


class RecordingKeeper(Keeper):
    """Notes messages and states in place of saving them, and saves once where it is told to stop.

    Args:
        note: takes the round, the stage, whose it is, and what is hashed.
        stop_at: the round before which the run is saved and ends, unless it goes on from there.
    """

    def __init__(self, *arguments: Any, note: Any, stop_at: int | None):
        super().__init__(*arguments)
        self._note, self._stop_at, self._round = note, stop_at, 0
        exchange: Any = self.exchange  # whose methods are replaced
        gather, broadcast, scatter = exchange.gather, exchange.broadcast, exchange.scatter
        exchange.gather = lambda ups: gather(self._noted("message", ups))
        exchange.broadcast = lambda down: broadcast(self._answered(down))
        exchange.scatter = lambda downs: self._noted("answer", scatter(downs))

    def _noted(self, stage: str, batch: Batch) -> Batch:
        for row, i in enumerate(self.exchange.mine):
            self._note(self._round, stage, i, batch.part(row, row + 1).raw)
        return batch

    def _answered(self, down: Batch | None) -> Batch | None:
        if down is not None and self.exchange.is_root:
            self._note(self._round, "answer", 0, down.raw)
        return down

    def look(self, states: States) -> Ending:
        before, self._round = states.k - 1, states.k
        for row, i in enumerate(self.exchange.mine):
            self._note(before, "worker", i, _bytes((one(states.workers, row), states.up[row])))
        if self.exchange.is_root:
            self._note(before, "master", 0, _bytes((states.master, states.down)))
        self._note(before, "node", 0, _bytes(states.node))
        if states.k == self._stop_at and self.saved.header is None:
            self._save(states)
            self.exchange.barrier()
            self.reason = "the verification"
            return Ending.STOPPED
        return Ending.GO_ON


def _bytes(state: Any) -> Any:
    try:
        return dump(state)
    except TypeError:  # no checkpoint could hold it, which the run itself says
        return repr(state).encode()


def shortened(spec: RunSpec, rounds: int) -> RunSpec:
    """A run of a few rounds, without what these do not need."""
    most = rounds if spec.stop.rounds is None else min(rounds, spec.stop.rounds)
    return replace(without_optimum(spec), stop=Stop(rounds=most), tune=None, log=replace(spec.log, every=most))


def _play(folder: Path, plan: dict[str, Any], ranks: Ranks, notes: IO[str]) -> None:
    for number, text in enumerate(plan["jobs"]):

        def note(k: int, stage: str, who: int, held: Any, number: int = number) -> None:
            notes.write(json.dumps([number, k, stage, who, blake2b(bytes(held), digest_size=12).hexdigest()]) + "\n")

        keeper = partial(RecordingKeeper, note=note, stop_at=plan["stop_at"])
        try:
            job = parse_job(tomllib.loads(text), "verified", Path(plan["folder"]), {})
            short = replace(job, runs=[shortened(spec, plan["rounds"]) for spec in job.runs])
            out = folder / "out" / str(number)
            request = Request(out, ranks, Interrupts(), quiet=True, keeper=keeper)
            for run in run_as(short, request):
                if run.status == "failed":
                    raise RuntimeError(run.attrs["reason"])
            if request.kept:
                said = "; ".join(map(". ".join, request.kept.items()))
                notes.write(json.dumps([number, FAILED[0], "error", KEPT[2], said]) + "\n")
        except Stopped:
            pass
        except Exception as error:
            notes.write(json.dumps([number, FAILED[0], "error", FAILED[2], " ".join(str(error).split())]) + "\n")
            if ranks.size > 1:  # the others would wait
                raise
        finally:
            notes.flush()


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    plan = json.loads((folder / "play.json").read_text())
    if plan["backwards"]:
        hosted: Any = HostedWorkers
        hosted.parts = lambda self, awake: (slice(i, i + 1) for i in reversed(awake.tolist()))
    ranks = launched() if plan["ranks"] > 1 else Ranks()
    file = folder / f"{ranks.rank}.jsonl"
    with writing(file, "--verify"), file.open("a", encoding="utf-8") as notes:
        _play(folder, plan, ranks, notes)
    return 0


if __name__ == "__main__":
    sys.exit(run_to_the_end(lambda: main(sys.argv[1:])))
