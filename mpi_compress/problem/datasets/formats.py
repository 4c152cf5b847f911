"""The format of a file of samples, by its name: IDX images, or else LIBSVM text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets import idx, libsvm


def read_blocks(path: Path, dim: int | None = None, part: int = 0, parts: int = 1) -> Iterator[tuple[int, Any, Vector]]:
    """Parsed blocks of a share of a file, as `libsvm.read_blocks`."""
    return idx.read_blocks(path, dim, part) if idx.is_idx(path) else libsvm.read_blocks(path, dim, part, parts)


def files_of(path: Path) -> tuple[Path, ...]:
    """All files that hold the samples: for images, their labels' file too."""
    return (path, idx.labels_of(path)) if idx.is_idx(path) else (path,)
