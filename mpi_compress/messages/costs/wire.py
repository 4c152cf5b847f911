from typing import Any

from mpi_compress.messages.costs.base import CostModel, costs


@costs.register("wire")
class Wire(CostModel):
    """C = the bits of the message as it is sent: what the codec writes, its padding and its 4-byte length included.

    CAT tunes for it where T alone decides what the codec writes: fixed and bitmap.
    """

    on_wire, unit = True, "bit"

    def cost(self, payload: Any) -> Any:
        return payload
