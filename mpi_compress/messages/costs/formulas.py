"""Costs that are formulas of a payload, and the one that was measured."""

import sys
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from mpi_compress.core.expressions import Size, bits
from mpi_compress.core.fields import within
from mpi_compress.core.registry import fact
from mpi_compress.messages.costs.base import CostModel, costs


@costs.register("payload")
class Payload(CostModel):
    """C = P, in bits: overheads are ignored (CAT eq. 5)."""

    unit = "bit"

    def cost(self, payload: Any) -> Any:
        return payload


@costs.register("wire")
class Wire(Payload):
    """C = the bits of the message as it is sent: what the codec writes, its padding and its 4-byte length included.

    CAT tunes for it where T alone decides what the codec writes: fixed and bitmap.
    """

    on_wire = True


@costs.register("affine")
class Affine(CostModel):
    """C = c1·P + c0 (CAT, 'Communication Cost').

    c1 is the cost of one payload bit, c0 that of a message: a size ("54 B"), or a number in the unit that c1 uses
    (seconds, joules).
    """

    c0: Size  # c0, the cost of a message: a size ("54 B"), or a number in the unit of c1
    c1: float = 1.0  # c1, the cost of a payload bit: 1 for a cost in bits, else seconds or joules a bit

    def __post_init__(self) -> None:
        if not self.c1 >= 0 or bits(self.c0) + self.c1 == 0:
            raise ValueError(f"c1 = {self.c1} must be 0 or more, and not 0 together with c0")

    @fact
    def unit(self) -> str:
        return "bit" if self.c1 == 1 or (self.c1 == 0 and isinstance(self.c0, str)) else ""

    def cost(self, payload: Any) -> Any:
        return self.c1 * payload + bits(self.c0)


@costs.register("packet")
class Packet(CostModel):
    """C = c1·⌈P/Pmax⌉ + c0 (CAT eq. 6): c1 for each packet, c0 for the message; Pmax is the payload of a packet.

    Each is a size ("128 B"); c1 and c0 may both be numbers in another unit (seconds, joules).
    """

    c1: Size  # c1, the cost of a packet: a size ("128 B"), or a number in another unit, such as seconds
    pmax: Size  # Pmax, the payload of a packet: a size ("128 B")
    c0: Size = 0.0  # c0, the cost of a message: a size ("54 B"), or a number in the unit of c1

    def __post_init__(self) -> None:
        if bits(self.pmax) <= 0 or bits(self.c1) <= 0:
            raise ValueError(f"pmax = {self.pmax!r} and c1 = {self.c1!r} must be more than 0")
        if isinstance(self.pmax, float | int):
            raise ValueError(f'pmax = {self.pmax} needs a unit, such as "{self.pmax:g} B"')

    @fact
    def unit(self) -> str:
        return "bit" if isinstance(self.c1, str) else ""

    def cost(self, payload: Any) -> Any:
        return bits(self.c1) * np.ceil(payload / bits(self.pmax)) + bits(self.c0)


_HEADERS = 54 * 8.0  # Ethernet, IP and UDP, as the paper counts them
_PAYLOAD = 1472 * 8.0


@costs.register("udp-ethernet")
class UDPEthernet(CostModel):
    """Bits on an Ethernet: UDP packets of up to 1472 payload bytes, each with 54 bytes of headers (CAT, 'Communication Cost')."""

    paper, unit = "CAT, after RFC 768 and IEEE 802.3", "bit"

    def cost(self, payload: Any) -> Any:
        return payload + _HEADERS * np.maximum(1.0, np.ceil(payload / _PAYLOAD))


_LARGEST_PACKET = 133


@costs.register("ieee-802.15.4")
class IEEE802154(CostModel):
    """Bits in a low-power radio network: packets of up to 133 bytes, 23 to 82 of them overhead (CAT, 'Communication Cost')."""

    paper, unit = "CAT, after Kozłowski and Sosnowski (2017)", "bit"
    overhead: Annotated[int, within("[23, 82]")] = 23  # overhead of a packet, from 23 to 82 [bytes]

    def cost(self, payload: Any) -> Any:
        room = 8.0 * (_LARGEST_PACKET - self.overhead)
        return payload + 8.0 * self.overhead * np.maximum(1.0, np.ceil(payload / room))


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
            link = tomllib.loads(Path(self.file).read_text(encoding="utf-8-sig"))
            c0, c1, *packet = (_finite(link, key) for key in ("affine.c0", "affine.c1", "packet.c0", "packet.c1", "packet.pmax"))
            bits, seconds = (np.array(_finite(link, f"points.{key}", many=True)) for key in ("bits", "seconds"))
        except OSError as error:
            remedy = f"`mpi-compress calibrate -o {self.file}` makes one"
            raise ValueError(f"file = '{self.file}' cannot be read: {error.strerror}; {remedy}") from None
        except ValueError as error:
            raise ValueError(f"file = '{self.file}' is no table that `mpi-compress calibrate` made: {error}") from None
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
    each = value if many else [value]
    if not (isinstance(each, list) and all(type(v) in (int, float) and abs(v) <= sys.float_info.max for v in each)):
        raise ValueError(f"{key} should be a list of finite numbers" if many else f"{key} = {value!r} should be a finite number")
    return [*map(float, value)] if many else float(value)
