"""Attacks: a worker's own vector with its sign flipped, and those of workers that know all honest messages."""

from dataclasses import replace
from statistics import NormalDist
from typing import Any, cast

from mpi_compress.core.errors import UserError
from mpi_compress.core.fields import Positive
from mpi_compress.messages.attacks.base import Attack, Vectors, attacks
from mpi_compress.messages.kinds import Accompanied, Blocks, Chained, Compressed, Lattice, Powers, Vector


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


@attacks.register("alie")
class ALIE(Attack):
    """µ − zσ, µ and σ the mean and the standard deviation of each coordinate of the honest vectors: "a little is enough"."""

    z: float | None = None  # z; left out: Φ⁻¹((n − f − s)/(n − f)), s = ⌊n/2 + 1⌋ − f, up to which most would take it for honest
    paper = "Baruch, Baruch, Goldberg (NeurIPS 2019), Algorithm 3; not checked against the paper"
    knows_all = True

    def share(self, n: int, f: int) -> float:
        """(n − f − s)/(n − f)."""
        return (n - f - (n // 2 + 1 - f)) / (n - f)

    def check(self, n: int, f: int) -> None:
        if self.z is None and not 0 < self.share(n, f) < 1:
            raise ValueError(f"alie has no z of its own for {f} of {n} workers: give z")

    def knowing(self, honest: Vectors, f: int) -> Vector:
        z = NormalDist().inv_cdf(self.share(len(honest) + f, f)) if self.z is None else self.z
        return honest.mean(axis=0) - z * honest.std(axis=0)


@attacks.register("ipm")
class IPM(Attack):
    """−εµ, µ the mean of the honest vectors: inner product manipulation."""

    epsilon: Positive = 0.1  # ε
    paper = "Xie, Koyejo, Gupta (UAI 2019); not checked against the paper"
    knows_all = True

    def knowing(self, honest: Vectors, f: int) -> Vector:
        return -self.epsilon * honest.mean(axis=0)
