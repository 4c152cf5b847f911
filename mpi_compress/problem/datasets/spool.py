"""Rows on disk between parsing, which every rank does for its blocks, and assembly, which needs all labels first."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy  # which loads sparse where it is first used
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Vector


class ParsedRows(NamedTuple):
    """Parsed rows in CSR form."""

    labels: Vector  # (m,)
    indptr: NDArray[np.int64]  # (m+1,)
    indices: NDArray[np.uint32]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Spool:
    """A folder of blocks, each in a file of its own."""

    folder: Path

    def make(self) -> None:
        """Make the folder.

        Raises:
            UserError: it cannot be written to.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.folder}: cannot be written to: {error.strerror or error}") from None

    def put(self, number: int, samples: Any, labels: Vector) -> None:
        """Keep a block: a CSR matrix or an array (m, d).

        Raises:
            UserError: the disk is full, or the folder cannot be written to.
        """
        if samples.shape[0] == 0:
            return
        matrix = scipy.sparse.csr_matrix(samples)
        matrix.sort_indices()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            np.savez(
                self.folder / f"{number:08d}.npz",
                labels=labels.astype(np.float64, copy=False),
                indptr=matrix.indptr.astype(np.int64),
                indices=matrix.indices.astype(np.uint32),
                values=matrix.data.astype(np.float64, copy=False),
            )
        except OSError as error:
            raise UserError(f"{self.folder}: cannot be written to: {error.strerror or error}") from None

    def blocks(self) -> Iterator[ParsedRows]:
        """All blocks, in order."""
        for file in sorted(self.folder.glob("*.npz")):
            with np.load(file) as block:
                yield ParsedRows(block["labels"], block["indptr"], block["indices"], block["values"])

    def outline(self) -> tuple[Vector, NDArray[np.int64], int]:
        """Labels (N,) and lengths (N,) of all rows, and the largest index + 1."""
        labels, lengths, dim = [np.empty(0)], [np.empty(0, dtype=np.int64)], 0
        for rows in self.blocks():
            labels.append(rows.labels)
            lengths.append(np.diff(rows.indptr))
            dim = max(dim, int(rows.indices.max()) + 1 if rows.indices.size else 0)
        return np.concatenate(labels), np.concatenate(lengths), dim

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
