"""What is in a file of LIBSVM text."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.known import KNOWN
from mpi_compress.problem.datasets.table import find_set


@dataclass(frozen=True, eq=False)
class Contents:
    """Of n samples. `published` says how they agree with the published set of the file's name, "" where there is none."""

    lengths: NDArray[np.int32]  # (n,) nonzeros of each row
    norms: NDArray[np.float64]  # (n,) of each row
    labels: dict[float, int]  # how many samples have each
    features: int  # the largest index; 0: there are no nonzeros
    range: tuple[float, float]  # of the values
    published: str


def find_file(given: str) -> Path:
    """A file by its path, or a set by its name.

    Raises:
        UserError: there is none, or it is no plain file.
    """
    path = Path(given)
    if path.exists():
        if not path.is_file():
            raise UserError(f"{path}: is {'a folder' if path.is_dir() else 'no plain file'}; a file of LIBSVM text is wanted")
        return path
    if path.suffix in libsvm.SUFFIXES[1:] or len(path.parts) > 1:
        raise UserError(f"{path}: there is no such file")
    return find_set(given, "data")


def contents_of(file: Path) -> Contents:
    """Read a file in blocks.

    Raises:
        UserError: it holds no samples, or is no LIBSVM text.
    """
    labels: dict[float, int] = {}
    lengths, norms, features, low, high = [], [], 0, np.inf, -np.inf
    for _, a, of_rows in libsvm.read_blocks(file):
        for label, count in zip(*np.unique(of_rows, return_counts=True), strict=True):
            labels[float(label)] = labels.get(float(label), 0) + int(count)
        lengths.append(np.diff(a.indptr))
        norms.append(np.sqrt(np.asarray(a.multiply(a).sum(axis=1)).ravel()))
        if a.nnz:
            features = max(features, int(a.indices.max()) + 1)
            low, high = min(low, a.data.min()), max(high, a.data.max())
    if not labels:
        raise UserError(f"{file}: holds no samples")
    length = np.concatenate(lengths)
    name = file.name.removesuffix(file.suffix) if file.suffix in libsvm.SUFFIXES else file.name
    published = KNOWN[name].mismatch(length.size, features) or "as published" if name in KNOWN else ""
    return Contents(length, np.concatenate(norms), labels, features, (low, high), published)
