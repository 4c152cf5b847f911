from typing import Any

import numpy as np

from mpi_compress.core.expressions import Size, bits
from mpi_compress.core.registry import fact
from mpi_compress.messages.costs.base import CostModel, costs


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
