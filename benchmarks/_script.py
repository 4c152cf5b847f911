"""What a user would write with mpi4py and SciPy: gd, error feedback with top-2, or CAT with top-k, on 20 workers.

mpiexec -n 2 python _script.py FOLDER gd|ef|cat ROUNDS 1|0     1: f and ‖∇f‖ of every round; FOLDER has A.npz and y.npy
"""

import sys

import numpy as np
from mpi4py import MPI
from scipy import sparse
from scipy.special import expit

folder, method, rounds, evaluated = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1"
comm, n, k = MPI.COMM_WORLD, 20, 2
A, y = sparse.load_npz(f"{folder}/A.npz"), np.load(f"{folder}/y.npy")
N, d = A.shape
L = np.linalg.eigvalsh((A.T @ A).toarray())[-1] / (4 * N)
mu = 1e-3 * L
step = (0.25 if method == "ef" else 1) / (L + mu)
mine = range(comm.rank * n // comm.size, (comm.rank + 1) * n // comm.size)
shards = [sparse.diags(-y[i * N // n : (i + 1) * N // n]) @ A[i * N // n : (i + 1) * N // n] for i in mine]
shards = [(B, B.T.tocsr()) for B in shards]
packets = 64 + 128 * np.ceil(np.arange(1, d + 1) * (64 + 7) / (8 * 128))  # bytes of a message of T coordinates, in packets of 128


def top(v, size):
    kept = np.argpartition(np.abs(v), d - size)[d - size :] if size < d else np.arange(d)
    return kept.astype(np.uint32), v[kept]


def cat(g):
    squares = np.sort(g * g)[::-1]
    return top(step * g, 1 + int(np.argmax(np.cumsum(squares) / packets)))


x, errors, trace, bits = np.zeros(d), np.zeros((n, d)), [], 0
for _ in range(rounds + 1):
    sums, indices, values = np.zeros(d + 1), [], []
    for i, (B, Bt) in zip(mine, shards, strict=True):
        margins = B @ x
        g = Bt @ expit(margins) * (n / N) + mu * x
        if evaluated:
            sums[:d] += g
            sums[d] += np.logaddexp(0, margins).sum() * (n / N) + 0.5 * mu * (x @ x)
        if method == "ef":
            errors[i] += step * g
            kept, sent = top(errors[i], k)
            errors[i, kept] = 0.0
        else:
            kept, sent = cat(g) if method == "cat" else (np.arange(d, dtype=np.uint32), step * g)
        indices.append(kept)
        values.append(sent)
    if evaluated:
        total = np.empty(d + 1)
        comm.Reduce(sums, total)
        if comm.rank == 0:
            trace.append((total[d] / n, np.linalg.norm(total[:d]) / n, bits))
    ups = comm.gather((np.concatenate(indices), np.concatenate(values)))
    if comm.rank == 0:
        for kept, sent in ups or ():
            np.subtract.at(x, kept, sent / n)
            bits += 96 * kept.size
    comm.Bcast(x)
if comm.rank == 0:
    np.savetxt(f"{folder}/trace.csv", np.array(trace))
