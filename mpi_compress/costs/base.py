from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from mpi_compress.registry import Registry


@dataclass(frozen=True)
class CostModel(ABC):
    """C, the cost of one message as a function of its payload P in bits (paper bits); it never falls as P grows."""

    @abstractmethod
    def cost(self, payload: Any) -> Any:
        """C(P) for P in bits, a number or an array; per message, because packets round up."""


costs: Registry[CostModel] = Registry("cost model")
