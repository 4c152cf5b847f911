"""A link in seconds and bits, as the model of scale takes it."""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.messages.costs import costs as cost_models


@dataclass(frozen=True)
class LinkCosts:
    """A link in seconds and bits."""

    c0: float = 0.0  # of a message
    c1: float = 0.0  # a bit
    message: float = 0.0  # of the processor that sends and receives a message: where many meet, it takes them in turn

    @classmethod
    def of(cls, file: Path) -> "LinkCosts":
        """The affine model of a table that `calibrate` wrote; UserError if it is none."""
        table = cost_models.build({"name": "table", "file": str(file)}, "--link")
        known = tomllib.loads(file.read_text(encoding="utf-8")).get("compute", {})
        message = known.get("message", 0.0) if isinstance(known, Mapping) else known
        is_number = isinstance(message, int | float) and not isinstance(message, bool)
        if known is message or not is_number or not 0 <= message <= sys.float_info.max:
            raise UserError(f"--link: file = '{file}': compute.message should be a time in seconds, 0 or more")
        c0 = float(table.cost(0.0))
        return cls(c0, float(table.cost(1e9) - c0) / 1e9, float(message))
