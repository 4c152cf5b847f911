"""Parsed rows to the file that runs read: labels mapped, rows scaled and dealt out, block by block, never all in memory.

The file is HDF5 with contiguous arrays: labels (N,), and indptr (N+1,), indices (nnz,), values (nnz,), or values (N, d) where dense
is smaller. It depends on the rows and their order alone, and carries a checksum.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.kernels import convert as kernels
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.labels import Classes, Partition, dealt, two_classes
from mpi_compress.problem.datasets.spool import Rows, Spool

Place = tuple[int, tuple[int, ...], str]  # offset in the file, shape, type
DENSE_FROM = 1 / 3  # share of nonzeros from which on a dense layout is smaller and faster
_BYTES_AT_ONCE = 2**24


@dataclass(frozen=True)
class Recipe:
    """What is made of parsed rows."""

    title: str
    normalize: Literal["rows", "columns", "none"]
    dtype: str
    dim: int | None  # None: the largest index
    rows: int | None = None  # None: all
    partition: Partition = "contiguous"
    seed: int = 0
    positive: list[float] | None = None
    real_labels: bool = False
    classes: Classes | None = None  # of the training set, where this is a test set
    column_norms: Vector | None = None  # likewise


def assemble(spool: Spool, recipe: Recipe, file: Path) -> None:
    """Write the data file.

    Raises:
        UserError: no rows, labels that are no two classes, or values too large for the dtype.
    """
    labels, lengths, found = spool.outline()
    if labels.size == 0:
        raise UserError(f"data: {recipe.title} holds no samples")
    labels, lengths = labels[: recipe.rows], lengths[: recipe.rows]
    n, dim = labels.size, recipe.dim or found
    if dim == 0:
        raise UserError(f"data: {recipe.title} has no features")
    if found > dim:
        raise UserError(f"data.dim: {dim} was given, and {recipe.title} has {found} features; leave it out, or give at least that")
    classes = recipe.classes
    if classes is None:
        classes = Classes() if recipe.real_labels else two_classes(labels, recipe.positive, recipe.title)
    labels = classes.signs(labels, recipe.title)
    order = dealt(labels, recipe.partition, recipe.seed)
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    indptr = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.uint64)
    dense = int(indptr[-1]) >= DENSE_FROM * n * dim
    scale = recipe.column_norms
    if scale is None and recipe.normalize == "columns":
        scale = _column_norms(spool, n, dim)
    arrays: dict[str, Any] = {"labels": ((n,), "f8")}
    if dense:
        arrays["values"] = ((n, dim), recipe.dtype)
    else:
        arrays |= {"indptr": ((n + 1,), "u8"), "indices": ((int(indptr[-1]),), "u4"), "values": ((int(indptr[-1]),), recipe.dtype)}
    if scale is not None:
        arrays["column_norms"] = ((dim,), "f8")
    places = _laid_out(file, arrays)
    _mapped(file, places["labels"])[:] = labels[order]
    if not dense:
        _mapped(file, places["indptr"])[:] = indptr
    if scale is not None:
        _mapped(file, places["column_norms"])[:] = scale
    _place_rows(spool, recipe, scale, position, indptr[:-1].astype(np.int64), file, places)
    with h5py.File(file, "r+") as h5:
        h5.attrs.update(
            n_samples=n, dim=dim, nonzeros=n * dim if dense else int(indptr[-1]), normalize=recipe.normalize,
            plus=np.array(classes.plus), minus=np.array(classes.minus), checksum=checksum(h5),
        )  # fmt: skip


def scaled(rows: Rows, how: str, column_norms: Vector | None) -> NDArray[np.float64]:
    """The rows' values with rows, or columns, divided by their Euclidean norms; what is zero stays so."""
    values = rows.values.copy()
    if how == "rows":
        kernels.unit_rows(rows.indptr, values)
    elif how == "columns":
        kernels.divide_columns(rows.indices, column_norms, values)
    return values


def checksum(h5: h5py.File) -> int:
    """CRC-32 of all arrays, in order of their names, with those names and shapes."""
    crc = 0
    for name in sorted(h5):
        dataset = h5[name]
        crc = zlib.crc32(f"{name} {dataset.shape} {dataset.dtype}".encode(), crc)
        rows = max(1, _BYTES_AT_ONCE // max(1, dataset.dtype.itemsize * int(np.prod(dataset.shape[1:]))))
        for start in range(0, dataset.shape[0], rows):
            crc = zlib.crc32(dataset[start : start + rows].tobytes(), crc)
    return crc


def _column_norms(spool: Spool, n: int, dim: int) -> Vector:
    """‖column‖ (d,) over the first n rows, without overflow."""
    peaks, squares = np.zeros(dim), np.zeros(dim)
    for add in (lambda i, v: kernels.add_peaks(i, v, peaks), lambda i, v: kernels.add_squares(i, v, peaks, squares)):
        seen = 0
        for rows in spool.blocks():
            used = rows.indptr[max(0, min(rows.labels.size, n - seen))]
            add(rows.indices[:used], rows.values[:used])
            seen += rows.labels.size
    return peaks * np.sqrt(squares)


def _laid_out(file: Path, arrays: dict[str, Any]) -> dict[str, Place]:
    """A file with these arrays, not yet filled, and where each lies in it: offset, shape, type."""
    places = {}
    with h5py.File(file, "w", alignment_threshold=1, alignment_interval=64) as h5:
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        how.set_obj_track_times(False)
        for name, (shape, dtype) in arrays.items():
            kind = h5py.h5t.py_create(np.dtype(dtype))
            dataset = h5py.h5d.create(h5.id, name.encode(), kind, h5py.h5s.create_simple(shape), how)
            places[name] = (dataset.get_offset() if np.prod(shape) else -1, shape, dtype)
    return places


def _mapped(file: Path, place: Place) -> NDArray[Any]:
    """An array where it lies in the file; its pages are given back with it."""
    offset, shape, dtype = place
    return np.memmap(file, dtype=dtype, mode="r+", offset=offset, shape=shape) if offset >= 0 else np.empty(shape, dtype=dtype)


def _place_rows(
    spool: Spool, recipe: Recipe, scale: Vector | None, position: NDArray[np.int64], starts: NDArray[np.int64], file: Path,
    places: dict[str, Place],
) -> None:  # fmt: skip
    seen = 0
    for rows in spool.blocks():
        here = np.full(rows.labels.size, -1, dtype=np.int64)
        own = position[seen : seen + here.size]
        here[: own.size] = own
        seen += here.size
        values = scaled(rows, recipe.normalize, scale)
        with np.errstate(over="ignore"):
            values = values.astype(recipe.dtype)
        if not np.isfinite(values).all():
            raise UserError(
                f"data: {recipe.title} has a value of magnitude {np.abs(rows.values).max():g}, too large for {recipe.dtype}"
            )
        out = _mapped(file, places["values"])
        if "indices" in places:
            out_indices = _mapped(file, places["indices"])
            kernels.place_sparse(rows.indptr, rows.indices, values, here, starts, out_indices, out)
        else:
            kernels.place_dense(rows.indptr, rows.indices, values, here, out)
        out = out_indices = None  # type: ignore[assignment]
