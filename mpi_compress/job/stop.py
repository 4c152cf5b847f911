"""When a run ends, and as what."""

import math
from dataclasses import dataclass
from enum import IntEnum


@dataclass(frozen=True)
class Stop:
    """A job's [stop]: whichever comes first. Loss, suboptimality and distance are looked at in logged rounds."""

    rounds: int | None = None
    loss: float | None = None
    suboptimality: float | None = None
    relative_distance: float | None = None  # ‖x − x*‖ / ‖x0 − x*‖
    wire_bits_up: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if all(v is None for v in vars(self).values()):
            raise ValueError("rounds = … is needed, or loss, suboptimality, relative_distance, wire_bits_up, seconds")
        for key, value in vars(self).items():
            if value is None:
                continue
            if not -math.inf < value < math.inf:
                raise ValueError(f"{key} = {value} is no finite number")
            if value < 0:
                raise ValueError(f"{key} = {value} must be 0 or more")

    def is_met(self, loss: float, suboptimality: float, distance: float, start: float) -> bool:
        """Whether a run has come down to a level; `start` is ‖x0 − x*‖."""
        return (
            (self.loss is not None and loss <= self.loss)
            or (self.suboptimality is not None and suboptimality <= self.suboptimality)
            or (self.relative_distance is not None and distance <= self.relative_distance * start)
        )

    @property
    def each_round(self) -> bool:
        """Whether a run may end in any round, which only the root sees."""
        return self.wire_bits_up is not None or self.seconds is not None


class Verdict(IntEnum):
    """What becomes of a run after a round."""

    GO_ON = 0
    COMPLETE = 1
    DIVERGED = 2
    STOPPED = 3  # before it was done, its state saved
