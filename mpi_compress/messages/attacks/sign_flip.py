from dataclasses import replace
from typing import Any, cast

from mpi_compress.core.errors import UserError
from mpi_compress.core.fields import Positive
from mpi_compress.messages.attacks.base import Attack, attacks
from mpi_compress.messages.kinds import Accompanied, Blocks, Chained, Compressed, Lattice, Powers


@attacks.register("sign-flip")
class SignFlip(Attack):
    """−s·v in place of v, by the run's codec: its bytes cross the exchange. A worker's own memory is that of an honest one."""

    scale: Positive = 1.0  # s
    paper = "Li, Xu, Chen, Giannakis, Ling (AAAI 2019); not checked against the paper"

    def told(self, c: Compressed) -> Compressed:
        return times(c, -self.scale)

    def sends(self, kind: type[Compressed]) -> bool:
        return self.scale == 1 or kind not in (Powers, Lattice)


def times(c: Any, factor: float) -> Any:
    """factor · c, a compressed vector of the same kind; of a kind of whole numbers alone −c."""
    if isinstance(c, Blocks):
        return replace(c, parts=tuple(times(part, factor) for part in c.parts))
    if isinstance(c, Chained):
        return replace(c, values=times(c.values, factor)) if c.elements else c
    if isinstance(c, Accompanied):
        return replace(cast(Any, c), vector=times(c.vector, factor))
    if isinstance(c, Powers | Lattice):
        assert factor == -1, "`Attack.sends` says so"
        return replace(cast(Any, c), integers=-c.integers)
    if not (floats := getattr(c, "floats", ())):
        raise UserError(f"sign-flip cannot change a {type(c).__name__}: its class names no floats")
    return replace(c, **{name: factor * getattr(c, name) for name in floats})
