from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets.formats.base import Format, Reading, blocks_of_images, content, formats

_RECORD = 1 + 3 * 32 * 32


@formats.register("cifar-10")
class Cifar10(Format):
    """Colour images in the binary version of CIFAR-10 (Krizhevsky 2009): a byte of label, then 32 × 32 of red, green and blue each.

    data_batch_1.bin stands for all data_batch_….bin beside it. A row holds its pixels from 0 to 1, the three colours of a pixel
    together.
    """

    in_shares = False
    names = r"(data_batch_\d+|test_batch)\.bin(\.gz|\.xz|\.bz2)?$"

    def files(self, path: Path) -> tuple[Path, ...]:
        if not path.name.startswith("data_batch_1."):
            return (path,)
        return tuple(sorted(path.parent.glob(f"data_batch_*.{path.name.partition('.')[2]}")))

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        records = np.concatenate([_records(file) for file in self.files(path)])
        colours = records[:, 1:].reshape(-1, 3, 32 * 32).transpose(0, 2, 1).reshape(len(records), -1)
        return Reading(blocks_of_images(colours, records[:, 0]), {"height": 32, "width": 32, "channels": 3}, colours.shape[1])


def _records(path: Path) -> NDArray[np.uint8]:
    data = content(path)
    if not data or len(data) % _RECORD:
        raise UserError(f"{path}: has {len(data)} bytes, no whole number of records of {_RECORD}: is cut short, or no CIFAR-10")
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, _RECORD)
    wrong = np.flatnonzero(records[:, 0] > 9)
    if wrong.size:
        raise UserError(f"{path}: record {wrong[0] + 1} has the label {records[wrong[0], 0]}; labels are 0 to 9")
    return records
