"""The sizes of data sets before they are read, and what is said of data first."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.job.runs import RunSpec
from mpi_compress.problem.datasets import said
from mpi_compress.problem.datasets.known import KNOWN, names_of, published_of
from mpi_compress.problem.datasets.opening import is_sound
from mpi_compress.problem.datasets.store import DataSet, cached_file, counted_in, described

_SOON_COMPUTED = 4_000_000  # nonzeros


def here_of(spec: RunSpec) -> DataSet | None:
    """A run's set as it is here: parsed, or the size of what is generated, or counted in a small file; None: a large one is not
    parsed yet.

    Raises:
        UserError: a small file is wrong; of one whose first rows are taken this is not known.
    """
    table, file = spec.data, cached_file(*spec.source)
    if is_sound(file):
        return described(file, table.title)
    if table.generator is not None:
        size = table.build_generator().size()
        return None if size is None else _first_rows(spec, *size)
    try:
        if (counted := _counted(spec)) and all(counted[:2]):
            return _first_rows(spec, *counted, counted[2])
    except UserError:
        if table.rows is None:
            raise
    return None


def shape_of(spec: RunSpec) -> DataSet | None:
    """`here_of`, else the published size; None where there is none."""
    here, known = here_of(spec), KNOWN.get(spec.data.name or "")
    if here or known is None or not (known.samples and known.nonzeros):
        return here
    return _first_rows(spec, known.samples, known.dim, known.nonzeros)


def is_soon_parsed(spec: RunSpec) -> bool:
    """True if a run's set is parsed, or that takes a moment, and so does what is computed of it."""
    if spec.data.generator is None and not is_sound(cached_file(*spec.source)):
        return _counted(spec) is not None
    shape = shape_of(spec)
    return shape is not None and shape.nonzeros <= _SOON_COMPUTED


def _counted(spec: RunSpec) -> tuple[int, int, int] | None:
    """N, the largest index and the nonzeros of a small file of LIBSVM text; None of another one."""
    return counted_in(spec.data.file(spec.folder)) if spec.data.build_format(spec.folder).name == "libsvm" else None


def _first_rows(spec: RunSpec, samples: int, dim: int, nonzeros: float, entries: int = 0) -> DataSet:
    """The size of the first rows of a set, so many as [data] takes, without a file."""
    rows = min(samples, spec.data.rows or samples)
    return DataSet(Path(), spec.data.title, rows, spec.data.known_dim or dim, int(nonzeros * rows / samples), entries=entries)


def size_of(spec: RunSpec) -> said.Size | None:
    """The size of a run's set as it is here; None if a large one is not parsed yet."""
    return (here.n_samples, here.dim, 0, here.entries) if (here := here_of(spec)) else None


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
