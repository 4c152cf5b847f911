"""Parsed rows to the file that runs read: labels mapped, rows scaled and assigned, block by block, never all in memory.

The file is HDF5 with contiguous arrays: labels (N,), and indptr (N+1,), indices (nnz,), values (nnz,), or values (N, d) where dense
is smaller. It depends only on the rows and their order.
"""

import errno
import json
import math
import mmap
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import scipy  # which loads sparse where it is first used
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.kernels import text as kernels
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.datasets.cache import make_folder, writing
from mpi_compress.problem.datasets.labels import Classes, Labels, classes_of
from mpi_compress.problem.datasets.table import Normalize
from mpi_compress.problem.partitions import Split
from mpi_compress.problem.rows import Integers


class ParsedRows(NamedTuple):
    """Parsed rows in CSR form."""

    labels: Vector  # (m,)
    indptr: Integers  # (m+1,)
    indices: Indices
    values: Vector
    dim: int  # the largest index + 1, which may be that of a 0 that was written out


@dataclass(frozen=True)
class Spool:
    """A folder of blocks, each in a file of its own."""

    folder: Path

    def make(self) -> None:
        with writing(self.folder.parent):
            make_folder(self.folder)

    def put(self, number: int, samples: Any, labels: Vector) -> None:
        """Keep a block, a CSR matrix or an array (m, d)."""
        if samples.shape[0] == 0:
            return
        matrix = scipy.sparse.csr_matrix(samples, dtype=np.float64)
        dim = int(matrix.indices.max(initial=-1)) + 1
        if not matrix.data.all():
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        matrix.sort_indices()
        rows = ParsedRows(
            labels.astype(np.float64, copy=False), matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32),
            matrix.data, dim,
        )  # fmt: skip
        with writing(self.folder.parent):
            np.savez(self.folder / f"{number:08d}.npz", **rows._asdict())

    def blocks(self) -> Iterator[tuple[int, ParsedRows]]:
        """The number of rows before each block, and its rows."""
        seen = 0
        for file in sorted(self.folder.glob("*.npz")):
            with np.load(file) as block:
                yield seen, (rows := ParsedRows(**block))
            seen += rows.labels.size

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


Place = tuple[int, tuple[int, ...], str]  # offset in the file, shape, type
DENSE_FROM = 1 / 3  # share of nonzeros from which on a dense layout is smaller and faster
_NO_RESERVE = 0x4000 if platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64") else 0  # MAP_NORESERVE


@dataclass(frozen=True)
class Recipe:
    """How parsed rows become the samples of a run."""

    title: str
    normalize: Normalize
    dtype: str
    dim: int | None  # as the job or the format states it; None: the largest index
    rows: int | None = None  # how many to take, from the first on; None: all
    split: Split = field(default_factory=Split)
    positive: list[float] | None = None
    labels: Labels = "sign"
    classes: Classes | None = None  # those of the training set, where this is a test set
    column_norms: Vector | None = None  # likewise
    sizes: Mapping[str, int] = field(default_factory=dict)  # that the format states


def assemble(spool: Spool, recipe: Recipe, file: Path) -> None:
    """Write the data file; UserError if there are no rows, no two classes, or values too large for the dtype."""
    labels, lengths, dim = _outline(spool, recipe)
    n = labels.size
    classes = recipe.classes or classes_of(labels, recipe.labels, recipe.positive, recipe.title)
    labels = classes.numbers(labels, recipe.title)
    order, cuts = recipe.split.deal(_split_by(spool, recipe, labels, dim))
    indptr = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.uint64)
    nonzeros = entries = int(indptr[-1])
    norms = recipe.column_norms
    if norms is None and recipe.normalize == "columns":
        norms = _column_norms(spool, n, dim)
    arrays: dict[str, Any] = {"labels": labels[order]}
    if nonzeros >= DENSE_FROM * n * dim:
        nonzeros = n * dim
        arrays["values"] = ((n, dim), recipe.dtype)
    else:
        arrays |= {"indptr": indptr, "indices": ((nonzeros,), "u4"), "values": ((nonzeros,), recipe.dtype)}
    places = _laid_out(file, arrays | {"column_norms": norms, "cuts": cuts})
    _place_rows(spool, recipe, norms, np.argsort(order), indptr[:-1].astype(np.int64), file, places)
    with h5py.File(file, "r+") as h5:
        h5.attrs.update(
            n_samples=n, dim=dim, nonzeros=nonzeros, entries=entries, normalize=recipe.normalize, plus=np.array(classes.plus),
            minus=np.array(classes.minus), classes=np.array(classes.each), sizes=json.dumps({**recipe.sizes}),
        )  # fmt: skip


def _outline(spool: Spool, recipe: Recipe) -> tuple[Vector, Integers, int]:
    """Labels (N,) and lengths (N,) of the rows that are taken, and d."""
    each = [(rows.labels, np.diff(rows.indptr), int(rows.dim)) for _, rows in spool.blocks()]
    if not each:
        raise UserError(f"data: {recipe.title} holds no samples")
    labels, lengths = (np.concatenate([of[i] for of in each])[: recipe.rows] for i in (0, 1))
    found = max(dim for *_, dim in each)
    dim = recipe.dim or found
    if dim == 0:
        raise UserError(f"data: {recipe.title} has no features")
    if found > dim:
        raise UserError(f"data.dim: {dim} was given, and {recipe.title} has {found} features; leave it out, or give at least that")
    return labels, lengths, dim


