"""A program: plays plans of jobs one after the other on the ranks that it was started on, `player.py PLANS.json`.

One start of MPI serves many jobs. What became of each is written to PLANS.ended: the status of its command line, or how often each of
its runs was stopped. In one process every state that a run passes through is saved and read: a run can be stopped in any round.
"""

import json
import os
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import mpi_compress as mc
from mpi_compress.algorithms.memories import one
from mpi_compress.cli.main import main
from mpi_compress.core.ending import RANK_VARIABLES
from mpi_compress.core.signals import Stopped
from mpi_compress.engine.keeper import Keeper
from mpi_compress.saving.checkpoint import OfWorker, States
from mpi_compress.saving.frames import dump

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.running import After


def stops(job: mc.Job, comm: Any, out: str, after: int, until_done: bool) -> int:
    """How often a run was stopped, each time when it had asked `after` times; once if not `until_done`."""
    count = 0
    while True:
        try:
            mc.run(job, comm=comm, out=out, interrupts=After(after))
        except Stopped:
            count += 1
            if until_done:
                continue
        return count


def read_all_states() -> None:
    """Between two rounds, what would be saved goes with the states that the run began with."""
    restore, look = Keeper.restore, Keeper.look
    begun: dict[Keeper, States] = {}

    def restoring(keeper: Keeper, first: States) -> States:
        begun[keeper] = deepcopy(first)
        return restore(keeper, first)

    def looking(keeper: Keeper, now: States) -> Any:
        first, read = begun[keeper], keeper.saved.read
        for name in ("node", "master", "down", "queued"):
            a, b = getattr(first, name), getattr(now, name)
            read(dump(b), a)
        for i in range(len(now.up)):
            read(dump(OfWorker(one(now.workers, i), now.up[i])), OfWorker(one(first.workers, i), first.up[i]))
        return look(keeper, now)

    Keeper.restore, Keeper.look = restoring, looking


def play(plan: dict[str, Any]) -> dict[str, int | list[int]]:
    """What became of each job."""
    out, settings, after = plan["out"], plan["settings"], plan["stop_after"]
    if after is None:
        options = [part for key, value in settings.items() for part in ("--set", f"{key}={json.dumps(value)}")]
        return {job: main(["run", job, "--out", out, "--quiet", *options]) for job in plan["jobs"]}
    comm = None
    if any(variable in os.environ for variable in RANK_VARIABLES):
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    ended: dict[str, int | list[int]] = {}
    for file in plan["jobs"]:
        job = mc.load_job(file, settings)
        ended[file] = [stops(job.only(index=i), comm, out, after, plan["until_done"]) for i in range(len(job.runs))]
    return ended


if __name__ == "__main__":
    file = Path(sys.argv[1])
    if not any(variable in os.environ for variable in RANK_VARIABLES):
        read_all_states()
    ended = [play(plan) for plan in json.loads(file.read_text())]
    if os.environ.get("PMI_RANK", "0") == "0":
        file.with_suffix(".ended").write_text(json.dumps(ended))
