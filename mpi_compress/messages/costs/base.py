from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from mpi_compress.core.registry import Registry


@dataclass(frozen=True)
class CostModel(ABC):
    """C, the cost of one message as a function of its payload P in bits; it never falls as P grows."""

    on_wire: ClassVar[bool] = False  # whether P is the message as it is sent, and not its paper bits

    @abstractmethod
    def cost(self, payload: Any) -> Any:
        """C(P) for P in bits, a number or an array; per message, because packets round up."""

    def of(self, wire_bits: float, paper_bits: float) -> float:
        """The cost of a message of which both counts are known."""
        return self.cost(wire_bits if self.on_wire else paper_bits)


costs: Registry[CostModel] = Registry("cost model", CostModel)
