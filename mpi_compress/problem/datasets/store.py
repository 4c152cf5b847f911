"""From a job's [data] table to rows on disk: found or generated, parsed once, cached, read in slices.

The cached file holds the samples in the order in which they are assigned, so that the shard of every worker is a slice, and a rank
reads its own workers' rows and no others. Where slices are equal it serves any number of workers; else it says where they begin.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.progress import Amount
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import cache_folder, digest, keep, kept, safe
from mpi_compress.problem.datasets.convert import Recipe, Spool, assemble
from mpi_compress.problem.datasets.formats import Reading, format_of
from mpi_compress.problem.datasets.labels import Classes, Labels
from mpi_compress.problem.datasets.opening import Stamp, arrays, is_sound, opened, stamp_of
from mpi_compress.problem.datasets.table import DataTable, Normalize, content_id, test_digest
from mpi_compress.problem.partitions import Split
from mpi_compress.problem.rows import Rows

_FORMAT = 2
_SOON_COUNTED = 16_000_000  # bytes of a compressed file, and four times as many of a plain one
_MOST_LABELS = 1000  # whose numbers are kept with a result
_KIND = {"sign": False, "number": True, "class": "class"}  # as the keys of cached files have it


@dataclass(frozen=True)
class DataSet:
    """Samples in a cached file: a slice of rows can be read without the rest."""

    file: Path
    title: str
    n_samples: int
    dim: int
    nonzeros: int  # with all zeros where rows are dense
    classes: int = 0  # labels are 0 … classes − 1; 0 where they are ±1, or numbers
    dealt: tuple[int, ...] | None = None  # where the workers' shards begin, and N; None: equal slices, but for one row
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)  # that the format states, such as the height of images
    entries: int = 0  # values that are not 0; 0 where that was not counted
    stamp: Stamp = ()  # of the file
    shared: bool = False  # True: every worker has all rows

    def read(self, start: int, stop: int) -> Rows:
        """Rows start … stop − 1."""
        return next(self._slices([(start, stop)]))

    def cuts(self, n: int) -> tuple[int, ...]:
        """Where the shards of n workers begin, and N: those of the split's n, or the one shard of all rows."""
        if self.dealt is None or n == 1:
            return tuple(i * self.n_samples // n for i in range(n + 1))
        assert len(self.dealt) == n + 1
        return self.dealt

    def shards(self, workers: Iterable[int], n: int) -> Iterator[Rows]:
        """The rows of some of n workers, one after another."""
        if self.shared:
            return itertools.repeat(self.read(0, self.n_samples), len([*workers]))
        cuts = self.cuts(n)
        return self._slices((cuts[i], cuts[i + 1]) for i in workers)

    def shards_together(self, workers: range, n: int) -> list[Rows]:
        """The rows of neighbouring workers, in one piece of memory."""
        if self.shared:
            return [*self.shards(workers, n)]
        cuts = self.cuts(n)[workers.start : workers.stop + 1]
        whole = self.read(cuts[0], cuts[-1])
        return [whole.cut(a - cuts[0], b - cuts[0]) for a, b in itertools.pairwise(cuts)]

    def weight(self, n: int) -> float:
        """What a row counts in f_i of one of n workers: n/N, so that f is their mean; 1/N where all have all rows."""
        return (1 if self.shared else n) / self.n_samples

    def _slices(self, cuts: Iterable[tuple[int, int]]) -> Iterator[Rows]:
        with opened(self.file, self.stamp) as h5:
            found = arrays(h5, self.stamp)
            for start, stop in cuts:
                labels = found["labels"][start:stop]
                if "indptr" not in found:
                    yield Rows((found["values"][start:stop],), labels, self.dim)
                    continue
                indptr = found["indptr"][start : stop + 1]
                span = slice(int(indptr[0]), int(indptr[-1]))
                yield Rows((indptr - indptr[0], found["indices"][span], found["values"][span]), labels, self.dim)

    def beside(self, name: str) -> Path:
        """A file that belongs to this set: an optimum, a smoothness."""
        return self.file.with_name(f"{self.file.stem}-{name}")

    def treatment(self) -> tuple[Classes, Normalize, Vector | None]:
        """How the samples were prepared, to prepare a test set alike: labels' meaning, normalisation, column norms (d,)."""
        with opened(self.file, self.stamp) as h5:
            plus, minus, each = (tuple(h5.attrs[a].tolist()) if a in h5.attrs else () for a in ("plus", "minus", "classes"))
            norms = h5["column_norms"][:] if "column_norms" in h5 else None
            return Classes(plus, minus, each), h5.attrs["normalize"], norms


def open_data(
    table: DataTable, folder: Path, split: Split, labels: Labels, ranks: Ranks | None = None, quiet: bool = True
) -> DataSet:
    """The set that a job names, parsed and cached first if the cache does not have it, or has it damaged.

    Every rank of `ranks` must call it; those that see rank 0's cache share the parsing of a plain text file.

    Args:
        folder: the job's own folder, where a relative path may also start.
        split: how rows are assigned to workers.
        labels: what labels are: one of two classes, one of any number of classes, or numbers to be fitted.
        quiet: do not say how much is read.

    Raises:
        UserError: no such set or file, no LIBSVM text, labels that are no two classes, or rows that cannot be assigned like that.
    """
    ranks = ranks or Ranks()
    file = ranks.on_root(lambda: cached_file(table, folder, split, labels))
    if not ranks.on_root(lambda: is_sound(file)):
        recipe = Recipe(table.title, table.normalize, table.dtype, table.known_dim, table.rows, split, table.positive, labels)
        if table.generator is None:
            ranks.compiling_once(libsvm.warm_up)
        _build(file, recipe, ranks, partial(_parsed, table, folder), quiet)
    return ranks.on_root(lambda: replace(described(file, table.title), shared=split.partition.shared))


def open_test(table: DataTable, folder: Path, data: DataSet) -> DataSet | None:
    """The test set of a training set, with its classes, normalisation and d; UserError if it is not there or does not fit."""
    if table.test is None:
        return None
    title = f"{table.title}'s test set {table.test}"
    file = data.beside(f"test-{test_digest(table, folder)[:16]}.h5")
    if not is_sound(file):
        classes, normalize, norms = data.treatment()
        recipe = Recipe(title, normalize, table.dtype, data.dim, classes=classes, column_norms=norms)
        _build(file, recipe, Ranks(), lambda *_: _test_reading(table, folder, data.dim))
    return described(file, title)


def cached_file(table: DataTable, folder: Path, split: Split, labels: Labels) -> Path:
    """Where a set is kept once it is parsed."""
    own = content_id(table, folder).split("+")[0]
    recipe = [_FORMAT, own, table.normalize, table.positive, table.dtype, table.rows, table.known_dim, split.key, _KIND[labels]]
    key = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]
    return cache_folder() / "data" / f"{safe(table.title)}-{key}.h5"


