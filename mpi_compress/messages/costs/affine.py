from typing import Any

from mpi_compress.core.expressions import Size, bits
from mpi_compress.core.registry import fact
from mpi_compress.messages.costs.base import CostModel, costs


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
