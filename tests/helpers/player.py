"""A program: plays plans of jobs one after the other on the ranks that it was started on, `player.py PLANS.json`.

One start of MPI serves many jobs. What became of each is written to PLANS.ended: the status of its command line, or how often each of
its runs was stopped.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.ending import RANK_VARIABLES
from mpi_compress.core.signals import Stopped

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
    ended = [play(plan) for plan in json.loads(file.read_text())]
    if os.environ.get("PMI_RANK", "0") == "0":
        file.with_suffix(".ended").write_text(json.dumps(ended))
