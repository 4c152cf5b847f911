"""A job's [data] table, the file or generator that it names, and a hash of the samples."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import scipy  # which loads sparse where it is first used
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError, likely_name
from mpi_compress.core.fields import AtLeastOne, within
from mpi_compress.core.sources import source_of
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import cache_folder, digest, replace
from mpi_compress.problem.datasets.formats import HELD_OUT, Format, format_of, formats
from mpi_compress.problem.datasets.generators import Generator, generators
from mpi_compress.problem.datasets.known import KNOWN, PUBLISHED, how_to_get, names_of, published_of

Normalize = Literal["rows", "columns", "none"]
_ALIKE = 0.75  # names of sets that are meant for each other: gisete and gisette, not w1a and a9a


@dataclass(frozen=True)
class DataTable:
    """A job's [data]: exactly one of `name`, `path` and `generator` says where the samples come from."""

    name: str | None = None
    path: str | None = None
    generator: str | None = None
    normalize: Normalize = "none"
    positive: list[float] | None = None  # labels that count as +1, where a set has many
    dtype: Literal["float64", "float32"] = "float64"
    rows: AtLeastOne | None = None  # how many to take, from the first on
    dim: Annotated[int, within(f"[1, {libsvm.LARGEST_INDEX}]")] | None = None  # d, where the largest index present is smaller
    test: str | None = None  # a set, or a file, for test_loss and test_accuracy; "held-out": what the format leaves out of training
    format: str | None = None  # of the file, where its name or the set's does not say it
    test_rows: AtLeastOne | None = None  # how many of the test set's samples to take, from the first on
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the generator, or of the format

    def __post_init__(self) -> None:
        given = [f"{key} = {json.dumps(s)}" for key in ("name", "path", "generator") if (s := getattr(self, key)) is not None]
        if len(given) != 1:
            replaces = "--set 'data={ path = \"FILE\" }' replaces the whole table"
            both = f"; {' and '.join(given)} are given: {replaces}" if given else ""
            raise ValueError(f'one of name = "…" (a known set), path = "…" (a file) and generator = "…" is needed{both}')
        if self.test_rows is not None and self.test is None:
            raise ValueError(f"test_rows = {self.test_rows} is of a test set: test = …")

    @property
    def title(self) -> str:
        return self.name or self.generator or Path(str(self.path)).name

    def is_here(self, folder: Path) -> bool:
        """True if the samples need not be fetched."""
        try:
            return self.generator is not None or self.file(folder).is_file()
        except UserError:
            return False

    @property
    def known_dim(self) -> int | None:
        """d, if the table, the set's name or the generator gives it."""
        if self.generator is not None and self.dim is None:
            size = self.build_generator().size()
            return None if size is None else size[1]
        return self.dim or (KNOWN[self.name].dim if self.name in KNOWN else None)

    def build_generator(self) -> Generator:
        return generators.build({"name": self.generator, **self.parameters}, "data")

    @property
    def stated_format(self) -> str | None:
        """The format that the table or the set's name gives; None: the file's name shows it."""
        return self.format or (PUBLISHED[self.name].format if self.name in PUBLISHED else None)

    def build_format(self, folder: Path) -> Format:
        if self.stated_format is None:
            return format_of(self.file(folder))
        return formats.build({"name": self.stated_format, **self.parameters}, "data")

    def file(self, folder: Path) -> Path:
        """The file of samples; `folder` is where a relative path may also start, the job's own."""
        return find_path(str(self.path), folder, "data.path") if self.path is not None else find_set(str(self.name), "data.name")

    def test_file(self, folder: Path) -> Path | None:
        """The file of the test set, by a set's name or a path; None: it is in the training set's file."""
        return None if self.test == HELD_OUT else find_file(str(self.test), folder, "data.test")


def content_id(table: DataTable, folder: Path) -> str:
    """A hash of the samples: of the files' bytes, or of the generator, its parameters, and its source if a user wrote it."""
    if table.generator is not None:
        recipe = table.build_generator()
        own = hashlib.sha256((repr(recipe) + source_of(recipe)).encode()).hexdigest()
    else:
        how = table.build_format(folder)
        own = content_digest(table.file(folder), how)
        if table.stated_format is not None:
            own = hashlib.sha256(f"{own}{how!r}{source_of(how)}".encode()).hexdigest()
    return own if table.test is None else f"{own}+{test_digest(table, folder)}"


def file_digests(table: DataTable, folder: Path) -> dict[str, str]:
    """A hash of the bytes of each set that is in a file, by its path, the training set first."""
    found = {} if table.generator else {str(file := table.file(folder)): content_digest(file, table.build_format(folder))}
    if table.test is not None and (test := table.test_file(folder)):
        found[str(test)] = test_digest(table, folder)
    return found


def test_digest(table: DataTable, folder: Path) -> str:
    """The digests of all files of the test set, or the word for what training leaves out."""
    file = table.test_file(folder)
    if file is None:
        return HELD_OUT
    return content_digest(file, table.build_format(folder) if table.stated_format is not None else format_of(file))


def content_digest(file: Path, how: Format) -> str:
    return "".join(digest(part) for part in how.files(file))


