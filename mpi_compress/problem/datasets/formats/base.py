"""The contract of a format: how a file becomes rows, and what the rows' features stand for."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import Part, Registry
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.libsvm import UNREADABLE, open_text

Blocks = Iterator[tuple[int, Any, Vector]]  # numbers of blocks, samples (a CSR matrix or an array), labels
HELD_OUT = "held-out"  # the name, in `test`, of the rows that a format leaves out of the training set
_ROWS = 4096  # of a block


@dataclass(frozen=True)
class Reading:
    """Rows as they are read."""

    blocks: Blocks
    sizes: Mapping[str, int] = field(default_factory=dict)  # what features stand for, such as an image's height; for models
    dim: int | None = None  # d; None: the largest index
    n_samples: int = 0  # N; 0: known when all are read


@dataclass(frozen=True)
class Format(Part, ABC):
    """How files are read; its fields are keys of a job's [data] table."""

    in_shares: ClassVar[bool] = True  # False: one process reads all, and `read` is asked for part 0 of 1 alone
    names: ClassVar[str] = ""  # a pattern of such files' names; "": no name shows this format

    def files(self, path: Path) -> tuple[Path, ...]:
        """All files that hold the samples."""
        return (path,)

    @abstractmethod
    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        """The training samples: the part-th of `parts` shares; a format that cannot be shared gives all for part 0.

        Raises:
            UserError: the file cannot be read; the line names the file and the place.
        """

    def read_test(self, path: Path, test: Path | None, dim: int) -> Reading:
        """The rows of a test set's file or, for None, those of the training set's file that training leaves out."""
        if test is None:
            raise UserError(f'data.test: "{HELD_OUT}": this format leaves nothing out of training; give a file or a set')
        return self.read(test, dim, 0, 1)


formats: Registry[Any] = Registry("format", Format)


def blocks_of(samples: NDArray, labels: NDArray, unit: float = 1.0) -> Blocks:
    """Blocks of samples (N, d), in a unit, with their labels (N,)."""
    for number, start in enumerate(range(0, len(samples), _ROWS)):
        yield number, samples[start : start + _ROWS] / unit, labels[start : start + _ROWS].astype(float)


def content(path: Path) -> bytes:
    """A file's bytes, decompressed if it is .xz, .bz2 or .gz; UserError if it cannot be read."""
    try:
        with open_text(path) as file:
            return file.read()
    except UNREADABLE as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
