"""The sizes of data sets before they are read, and what is said of data first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mpi_compress.core.errors import UserError
from mpi_compress.job.runs import RunSpec
from mpi_compress.problem.datasets import said
from mpi_compress.problem.datasets.convert import DENSE_FROM
from mpi_compress.problem.datasets.known import KNOWN, names_of, published_of
from mpi_compress.problem.datasets.opening import MAPPED_FROM, is_sound
from mpi_compress.problem.datasets.store import DataSet, cached_file, counted_in, described

_SOON_COMPUTED = 4_000_000  # nonzeros


@dataclass(frozen=True)
class Shape:
    """The size of a set."""

    samples: int
    dim: int
    nonzeros: float
    classes: int = 0  # of labels, where they are known and have classes
    sizes: Mapping[str, int] = field(default_factory=dict)  # that the data's format states
    entries: int = 0  # values that are not 0; 0 where that was not counted
    published: bool = False  # of the set's name; False: of the data that are here

    @classmethod
    def of(cls, data: DataSet) -> "Shape":
        """The size of a set that was parsed."""
        return cls(data.n_samples, data.dim, data.nonzeros, data.classes, data.sizes, data.entries)

    def bytes(self, dtype: str) -> float:
        """Bytes of the rows, sparse or dense, whichever is less, with labels and starts of sparse rows."""
        item = 4 if dtype == "float32" else 8
        if self.nonzeros >= DENSE_FROM * self.samples * self.dim:
            return self.samples * (self.dim * item + 8)
        return self.nonzeros * (4 + item) + self.samples * 24

    def mapped(self, spec: RunSpec) -> float:
        """Bytes of all rows that are mapped from the cached file, and dropped where memory is short; a model may copy its rows."""
        entries = self.bytes(spec.data.dtype) - 24.0 * self.samples
        return 0.0 if not spec.loss.of_margin or entries < 3 * MAPPED_FROM else entries  # indices are a third of them, or more


def shape_of(spec: RunSpec) -> Shape | None:
    """The size of a run's set: parsed, generated, counted in a small file, or published; None: a large one is not parsed yet.

    Raises:
        UserError: a small file is wrong; of one whose first rows are taken this is not known.
    """
    table, file = spec.data, cached_file(*spec.source)
    if is_sound(file):
        return Shape.of(described(file, table.title))
    if table.generator is not None:
        size = table.build_generator().size()
        return None if size is None else _of_first_rows(spec, *size)
    try:
        if (counted := _counted(spec)) and all(counted[:2]):
            return _of_first_rows(spec, *counted, entries=counted[2])
    except UserError:
        if table.rows is None:
            raise
    known = KNOWN.get(table.name or "")
    if known is None or not (known.samples and known.nonzeros):
        return None
    return _of_first_rows(spec, known.samples, known.dim, known.nonzeros, published=True)


def is_soon_parsed(spec: RunSpec) -> bool:
    """True if a run's set is parsed, or that takes a moment, and so does what is computed of it."""
    if spec.data.generator is None and not is_sound(cached_file(*spec.source)):
        return _counted(spec) is not None
    shape = shape_of(spec)
    return shape is not None and shape.nonzeros <= _SOON_COMPUTED


def _counted(spec: RunSpec) -> tuple[int, int, int] | None:
    """N, the largest index and the nonzeros of a small file of LIBSVM text; None of another one."""
    return counted_in(spec.data.file(spec.folder)) if spec.data.build_format(spec.folder).name == "libsvm" else None


def _of_first_rows(spec: RunSpec, samples: int, dim: int, nonzeros: float, entries: int = 0, published: bool = False) -> Shape:
    """The size of the first rows of a set, so many as [data] takes."""
    rows = min(samples, spec.data.rows or samples)
    return Shape(rows, spec.data.known_dim or dim, nonzeros * rows / samples, entries=entries, published=published)


def size_of(spec: RunSpec) -> said.Size | None:
    """The size of a run's set as it is here; None if a large one is not parsed yet."""
    shape = shape_of(spec)
    return None if shape is None or shape.published else (shape.samples, shape.dim, 0, shape.entries)


def said_of(specs: Sequence[RunSpec]) -> list[str]:
    """A line for each set of these runs."""
    sets = dict[str, RunSpec]()
    for spec in specs:
        sets.setdefault(repr((spec.data, spec.folder)), spec)
    return list(dict.fromkeys(line for spec in sets.values() for line in _said(spec)))


def _said(spec: RunSpec) -> Iterator[str]:
    """The line of a set; and one that names the file and its own largest index where a small one is not what its name says."""
    if spec.missing:
        looked = f", looked for {' and '.join(names_of(spec.data.name))}" if spec.data.name else ""
        yield f"data: {spec.data.title}, not here{looked}"
        return
    file = None if spec.data.generator else spec.data.file(spec.folder)
    yield said.line(spec.written["data"], spec.data_kind, file or "", size_of(spec))
    if file and (known := published_of(spec.data.title)) and (counted := _counted(spec)) and known.mismatch(*counted):
        yield f"data: other data in a file called {file.name}, whose largest index is {counted[1]}"
