"""`mpi-compress new [FOLDER]`: a job, a compressor and a README to begin with."""

from argparse import Namespace
from pathlib import Path

from mpi_compress.core.errors import UserError, writing

JOB = """\
title = "My first comparison"
plugins = ["mine"]                      # mine.py, beside this file

[data]
generator = "gspar"                     # or path = "my.libsvm.xz", or name = "a9a" after `mpi-compress data get a9a`
samples = 512
dim = 256

[objective]
loss = "logistic"                       # `mpi-compress list losses` names others
mu = "1e-3 L"

[workers]
count = 4

[stop]
rounds = 300

[tune]                                  # each run takes the step that reaches the target of [figure] with the fewest bits
parameter = "algorithm.step"
values = "2^-1..2^2 theory"             # times the step of the method's own theorem
to = "figure"

[figure]
y = "suboptimality"
to = { suboptimality = 1e-2 }

[[run]]
label = "gradient descent"
algorithm = { name = "gd" }

[[run]]
label = "top 10 %"
algorithm = { name = "ef" }             # error feedback: what is not sent now is sent later
up = { compressor = { name = "top-k", k = "10%" } }

[[run]]
label = "near-largest"
algorithm = { name = "ef" }
up = { compressor = { name = "near-largest", fraction = 0.3 } }
"""

PART = '''\
"""A compressor of your own: change it, and run the job again."""

import numpy as np

import mpi_compress as mc


@mc.compressors.register("near-largest")
class NearLargest(mc.Compressor):
    """All coordinates that reach a fraction of the largest magnitude."""

    fraction: float = 0.5

    def compress(self, v, t):  # v: (d,) float64; t.k the round, t.rng this worker's random numbers
        magnitude = np.abs(v)
        indices = np.flatnonzero(~(magnitude < self.fraction * magnitude.max())).astype(np.uint32)  # NaN, too
        return mc.Sparse(v.size, indices, v[indices])

    def delta(self, dim):
        return 1 / dim  # ‖v − C(v)‖² ≤ (1 − δ)‖v‖²: the largest coordinate is always sent
'''

README = """\
# A first comparison

    mpi-compress run job.toml                               # plays the runs; `mpiexec -n 5` in front plays them on ranks
    mpi-compress table job.toml --to suboptimality=0.01     # which method needs how many bits
    mpi-compress plot job.toml                              # the figure, results/job/job.png
    mpi-compress plan job.toml                              # what is done

job.toml describes the runs, mine.py has a compressor of your own. `mpi-compress list` names all parts that a job can use.
"""

FILES = {"job.toml": JOB, "mine.py": PART, "README.md": README}


def act(options: Namespace) -> int:
    folder = Path(options.folder)
    for name in FILES:
        if (folder / name).exists():
            raise UserError(f"{folder / name}: is there already; name another folder")
    for name, text in FILES.items():
        with writing(folder / name, "new"):
            (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)
    where = "" if folder == Path() else f"cd {folder} && "
    print(f"`{where}mpi-compress run job.toml` runs it; README.md says what else to type")
    return 0
