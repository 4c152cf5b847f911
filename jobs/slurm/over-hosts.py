"""A job's runs on several computers without a queue, each run in one process: results are those of `mpi-compress run JOB`.

    mpiexec -hosts a,b,c -n 25 python -m mpi4py.futures over-hosts.py JOB.toml [RESULTS]

Rank 0 hands the runs out, and the others take the next one when they are free. A run's own process writes its result, one file a
run, in a folder that all computers see; a lock keeps any other process from it. The same line goes on with what is left.
"""

import sys
from functools import partial

from mpi4py.futures import MPIPoolExecutor

import mpi_compress as mc


def one(job: str, out: str, index: int) -> str:
    (run,) = mc.run(mc.load_job(job, index=index), out=out)
    return f"{run.label}: {run.status}"


if __name__ == "__main__":
    job, out = [*sys.argv[1:], "results"][:2]
    with MPIPoolExecutor() as pool:
        for said in pool.map(partial(one, job, out), range(len(mc.load_job(job).runs)), unordered=True):
            print(said, flush=True)
