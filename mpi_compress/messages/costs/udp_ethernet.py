from typing import Any

import numpy as np

from mpi_compress.messages.costs.base import CostModel, costs

_HEADERS = 54 * 8.0  # Ethernet, IP and UDP, as the paper counts them
_PAYLOAD = 1472 * 8.0


@costs.register("udp-ethernet")
class UDPEthernet(CostModel):
    """Bits on an Ethernet: UDP packets of up to 1472 payload bytes, each with 54 bytes of headers (CAT, 'Communication Cost')."""

    paper, unit = "CAT, after RFC 768 and IEEE 802.3", "bit"

    def cost(self, payload: Any) -> Any:
        return payload + _HEADERS * np.maximum(1.0, np.ceil(payload / _PAYLOAD))
