from pathlib import Path

from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.formats.base import Format, Reading, formats


@formats.register("libsvm")
class LibsvmText(Format):
    """LIBSVM text: a line a sample, `label index:value …`."""

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        return Reading(libsvm.read_blocks(path, dim, part, parts))
