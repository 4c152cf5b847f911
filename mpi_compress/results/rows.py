"""Rows of a result: one by column, and those of a run that is under way."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.results.columns import Result, column_of


class ResultRow(dict[str, Any]):
    """One row of a result by column: `label`, the columns of the trace, `seconds`; and derived ones, as row["wire_bits"]."""

    def __init__(self, run: Result, number: int):
        columns = {**run.trace, "seconds": run.timing["seconds"]}
        super().__init__({"label": run.label, **{name: values[number].item() for name, values in columns.items()}})
        self._run, self._number = run, number

    def __missing__(self, name: str) -> Any:
        try:
            return self._run.column(name)[self._number].item()
        except UserError as error:
            raise KeyError(str(error)) from None


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
