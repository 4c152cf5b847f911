"""From a job's [data] table to rows on disk: found or generated, parsed once, cached, read in slices.

The cached file holds the samples in the order in which they are dealt out, so that the shard of every worker, for any number of
workers, is a slice, and a rank reads its own workers' rows and no others.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import platformdirs
import scipy.sparse as sp

from mpi_compress.compressed import Vector
from mpi_compress.datasets import libsvm
from mpi_compress.datasets.generators import generators
from mpi_compress.datasets.known import KNOWN
from mpi_compress.errors import UserError
from mpi_compress.objective import Rows

Partition = Literal["contiguous", "shuffled", "by-label"]
_DENSE_FROM = 1 / 3  # share of nonzeros from which on a dense layout is smaller and faster
_FORMAT = 1


def cache_folder() -> Path:
    """Where parsed sets, optima and compiled problems are kept: $MPI_COMPRESS_CACHE, or the user's cache folder."""
    given = os.environ.get("MPI_COMPRESS_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("mpi_compress")


@dataclass(frozen=True)
class DataTable:
    """A job's [data]: exactly one of `name`, `path` and `generator` says where the samples come from."""

    name: str | None = None
    path: str | None = None
    generator: str | None = None
    normalize: Literal["rows", "columns", "none"] = "none"
    positive: list[float] | None = None  # labels that count as +1, where a set has many
    dtype: Literal["float64", "float32"] = "float64"
    rows: int | None = None  # the first so many
    dim: int | None = None  # d, where the largest index present is smaller
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the generator

    def __post_init__(self) -> None:
        if sum(s is not None for s in (self.name, self.path, self.generator)) != 1:
            raise ValueError('one of name = "…" (a known set), path = "…" (LIBSVM text) and generator = "…" is needed')
        if self.rows is not None and self.rows < 1:
            raise ValueError(f"rows = {self.rows} must be at least 1")


@dataclass(frozen=True)
class DataSet:
    """Samples in a cached file: a slice of rows can be read without the rest."""

    file: Path
    title: str
    n_samples: int
    dim: int
    nonzeros: int

    def read(self, start: int, stop: int) -> Rows:
        """Rows start … stop − 1."""
        with h5py.File(self.file, "r", locking=False) as h5:
            labels = h5["labels"][start:stop]
            if "indptr" not in h5:
                return Rows((h5["values"][start:stop],), labels, self.dim)
            indptr = h5["indptr"][start : stop + 1]
            span = slice(int(indptr[0]), int(indptr[-1]))
            return Rows((indptr - indptr[0], h5["indices"][span], h5["values"][span]), labels, self.dim)

    def shard(self, i: int, n: int) -> Rows:
        """The rows of worker i of n; sizes differ by at most one."""
        return self.read(i * self.n_samples // n, (i + 1) * self.n_samples // n)

    def beside(self, name: str) -> Path:
        """A file that belongs to this set: an optimum, a smoothness."""
        return self.file.with_name(f"{self.file.stem}-{name}")


def content_id(table: DataTable, folder: Path) -> str:
    """A hash of what the samples are: the file's bytes, or the generator and its parameters."""
    if table.generator is not None:
        generator = generators.build({"name": table.generator, **table.parameters}, "data")
        return hashlib.sha256(repr(generator).encode()).hexdigest()
    return _digest(_find(table, folder))


def open_data(table: DataTable, folder: Path, partition: Partition, seed: int, real_labels: bool) -> DataSet:
    """The set that a job means, parsed and cached first if it was not yet.

    Args:
        folder: where a relative path may also start, the job's own folder.
        partition: the order in which rows are dealt out; `seed` decides "shuffled".
        real_labels: labels are numbers to be fitted and not two classes.

    Raises:
        UserError: no such set or file, no LIBSVM text, or labels that are no two classes.
    """
    title = table.name or table.generator or Path(str(table.path)).name
    order = f"shuffled by {seed}" if partition == "shuffled" else partition
    recipe = [
        _FORMAT,
        content_id(table, folder),
        table.normalize,
        table.positive,
        table.dtype,
        table.rows,
        _dim(table),
        order,
        real_labels,
    ]
    file = cache_folder() / "data" / f"{_safe(title)}-{hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]}.h5"
    if not file.exists():
        samples, labels = _load(table, folder)
        samples, labels = samples[: table.rows], labels[: table.rows]
        if not real_labels:
            labels = two_classes(labels, table.positive, title)
        rows = dealt(labels, partition, seed)
        _write(file, _normalized(samples[rows], table.normalize), labels[rows], np.dtype(table.dtype))
    with h5py.File(file, "r", locking=False) as h5:
        return DataSet(file, title, *(int(h5.attrs[a]) for a in ("n_samples", "dim", "nonzeros")))


def two_classes(labels: Vector, positive: list[float] | None, title: str) -> Vector:
    """Labels as ±1: those in `positive` against the rest, or the larger of two against the smaller.

    Raises:
        UserError: one class only, or more than two without `positive`.
    """
    found = np.unique(labels)
    if positive is not None:
        unknown = sorted(set(positive) - set(found))
        if unknown:
            raise UserError(f"data.positive: {title} has no label {unknown[0]:g}; it has {_listed(found)}")
        signs = np.where(np.isin(labels, positive), 1.0, -1.0)
        if np.all(signs == 1.0):
            raise UserError(f"data.positive: all labels of {title} are in it; leave some out: {_listed(found)}")
        return signs
    if found.size == 1:
        raise UserError(f"data: {title} has one class only, label {found[0]:g}; two are needed")
    if found.size > 2:
        raise UserError(
            f"data: {title} has {found.size} labels, {_listed(found)}; say which count as +1: positive = [{found[0]:g}, …]"
        )
    return np.where(labels == found[1], 1.0, -1.0)


def dealt(labels: Vector, partition: Partition, seed: int) -> Any:
    """The order in which rows are dealt to workers: an index array (N,)."""
    if partition == "shuffled":
        return np.random.default_rng([seed, labels.size]).permutation(labels.size)
    if partition == "by-label":
        return np.argsort(labels, kind="stable")
    return np.arange(labels.size)


def _find(table: DataTable, folder: Path) -> Path:
    if table.path is not None:
        for file in (Path(table.path), folder / table.path):
            if file.exists():
                return file
        raise UserError(f"data.path: there is no file '{table.path}', neither here nor beside the job")
    name = str(table.name)
    if "/" in name or "\\" in name:
        raise UserError(f"data.name: '{name}' is a path; write path = \"{name}\"")
    places = [os.environ.get("MPI_COMPRESS_DATA"), "data", cache_folder() / "sets"]
    for place in places:
        for suffix in libsvm.SUFFIXES:
            if place and (found := Path(place) / f"{name}{suffix}").is_file():
                return found
    raise UserError(
        f"data.name: no set '{name}' in $MPI_COMPRESS_DATA ({places[0] or 'not set'}), ./data or {places[2]}; "
        f"`mpi-compress data get {name}` fetches sets of the LIBSVM collection, or put the file there"
    )


def _digest(file: Path) -> str:
    """SHA-256 of a file's bytes, remembered by its place, size and time of change."""
    stat = file.stat()
    place = hashlib.sha256(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:24]
    note = cache_folder() / "digests" / place
    if note.exists():
        return note.read_text()
    try:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    note.parent.mkdir(parents=True, exist_ok=True)
    replace(note, lambda part: part.write_text(digest))
    return digest


def _load(table: DataTable, folder: Path) -> tuple[Any, Vector]:
    if table.generator is not None:
        return generators.build({"name": table.generator, **table.parameters}, "data").make()
    return libsvm.read(_find(table, folder), _dim(table))


def _dim(table: DataTable) -> int | None:
    return table.dim or (KNOWN[table.name].dim if table.name in KNOWN else None)


def _normalized(samples: Any, how: str) -> Any:
    """Rows, or columns, scaled to unit Euclidean norm; those that are zero stay so."""
    if how == "none":
        return samples
    axis = 1 if how == "rows" else 0
    squares = samples.multiply(samples) if sp.issparse(samples) else samples**2
    norms = np.sqrt(np.asarray(squares.sum(axis=axis)).ravel())
    inverse = 1.0 / np.where(norms > 0, norms, 1.0)
    if sp.issparse(samples):
        scale = sp.diags(inverse)
        return (scale @ samples if axis == 1 else samples @ scale).tocsr()
    return samples * (inverse[:, None] if axis == 1 else inverse)


def _write(file: Path, samples: Any, labels: Vector, dtype: np.dtype) -> None:
    def fill(part: Path) -> None:
        with h5py.File(part, "w") as h5:
            n, dim = samples.shape
            nonzeros = samples.nnz if sp.issparse(samples) else n * dim
            if nonzeros >= _DENSE_FROM * n * dim:
                h5["values"] = np.asarray(samples.todense() if sp.issparse(samples) else samples, dtype=dtype)
            else:
                samples.sort_indices()
                h5["indptr"] = samples.indptr.astype(np.uint64)
                h5["indices"] = samples.indices.astype(np.uint32)
                h5["values"] = samples.data.astype(dtype)
            h5["labels"] = labels
            h5.attrs.update(n_samples=n, dim=dim, nonzeros=nonzeros)

    file.parent.mkdir(parents=True, exist_ok=True)
    replace(file, fill)


def replace(file: Path, fill: Any) -> None:
    """Write `file` whole or not at all: `fill(part)` writes beside it, then the part takes its name."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        fill(part)
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name)


def _listed(values: Any, most: int = 8) -> str:
    return ", ".join(f"{v:g}" for v in values[:most]) + (", …" if len(values) > most else "")