def find_path(path: str, folder: Path, key: str) -> Path:
    """A file by its path, here or beside the job; UserError if there is none."""
    names = (path, os.fsdecode(path.encode(errors="surrogateescape")))  # in UTF-8, where the system's encoding is another one
    files = [place / name for name in dict.fromkeys(names) for place in (Path(), folder)]
    for file in sorted(files, key=os.path.isfile, reverse=True):
        if os.path.exists(file):
            if not file.is_file():
                what = "a folder" if file.is_dir() else "no plain file"
                raise UserError(f"{key}: {file} is {what}; a file of LIBSVM text is required")
            return file
    raise UserError(f"{key}: there is no file '{path}', neither here nor beside the job")


def find_set(name: str, key: str) -> Path:
    """A set by its name, where sets are looked for; UserError, which says how to get it, if it is nowhere."""
    if "/" in name or "\\" in name or Path(name).suffix in libsvm.SUFFIXES[1:]:
        remedy = f'; write path = "{name}"' if key == "data.name" else ", and there is no such file"
        raise UserError(f"{key}: '{name}' is a path{remedy}")
    given = os.environ.get("MPI_COMPRESS_DATA")
    places = [*([Path(given)] if given else []), Path("data"), cache_folder() / "sets"]
    found = find_in(name, places)
    if found is None:
        looked = f"$MPI_COMPRESS_DATA ({given or 'not set'}), ./data or {places[-1]}"
        raise UserError(f"{key}: no set '{name}' in {looked}{_what_would_do(name)}")
    return found


def find_in(name: str, places: Sequence[Path]) -> Path | None:
    """The file of a set by its own name, else by LIBSVM's; several that make up a set are joined in the cache. One for networks may
    be in a folder `deep`, too. None: nowhere."""
    if name in PUBLISHED:
        folders = (at for place in places for at in (place, place / "deep"))
        wanted = (at / f"{PUBLISHED[name].files[0]}{suffix}" for at, suffix in product(folders, libsvm.SUFFIXES))
        return next(filter(Path.is_file, wanted), None)
    own, *theirs = names_of(name)
    part = None
    for stems in filter(None, ([own], theirs)):
        for place, suffix in product(places, libsvm.SUFFIXES):
            files = [place / f"{stem}{suffix}" for stem in stems]
            there = [file for file in files if file.is_file()]
            if there == files:
                return files[0] if len(files) == 1 else _joined(name, files)
            part = part or next(iter(there), None)
    return part


def _joined(name: str, files: list[Path]) -> Path:
    stamps = repr([(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files])
    whole = cache_folder() / "joined" / f"{name}-{hashlib.sha256(stamps.encode()).hexdigest()[:16]}{files[0].suffix}"
    if not whole.exists():
        replace(whole, lambda made: libsvm.join(files, made))
    return whole


def _what_would_do(name: str) -> str:
    if name not in PUBLISHED:
        likely = "" if name in KNOWN else likely_name(name, {*KNOWN, *PUBLISHED}, _ALIKE)
        hint = f"did you mean '{likely}'? " if likely else ""
        looked = " and ".join(names_of(name)[1:])
        looked = f", looked for {name} and {looked}" if looked else ""
        if name in KNOWN and not how_to_get(name):
            return f"{looked}; no command fetches it: put {name} into one of them"
        get = how_to_get(name) or how_to_get(likely) or "mpi-compress data get NAME"
        return f"{looked}; {hint}`{get}` fetches what `data list` names, or put {name} into one of them"
    fetch = f"`mpi-compress data get {name}` fetches it, or " if PUBLISHED[name].source else ""
    return f", nor in a folder 'deep' there; {fetch}put {PUBLISHED[name].files[0]} into one of them"


@dataclass(frozen=True, eq=False)
class Contents:
    """A summary of n samples; `published` compares it with the published set of the file's name, "" if there is none."""

    lengths: NDArray[np.int32]  # (n,) nonzeros of each row
    norms: NDArray[np.float64]  # (n,) of each row
    labels: dict[float, int]  # how many samples have each
    features: int  # the largest index; 0: there are no nonzeros
    range: tuple[float, float]  # of the values
    published: str


def find_file(given: str, folder: Path = Path(), key: str = "data") -> Path:
    """A file by its path, here or beside the job, or a set by its name; UserError if there is none, or it is no plain file."""
    is_path = Path(given).exists() or (folder / given).exists()
    return find_path(given, folder, key) if is_path else find_set(given, key)


def contents_of(file: Path, how: Format | None = None, name: str = "") -> Contents:
    """The contents of a file, or of a set by its `name`, read in blocks; UserError if it holds no samples, or cannot be read as its
    name shows."""
    labels: Counter[float] = Counter()
    lengths, norms, features, low, high = [], [], 0, np.inf, -np.inf
    for _, samples, of_rows in (how or format_of(file)).read(file, None, 0, 1).blocks:
        a = scipy.sparse.csr_matrix(samples)
        labels.update(of_rows.tolist())
        norms.append(np.sqrt(np.asarray(a.multiply(a).sum(axis=1)).ravel()))
        features = max(features, int(a.indices.max(initial=-1)) + 1)
        a.eliminate_zeros()
        low, high = a.data.min(initial=low), a.data.max(initial=high)
        lengths.append(np.diff(a.indptr))
    if not labels:
        raise UserError(f"{file}: holds no samples")
    length = np.concatenate(lengths)
    known = published_of(name) or published_of(file.name)
    published = "as published" if known else ""
    if known and (mismatch := known.mismatch(length.size, features, int(length.sum()))):
        published = f"other data in a file called {file.name}: {mismatch}"
    return Contents(length, np.concatenate(norms), labels, features, (low, high), published)
