"""Generated samples beside real ones: python docs/generated_table.py > docs/generated.csv

It needs the sets rcv1_vw1000, rcv1_vw500.t and url_sub2000 in $MPI_COMPRESS_DATA; what is published is typed in, with its source.
"""

import csv
import sys

import numpy as np
import scipy.sparse as sp

from mpi_compress.problem.datasets.generators import generators
from mpi_compress.problem.datasets.known import KNOWN
from mpi_compress.problem.datasets.libsvm import read_blocks
from mpi_compress.problem.datasets.table import find_set

RANKS = (1, 11, 51, 101, 201, 501, 1001, 2001)
SETS = {"rcv1": ("rcv1_vw1000", "rcv1_vw500.t"), "url": ("url_sub2000",)}


def real(names):
    """The rows of some sets, as one matrix."""
    blocks = [sp.csr_matrix(a) for name in names for _, a, _ in read_blocks(find_set(name, "data"))]
    dim = max(a.shape[1] for a in blocks)
    return sp.vstack([sp.csr_matrix((a.data, a.indices, a.indptr), shape=(a.shape[0], dim)) for a in blocks], format="csr")


def generated(name, rows, **parameters):
    """As many rows of a generator at the real set's d."""
    return sp.vstack([a for a, _ in generators.build({"name": name, "samples": rows, **parameters}, "data").chunks()], format="csr")


def measured(a):
    """What the table says of a matrix, by the names of its rows."""
    rows, counts = a.shape[0], np.bincount(a.indices, minlength=a.shape[1])
    order, lengths = np.argsort(-counts, kind="stable"), np.diff(a.indptr)
    norms = np.sqrt(np.asarray(a.multiply(a).sum(axis=1))).ravel()
    found = {"samples": f"{rows}", "nonzeros a sample": f"{lengths.mean():.0f} ± {lengths.std():.0f}"}
    found |= {f"samples with the feature of rank {rank}": f"{100 * counts[order[rank - 1]] / rows:.3g} %" for rank in RANKS}
    for low, high in ((0, 100), (100, 400), (400, 1000)):
        some = (a[:, order[low:high]] > 0).astype(float)
        both = (some.T @ some).toarray()
        jaccard = both / (np.diag(both)[:, None] + np.diag(both) - both)
        np.fill_diagonal(jaccard, 0)
        partner = f"features of rank {low + 1} to {high} with a partner of Jaccard index over ½"
        found[partner] = f"{100 * np.mean(jaccard.max(axis=1) > 0.5):.0f} %"
    found["norms of samples, 1 % … 99 %"] = " … ".join(f"{q:.3g}" for q in np.percentile(norms, (1, 99)))
    found["entries of value 1"] = f"{100 * np.mean(a.data == 1):.0f} %"
    return found


def table(name):
    """The rows of one set: published, samples of it, generated."""
    rows = real(SETS[name])
    known = KNOWN[name]
    published = {"samples": f"{known.samples:,}", "nonzeros a sample": f"{known.nonzeros / known.samples:.0f}"}
    made = measured(generated(f"{name}-like", rows.shape[0]))
    for line, value in measured(rows).items():
        yield [name, line, published.get(line, ""), value, made[line]]


if __name__ == "__main__":
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["set", "", "published", "samples at hand", "generated"])
    out.writerows(row for name in SETS for row in table(name))
