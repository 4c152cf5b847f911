from typing import Annotated, Any

import numpy as np

from mpi_compress.core.fields import within
from mpi_compress.messages.costs.base import CostModel, costs

_LARGEST_PACKET = 133


@costs.register("ieee-802.15.4")
class IEEE802154(CostModel):
    """Bits in a low-power radio network: packets of up to 133 bytes, 23 to 82 of them overhead (CAT, 'Communication Cost')."""

    paper, unit = "CAT, after Kozłowski and Sosnowski (2017)", "bit"
    overhead: Annotated[int, within("[23, 82]")] = 23  # overhead of a packet, from 23 to 82 [bytes]

    def cost(self, payload: Any) -> Any:
        room = 8.0 * (_LARGEST_PACKET - self.overhead)
        return payload + 8.0 * self.overhead * np.maximum(1.0, np.ceil(payload / room))