def _split_by(spool: Spool, recipe: Recipe, labels: Vector, dim: int) -> Vector:
    """What rows are assigned by (N,): their labels, or the values of a feature as they were parsed."""
    feature = recipe.split.partition.feature
    if feature is None:
        return labels
    if feature > dim:
        raise UserError(f"workers.partition: feature {feature} was asked for, and {recipe.title} has {dim}")
    values = np.zeros(labels.size)
    for seen, rows in spool.blocks():
        of_row = seen + np.repeat(np.arange(rows.labels.size), np.diff(rows.indptr))
        here = (rows.indices == feature - 1) & (of_row < labels.size)
        values[of_row[here]] = rows.values[here]
    return values


@np.errstate(over="ignore", invalid="ignore")
def _scaled(rows: ParsedRows, recipe: Recipe, column_norms: Any) -> NDArray:
    """The values of rows, with rows or columns divided by their Euclidean norms; zeros stay zero."""
    values = rows.values.copy()
    if recipe.normalize == "rows":
        kernels.unit_rows(rows.indptr, values)
    elif recipe.normalize == "columns":
        values /= np.where(column_norms > 0, column_norms, 1.0)[rows.indices]
    return values.astype(recipe.dtype)


@np.errstate(invalid="ignore")  # an infinite value is refused later
def _column_norms(spool: Spool, n: int, dim: int) -> Vector:
    """‖column‖ (d,) over the first n rows, without overflow."""

    def entries() -> Iterator[tuple[Indices, Vector]]:
        for seen, rows in spool.blocks():
            end = rows.indptr[max(0, min(rows.labels.size, n - seen))]
            yield rows.indices[:end], rows.values[:end]

    peaks, squares = np.zeros(dim), np.zeros(dim)
    for indices, values in entries():
        np.maximum.at(peaks, indices, np.abs(values))
    scale = np.where(peaks > 0, peaks, 1.0)
    for indices, values in entries():
        np.add.at(squares, indices, np.square(values / scale[indices]))
    return peaks * np.sqrt(squares)


def _laid_out(file: Path, arrays: Mapping[str, Any]) -> dict[str, Place]:
    """Make a file with these arrays: an array, or shape and type of one that is filled later. Returns where each of them lies."""
    places = {}
    with h5py.File(file, "w", alignment_threshold=1, alignment_interval=64) as h5:
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        for name, given in arrays.items():
            if given is not None:
                shape, dtype = (given.shape, given.dtype.str[1:]) if isinstance(given, np.ndarray) else given
                offset = h5.create_dataset(name, shape, dtype, dcpl=how).id.get_offset()
                places[name] = (-1 if offset is None else offset, shape, dtype)
    for name, place in places.items():
        if isinstance(arrays[name], np.ndarray):
            mapped(file, place)[:] = arrays[name]
    return places


def mapped(file: Path, place: Place, own: bool = False) -> NDArray:
    """An array in the file's own memory pages, which are given back with it; MemoryError if there is no room for them.
    `own`: what is written to it stays in this process, and it may be larger than the memory, since unwritten pages are dropped."""
    offset, shape, dtype = place
    if offset < 0:
        return np.empty(shape, dtype=dtype)
    size, before = math.prod(shape) * np.dtype(dtype).itemsize, offset % mmap.ALLOCATIONGRANULARITY
    how = mmap.MAP_PRIVATE | _NO_RESERVE if own else mmap.MAP_SHARED
    try:
        with file.open("rb" if own else "r+b") as opened:
            return np.ndarray(shape, dtype, mmap.mmap(opened.fileno(), before + size, how, offset=offset - before), before)
    except OSError as error:
        what = f"{size / 1e9:.3g} GB of {file} cannot be mapped"
        raise (MemoryError(f"{what}; `ulimit -v` says what is allowed") if error.errno == errno.ENOMEM else error) from None


def _place_rows(
    spool: Spool, recipe: Recipe, norms: Vector | None, position: Integers, starts: Integers, file: Path,
    places: dict[str, Place],
) -> None:  # fmt: skip
    """Write every block's rows where `position` (N,) says; `starts` (N,) are where sparse rows begin."""
    for seen, rows in spool.blocks():
        here = np.full(rows.labels.size, -1, dtype=np.int64)  # −1: not taken
        own = position[seen : seen + here.size]
        here[: own.size] = own
        values = _scaled(rows, recipe, norms)
        if not np.isfinite(values).all():
            largest = f"{np.abs(rows.values).max():g}"
            raise UserError(f"data: {recipe.title} has a value of magnitude {largest}, too large for {recipe.dtype}")
        out = mapped(file, places["values"])  # a block's pages are given back with the arrays mapped for it
        if "indices" in places:
            kernels.place_sparse(rows.indptr, rows.indices, values, here, starts, mapped(file, places["indices"]), out)
        else:
            kernels.place_dense(rows.indptr, rows.indices, values, here, out)
