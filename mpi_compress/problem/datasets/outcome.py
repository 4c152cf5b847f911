"""What a split gave each worker, for results."""

import itertools
from collections.abc import Mapping
from functools import lru_cache

import h5py
import numpy as np
from numpy.typing import NDArray

from mpi_compress.problem.datasets.store import DataSet

_MOST_LABELS = 1000


@lru_cache(maxsize=8)
def outcome(data: DataSet, n: int) -> Mapping[str, NDArray]:
    """The `rows` (n,) of each worker; and, unless labels take too many values, these as `labels` (K,) and `counts` (n, K) of them.

    Labels of classes are those of the file; those of two classes are −1 and +1.
    """
    cuts = data.cuts(n)
    found = []
    with h5py.File(data.file, "r", locking=False) as h5:
        for start, stop in itertools.pairwise(cuts):
            found.append(np.unique(h5["labels"][start:stop], return_counts=True))
    rows = {"rows": np.diff(cuts)}
    labels = np.unique(np.concatenate([values for values, _ in found]))
    if labels.size > max(2, min(_MOST_LABELS, data.n_samples // 2)):
        return rows
    counts = np.zeros((n, labels.size), dtype=np.int64)
    for own, (values, times) in zip(counts, found, strict=True):
        own[np.searchsorted(labels, values)] = times
    each = data.treatment()[0].each
    return {**rows, "labels": np.array(each)[labels.astype(np.int64)] if each else labels, "counts": counts}
