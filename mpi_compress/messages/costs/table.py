import sys
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mpi_compress.messages.costs.base import CostModel, costs


@costs.register("table")
class Table(CostModel):
    """Seconds on a link that was measured: C from `mpi-compress calibrate -o link.toml` (CAT, experiment 1).

    `fit`: the table's affine model, its packet model, or its measured points, joined by straight lines. Points are raised where
    they would fall, and beyond the last one the line has the slope of the affine model.
    """

    unit = "s"
    file: str  # path of the table, here or beside the job
    fit: Literal["affine", "packet", "points"] = "affine"  # the affine model, the packet model, or straight lines between points

    def __post_init__(self) -> None:
        (c0, c1), packet, (bits, seconds) = self._models
        rises = bits.size == seconds.size > 0 and np.all(np.diff(bits) > 0)
        if not (rises and c0 + c1 > 0 and min(c0, c1, *packet) >= 0 and packet[2] > 0):
            raise ValueError(f"file = '{self.file}': costs must be 0 or more and sizes must rise")

    @cached_property
    def _models(self) -> Any:
        """The affine model (c0, c1), the packet model (p0, p1, pmax), and points (bits, seconds) whose seconds do not fall."""
        try:
            link = tomllib.loads(Path(self.file).read_text(encoding="utf-8"))
            c0, c1, *packet = (_finite(link, key) for key in ("affine.c0", "affine.c1", "packet.c0", "packet.c1", "packet.pmax"))
            bits, seconds = (np.array(_finite(link, f"points.{key}", many=True)) for key in ("bits", "seconds"))
        except FileNotFoundError:
            remedy = f"`mpi-compress calibrate -o {self.file}` makes one"
            raise ValueError(f"file = '{self.file}': there is no such file; {remedy}") from None
        except OSError as error:
            raise ValueError(f"file = '{self.file}' cannot be read: {error.strerror}") from None
        except ValueError as error:
            no_toml = "it is no TOML: " if isinstance(error, tomllib.TOMLDecodeError | UnicodeDecodeError) else ""
            raise ValueError(f"file = '{self.file}' is no table that `mpi-compress calibrate` made: {no_toml}{error}") from None
        return (c0, c1), packet, (bits, np.maximum.accumulate(seconds))

    def cost(self, payload: Any) -> Any:
        (c0, c1), (p0, p1, pmax), (bits, seconds) = self._models
        if self.fit == "affine":
            return c1 * payload + c0
        if self.fit == "packet":
            return p1 * np.ceil(payload / pmax) + p0
        return np.interp(payload, bits, seconds) + c1 * np.maximum(0.0, payload - bits[-1])


def _finite(link: dict[str, Any], key: str, many: bool = False) -> Any:
    """The number at a key such as affine.c0, or with `many` the list of numbers; ValueError where there is none."""
    name, inner = key.split(".")
    try:
        value = link[name][inner]
    except (KeyError, TypeError):
        raise ValueError(f"it has no {key}") from None
    if isinstance(value, list) != many or not all(map(_is_number, value if many else [value])):
        raise ValueError(f"{key} should be a list of finite numbers" if many else f"{key} = {value!r} should be a finite number")
    return [float(v) for v in value] if many else float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
