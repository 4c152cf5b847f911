from typing import Any

from mpi_compress.messages.costs.base import CostModel, costs


@costs.register("payload")
class Payload(CostModel):
    """C = P, in bits: overheads are ignored (CAT eq. 5)."""

    unit = "bit"

    def cost(self, payload: Any) -> Any:
        return payload
