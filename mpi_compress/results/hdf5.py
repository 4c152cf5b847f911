"""Datasets of HDF5 by its own calls: h5py's own layer takes several times as long where columns are short."""

from functools import cache
from math import prod
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5l, h5p, h5s, h5t
from numpy.typing import NDArray

CHUNK = 1024  # elements: what a column of few rows takes on the disk


class Refused(Exception):
    """A dataset is larger than the file can hold, or lies elsewhere."""


class GrowingDataset:
    """A dataset that rows are appended to, (m, …) `rows` the first ones; the groups of "group/name" are made with it."""

    def __init__(self, within: Any, name: str, rows: NDArray[Any]):
        self.dtype, self.shape = rows.dtype, rows.shape
        space = h5s.create_simple(rows.shape, (h5s.UNLIMITED, *rows.shape[1:]))
        settings = _in_chunks((max(1, CHUNK // max(1, rows[0].size)), *rows.shape[1:]))
        self._id = h5d.create(within.id, name.encode(), h5t.py_create(rows.dtype), space, settings, _with_groups())
        self._id.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(rows))

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows (m, …) behind the others."""
        start = (self.shape[0], *(0 for _ in self.shape[1:]))
        self.shape = (self.shape[0] + len(rows), *self.shape[1:])
        self._id.set_extent(self.shape)
        there = self._id.get_space()
        there.select_hyperslab(start, rows.shape)
        self._id.write(h5s.create_simple(rows.shape), there, np.ascontiguousarray(rows))


@cache
def _in_chunks(shape: tuple[int, ...]) -> Any:
    settings = h5p.create(h5p.DATASET_CREATE)
    settings.set_chunk(shape)
    settings.set_obj_track_times(False)
    return settings


@cache
def _with_groups() -> Any:
    """Properties of a link whose name may have any letters, and whose groups are made with it."""
    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    links.set_char_encoding(h5t.CSET_UTF8)
    return links


def arrays(group: Any, most: int) -> dict[str, NDArray[Any]]:
    """The arrays of a group's datasets by their names; none of None. Refused: a dataset is larger than `most`, the bytes that the
    file can hold, or the group or a dataset leads to another file."""
    return {name: array(group, name, most) for name in group or ()}


def within(group: Any, path: str) -> Any:
    """A member of a group, by its path; None if there is none; Refused if it is a link, which may lead to another file."""
    for name in path.split("/"):
        if not group.id.links.exists(name.encode()):
            return None
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise Refused(f"its {group.name.rstrip('/')}/{name} is a link")
        group = group[name]
    return group


def array(group: Any, name: str, most: int) -> NDArray[Any]:
    """The array of one of a group's datasets, as in `arrays`."""
    if group.id.links.get_info(name.encode()).type != h5l.TYPE_HARD:
        raise Refused(f"its dataset {group.name.rstrip('/')}/{name} is a link")
    dataset = h5d.open(group.id, name.encode())
    how = dataset.get_create_plist()
    if how.get_layout() == h5d.VIRTUAL or how.get_external_count():
        raise Refused(f"its dataset {group.name.rstrip('/')}/{name} lies in another file")
    shape, dtype = dataset.shape, dataset.dtype
    if prod(shape) * dtype.itemsize > most:
        raise Refused(f"its dataset {group.name.rstrip('/')}/{name} has shape {shape}, more than the file holds")
    if dtype.kind not in "fiub" or not shape:
        return h5py.Dataset(dataset)[:]
    found: NDArray[Any] = np.empty(shape, dtype)
    if found.size:
        dataset.read(h5s.ALL, h5s.ALL, found)
    return found