def counted_in(file: Path) -> tuple[int, int, int] | None:
    """N, the largest index and the nonzeros of LIBSVM text, counted once and kept; None if large, UserError if wrong."""
    if file.stat().st_size > _SOON_COUNTED * (1 if file.suffix in libsvm.SUFFIXES[1:] else 4):
        return None
    n, largest, nonzeros = kept(cache_folder() / "digests" / f"{digest(file)[:24]}-counts", lambda: libsvm.counts(file))
    return n, largest, nonzeros


def _build(file: Path, recipe: Recipe, ranks: Ranks, parsed: Callable[[int, int], Reading], quiet: bool = True) -> None:
    """Make a cached file. Ranks that see rank 0's cache parse a share each: `parsed` of its number and of how many there are."""
    spool = Spool(ranks.on_root(lambda: file.with_name(f"{file.name}.{os.getpid()}.rows")))

    def parse() -> None:
        nonlocal recipe
        if ranks.rank in readers:
            taken = 0
            reading = parsed(readers.index(ranks.rank), len(readers))
            recipe = replace(recipe, dim=recipe.dim or reading.dim, sizes=reading.sizes)
            of = "samples" + " by rank 0" * (len(readers) > 1)
            with Amount(f"reading {recipe.title}", quiet or not ranks.is_root, (of, 1)) as tell:
                for number, samples, labels in reading.blocks:
                    spool.put(number, samples, labels)
                    taken += labels.size
                    tell(taken, recipe.rows or reading.n_samples)
                    if recipe.rows is not None and taken >= recipe.rows:
                        break

    try:
        ranks.on_root(spool.make)
        readers = ranks.that_see(spool.folder)
        ranks.each(parse)
        ranks.on_root(lambda: keep(file, lambda part: assemble(spool, recipe, part)))
    finally:
        if ranks.is_root:
            spool.remove()


def _parsed(table: DataTable, folder: Path, part: int, parts: int) -> Reading:
    """A share of the rows. A generator, or a file of which only the first rows are needed, is one share."""
    how = table.build_format(folder) if table.generator is None else None
    alone = how is None or table.rows is not None or not how.in_shares
    if alone and part > 0:
        return Reading(iter(()))
    if how is None:
        generator = table.build_generator()
        return Reading(((i, *c) for i, c in enumerate(generator.chunks())), n_samples=int((generator.size() or [0])[0]))
    return how.read(table.file(folder), table.known_dim, *((0, 1) if alone else (part, parts)))


def _test_reading(table: DataTable, folder: Path, dim: int) -> Reading:
    """The rows of the test set: in the training set's format if that is stated, else in that of its own name."""
    source = table.test_file(folder)
    if source is not None and table.stated_format is None:
        return format_of(source).read(source, dim, 0, 1)
    return table.build_format(folder).read_test(table.file(folder), source, dim)


def described(file: Path, title: str) -> DataSet:
    """The set in a sound data file."""
    return _described(file, title, stamp_of(file))


@lru_cache(maxsize=8)
def _described(file: Path, title: str, stamp: Stamp) -> DataSet:
    with opened(file, stamp) as h5:
        classes = h5.attrs["classes"].size if "classes" in h5.attrs else 0
        dealt = tuple(h5["cuts"][:].tolist()) if "cuts" in h5 else None
        n, dim, nonzeros, entries = (int(h5.attrs.get(a, 0)) for a in ("n_samples", "dim", "nonzeros", "entries"))
        return DataSet(file, title, n, dim, nonzeros, classes, dealt, json.loads(h5.attrs.get("sizes", "{}")), entries, stamp)


@lru_cache(maxsize=8)
def outcome(data: DataSet, n: int) -> Mapping[str, NDArray]:
    """The `rows` (n,) of each worker; and, unless labels take too many values, these as `labels` (K,) and `counts` (n, K) of them.
    Labels of classes are those of the file; those of two classes are −1 and +1."""
    if data.shared:
        return {"rows": np.full(n, data.n_samples)}
    with opened(data.file, data.stamp) as h5:
        labels, which = np.unique(h5["labels"][:], return_inverse=True)  # of all workers at once, which may be very many
    rows = {"rows": np.diff(data.cuts(n))}
    if labels.size > max(2, min(_MOST_LABELS, data.n_samples // 2)):
        return rows
    cells = np.repeat(np.arange(n), rows["rows"]) * labels.size + which
    counts = np.bincount(cells, minlength=n * labels.size).reshape(n, labels.size)
    each = data.treatment()[0].each
    return {**rows, "labels": np.array(each)[labels.astype(np.int64)] if each else labels, "counts": counts}
