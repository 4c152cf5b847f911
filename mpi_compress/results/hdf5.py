"""Arrays of HDF5 files that nobody need trust."""

from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray


class Refused(Exception):
    """A dataset is larger than the file can hold, or lies elsewhere."""


def arrays(group: Any, most: int) -> dict[str, NDArray]:
    """The arrays of a group's datasets by their names; none of None. Refused: a dataset is larger than `most`, the bytes that the
    file can hold, or the group or a dataset leads to another file."""
    return {name: array(group, name, most) for name in group or ()}


def within(group: Any, path: str) -> Any:
    """A member of a group, by its path; None if there is none; Refused if it is a link, which may lead to another file."""
    for name in path.split("/"):
        link = group.get(name, getlink=True)
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise Refused(f"its {group.name.rstrip('/')}/{name} is a link")
        group = group[name]
    return group


def array(group: Any, name: str, most: int) -> NDArray:
    """The array of one of a group's datasets, as in `arrays`."""
    dataset = within(group, name)
    if dataset.is_virtual or dataset.external:
        raise Refused(f"its {dataset.name} lies in another file")
    if dataset.nbytes > most:
        raise Refused(f"its dataset {dataset.name} has shape {dataset.shape}, more than the file holds")
    return np.asarray(dataset[()])
