"""The contract of cost models with a clock: links that change with time, and rounds that take seconds on them."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from mpi_compress.messages.costs.base import CostModel


@dataclass(frozen=True)
class Moment(CostModel):
    """C = latency + P/bandwidth, in seconds: a link as it is at one moment."""

    on_wire = True
    latency: float  # seconds a message
    bandwidth: float  # bits a second

    def cost(self, payload: Any) -> Any:
        return self.latency + payload / self.bandwidth


class Clocked(CostModel):
    """A cost model in seconds with a clock: links may change as it goes on, and methods plan for the link of the moment."""

    on_wire, unit = True, "s"

    @abstractmethod
    def at(self, second: float, worker: int) -> Moment:
        """The link of a worker at a second of the clock."""

    @abstractmethod
    def arrival(self, bits: float, second: float, worker: int) -> tuple[float, float]:
        """When a message that is sent at `second` has arrived, and the latency that it had; the link may change meanwhile."""

    @abstractmethod
    def computing(self, nonzeros: float) -> float:
        """The seconds that a worker computes a gradient over so many nonzeros of its rows."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The links in a few words."""

    def cost(self, payload: Any) -> Any:
        """C(P) on the link of worker 0 as the clock starts."""
        return self.at(0.0, 0).cost(payload)


def at_moment(cost: CostModel, second: float, worker: int) -> CostModel:
    """The cost of a message as a worker plans for it: that of the link of the moment, where the model has a clock."""
    return cost.at(second, worker) if isinstance(cost, Clocked) else cost
