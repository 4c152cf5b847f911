from dataclasses import dataclass

from mpi_compress.messages.kinds import Vector


@dataclass(frozen=True)
class Optimum:
    """x* and f*, as a solver found them."""

    x: Vector  # (d,)
    f: float
    accuracy: float  # bounds f(x) − f* and the rounding of f: a smaller suboptimality is not progress
    reached: float  # the solver's measure of the error, over its value at 0: ‖∇f(x)‖ or the duality gap
