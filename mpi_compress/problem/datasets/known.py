"""Sets that jobs name: their published shapes, their files in the LIBSVM collection, and sets for networks."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mpi_compress.problem.datasets.libsvm import stem

Listed = TypeVar("Listed", "LibsvmSet", "Published")


class LibsvmSet(NamedTuple):
    """N samples and d features as published; None for a set that is a part of another, of no fixed size."""

    dim: int
    samples: int | None = None
    files: tuple[str, ...] = ()  # in the collection; several are joined in this order
    nonzeros: int | None = None  # values that are not 0
    classes: int = 2  # different labels
    folder: str = "binary"  # of the collection

    def mismatch(self, samples: int, largest_index: int, nonzeros: int = 0) -> str | None:
        """The first difference between a file and what is published; a test set may lack the last features of its training set."""
        if self.samples is not None and samples != self.samples:
            return f"N = {samples}, and N = {self.samples} is published"
        others = nonzeros and self.nonzeros not in (None, nonzeros)
        if largest_index > self.dim or (others and largest_index < self.dim):
            return f"d = {largest_index}, and d = {self.dim} is published"
        if others:
            return f"{nonzeros} nonzeros, and {self.nonzeros} are published"
        return None

    def differs(self, samples: int, dim: int, labels: int = 0, nonzeros: int = 0) -> str:
        """That data of this size, with so many different labels and nonzeros (0: not known), are not what is published; or ""."""
        other = f" of {self.classes} labels" if labels not in (0, self.classes) else ""
        wrong = self.mismatch(samples, dim, nonzeros) or ""
        other += f" with {self.nonzeros} nonzeros, here {nonzeros}" if "nonzeros" in wrong else ""
        return f"differs from the published {self.samples or samples} × {self.dim}{other}" if other or wrong else ""


class Published(NamedTuple):
    """A set: `files[0]` is what is read; others lie beside it."""

    format: str
    files: tuple[str, ...]  # paths as the archive has them
    size: str  # for people
    source: str = ""  # the address of an archive, or of a folder with the files as .gz; "" where there is none
    digests: tuple[str, ...] = ()  # as published, of the archive or of each file: algorithm:digest


def _read(kind: str, cls: type[Listed]) -> dict[str, Listed]:
    """The sets of a table of `sets.toml`."""
    sets = tomllib.loads(Path(__file__).with_name("sets.toml").read_text(encoding="utf-8"))[kind]
    made: Any = cls  # whose fields the table has; its lists are tuples
    return {name: made(**{k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}) for name, table in sets.items()}


KNOWN, PUBLISHED = _read("libsvm", LibsvmSet), _read("published", Published)


def names_of(name: str) -> list[str]:
    """The names, without suffixes, under which a set's file is looked for: its own, and those of its files in the collection."""
    return list(dict.fromkeys([name, *(stem(file) for file in (KNOWN[name].files if name in KNOWN else ()))]))


def published_of(name: str) -> LibsvmSet | None:
    """What is published of the set that a name, or a file's name, means; None if that is no known set."""
    name = stem(name)
    return KNOWN.get(name) or next((known for known in KNOWN.values() if [stem(file) for file in known.files] == [name]), None)


def how_to_get(name: str | None) -> str:
    """The command that fetches a set; "" where there is none."""
    gettable = (name in KNOWN and KNOWN[name].files) or (name in PUBLISHED and PUBLISHED[name].source)
    return f"mpi-compress data get {name}" if gettable else ""
