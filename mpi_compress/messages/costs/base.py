"""The contract of a cost model."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.registry import Part, Registry


@dataclass(frozen=True)
class CostModel(Part, ABC):
    """C, the cost of one message as a function of its payload P in bits; it never falls as P grows."""

    unit: ClassVar[str] = ""  # what C is counted in, for the axes of figures: "bit", "s"; "": the model does not say
    on_wire: ClassVar[bool] = False  # True: P is the size of the message as it is sent, not its paper bits
    clock: ClassVar[Any] = None  # `links.Links`, which change as a clock goes on; None: C is the same in every round

    down: ClassVar[Any] = None  # the model of messages down, where a job gives each direction its own and this is the uplink's

    @property
    @final
    def of_down(self) -> "CostModel":
        """The model of messages down."""
        return self if self.down is None else self.down

    @property
    @final
    def links(self) -> str:
        """Rates and latencies of links that change, up and down where these differ; "" for a model without a clock."""
        each = [str(model.clock) for model in (self, self.of_down) if model.clock is not None]
        return f"{each[0]} up and {each[1]} down" if len({*each}) > 1 else "".join(each[:1])

    @abstractmethod
    def cost(self, payload: Any) -> Any:
        """C(P) for P in bits, a number or an array; per message, because packets round up."""

    def of(self, wire_bits: float, paper_bits: float) -> float:
        """The cost of a message, of which this takes one of the two counts."""
        return self.cost(wire_bits if self.on_wire else paper_bits)


costs: Registry[CostModel] = Registry("cost model", CostModel)


def check_cost(model: CostModel) -> None:
    """Try a cost model on some payloads; ValueError where a cost is no number from 0 on, or falls as payloads grow."""
    payloads = np.array([0.0, 1.0, 8.0, 1e3, 1e5, 1e8])
    found = np.array([arrays.number(model.cost(payload), "costs") for payload in payloads.tolist()])
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{found[at]:g} was given for {payloads[at]:g} bits; a cost should be a finite number from 0 on")
    if np.any(np.diff(found) < 0):
        raise ValueError("it falls as payloads grow; a cost should not")
    try:
        together = arrays.floats(model.cost(payloads), payloads.shape, "they")
    except (TypeError, ValueError) as error:
        alike = "a cost takes numbers and arrays alike, as np.ceil does"
        raise ValueError(f"costs of an array of payloads: {error}; {alike}") from None
    if not np.array_equal(together, found):
        raise ValueError("an array of payloads costs something else than its payloads one by one")


def at_moment(cost: CostModel, second: float, worker: int) -> CostModel:
    """The cost of a message as a worker plans for it: that of the link of the moment, where the model has a clock."""
    return cost if cost.clock is None else cost.clock.at(second, worker)


def files_of(cost: CostModel) -> list[str]:
    """The paths of files that decide the costs, up and down."""
    each = [cost] if cost.down is None else [cost, cost.down]
    return [name for model in each if isinstance(name := getattr(model, "file", None), str)]
