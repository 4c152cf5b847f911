"""Rows of a run that is under way."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.results.columns import column_of


class RowsSoFar:
    """Rows of a run that is under way, whose columns are derived as those of its result will be."""

    def __init__(self, rows: Sequence[Mapping[str, float]], attrs: Mapping[str, Any]):
        self._rows, self.attrs = rows, attrs

    def column(self, name: str) -> NDArray:
        """A column of /trace or /timing, or one that is derived from them; UserError if the run has none of that name."""
        if name in self._rows[-1]:
            return np.array([row[name] for row in self._rows], dtype=float)
        if (derive := column_of(name).derive) is None:
            raise UserError(f"this run logs no column '{name}'; it logs {', '.join(self._rows[-1])}")
        return derive(self)
