"""What workers report of a point: named fields in one vector, so that one message carries them to rank 0."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpi_compress.messages.kinds import Vector


class Layout:
    """Where the fields of a report lie in its vector.

    Args:
        largest: names and lengths of the fields of which the largest over workers is wanted.
        added: names and lengths of those whose sum is wanted; None, for the last one only: whatever is left, perhaps nothing.
    """

    def __init__(self, largest: Mapping[str, int], added: Mapping[str, int | None]):
        self._places: dict[str, slice] = {}
        at = 0
        for name, length in (*largest.items(), *added.items()):
            self._places[name] = slice(at, None if length is None else at + length)
            at += length or 0
        self._known, self._last, self.n_largest = at, name, sum(largest.values())

    def pack(self, **fields: Any) -> Vector:
        """The vector of these fields, numbers or arrays of one axis."""
        out = np.empty(self._known + (np.size(fields[self._last]) if self._places[self._last].stop is None else 0))
        for name, place in self._places.items():
            out[place] = fields[name]
        return out

    def field(self, name: str, report: Vector) -> Vector:
        """A field of a report, in the report's own memory."""
        return report[self._places[name]]


class Tally:
    """Takes workers' reports one by one in worker order: the largest of some fields, the sums of the others.

    Args:
        kept: the field that is kept for each worker as well.
    """

    def __init__(self, layout: Layout, kept: str):
        self._layout, self._kept_field = layout, kept
        self._folded: Vector | None = None
        self.kept: list[Vector] = []

    def add(self, report: Vector) -> None:
        """Take the next worker's report."""
        self.kept.append(self._layout.field(self._kept_field, report).copy())
        if self._folded is None:
            self._folded = report.copy()
            return
        n = self._layout.n_largest
        largest, sums = self._folded[:n], self._folded[n:]
        np.maximum(largest, report[:n], out=largest)
        sums += report[n:]

    def __getitem__(self, name: str) -> Vector:
        """The largest over workers of a field, or its sum."""
        assert self._folded is not None
        return self._layout.field(name, self._folded)
