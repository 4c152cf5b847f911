"""Costs that are formulas of a payload."""

from typing import Annotated, Any

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
class Wire(CostModel):
    """C = the bits of the message as it is sent: what the codec writes, its padding and its 4-byte length included.

    CAT tunes for it where T alone decides what the codec writes: fixed and bitmap.
    """

    on_wire, unit = True, "bit"

    def cost(self, payload: Any) -> Any:
        return payload


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
