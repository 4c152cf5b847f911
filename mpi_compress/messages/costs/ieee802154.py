from typing import Any

import numpy as np

from mpi_compress.messages.costs.base import CostModel, costs

_LARGEST_PACKET = 133


@costs.register("ieee-802.15.4")
class IEEE802154(CostModel):
    """Bits in a low-power radio network: packets of up to 133 bytes, 23 to 82 of them overhead (CAT, 'Communication Cost')."""

    paper, unit = "CAT, after Kozłowski and Sosnowski (2017)", "bit"
    overhead: int = 23  # overhead of a packet, from 23 to 82 [bytes]

    def __post_init__(self) -> None:
        if not 23 <= self.overhead <= 82:
            raise ValueError(f"overhead = {self.overhead} bytes; packets have from 23 to 82 of them")

    def cost(self, payload: Any) -> Any:
        room = 8.0 * (_LARGEST_PACKET - self.overhead)
        return payload + 8.0 * self.overhead * np.maximum(1.0, np.ceil(payload / room))
