import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpi_compress.costs.base import CostModel, costs


@costs.register("table")
@dataclass(frozen=True)
class Table(CostModel):
    """Seconds on a link that was measured: C from `mpi-compress calibrate -o link.toml` (CAT, experiment 1).

    `fit` says what is taken of it: its affine or its packet model, or the measured points with straight lines between them (made
    to rise, beyond the last one with the slope of the affine model).
    """

    file: str
    fit: Literal["affine", "packet", "points"] = "affine"
    _of: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            with Path(self.file).open("rb") as text:
                link = tomllib.load(text)
            numbers = {key: [float(v) for v in np.atleast_1d(value)] for key, value in _flat(link).items()}
            (c0,), (c1,) = numbers["affine.c0"], numbers["affine.c1"]
            packet = [numbers[f"packet.{key}"][0] for key in ("c0", "c1", "pmax")]
            bits, seconds = (np.array(numbers[f"points.{key}"]) for key in ("bits", "seconds"))
        except FileNotFoundError:
            raise ValueError(
                f"file = '{self.file}': there is no such file; `mpi-compress calibrate -o {self.file}` makes one"
            ) from None
        except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"file = '{self.file}' is no table that `mpi-compress calibrate` made: {error}") from None
        if not (
            c0 + c1 > 0
            and min(c0, c1, *packet) >= 0
            and packet[2] > 0
            and bits.size == seconds.size > 0
            and np.all(np.diff(bits) > 0)
        ):
            raise ValueError(f"file = '{self.file}': costs must be 0 or more and sizes must rise")
        rising = np.maximum.accumulate(seconds)
        object.__setattr__(self, "_of", {"affine": (c0, c1), "packet": packet, "points": (bits, rising)})

    def cost(self, payload: Any) -> Any:
        c0, c1 = self._of["affine"]
        if self.fit == "affine":
            return c1 * payload + c0
        if self.fit == "packet":
            p0, p1, pmax = self._of["packet"]
            return p1 * np.ceil(payload / pmax) + p0
        bits, seconds = self._of["points"]
        return np.interp(payload, bits, seconds) + c1 * np.maximum(0.0, payload - bits[-1])


def _flat(tables: dict[str, Any]) -> dict[str, NDArray | float]:
    return {
        f"{name}.{key}": v
        for name, table in tables.items()
        if isinstance(table, dict)
        for key, v in table.items()
        if key != "remark"
    }
