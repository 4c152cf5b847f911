"""The contract of a compressor, and parameters that several of them share."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.fields import Checked, within
from mpi_compress.core.forms import complete
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.returned import returns
from mpi_compress.core.streams import Round, Rounds
from mpi_compress.messages.kinds import Compressed, Sparse, Vector, checked, stacked


def _stated(most: float) -> Callable[..., float | None]:
    """The check of what a theorem states: a number from 0 on, or None where there is no such theorem."""

    def check(part: Any, given: Any, dim: int) -> Any:
        if not (given is None or (isinstance(given, int | float | np.number) and 0 <= given <= most)):
            right = f"a number from 0 to {most:g}, or None where there is no such theorem"
            raise ValueError(f"{arrays.shown(given)} was given for d = {dim}; it should be {right}")
        return given

    return check


@dataclass(frozen=True)
class Compressor(Part, ABC):
    """A map from vectors to compressed vectors, defined for every vector: ties, zeros and denormals included. A compressor states
    its theorem: `delta` where it is contractive, `omega` where it is unbiased, `variance` where it is absolute, none of them where
    it is none of these."""

    name: ClassVar[str]  # in jobs; set by its registration
    makes: ClassVar[type[Compressed]] = Sparse  # the kind of message
    codec: ClassVar[str] = "fixed"  # the codec that its paper counts
    paper: ClassVar[str] = ""
    draws_indices: ClassVar[bool] = False  # True: chance alone says which coordinates are sent, not the vector
    follows: ClassVar[Literal["", "step", "regime", "noise", "range"]] = ""  # what of a run sets a parameter; "": nothing

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        complete(cls, Compressor, {"compress": ("compress_rows", _by_rows)})

    @abstractmethod
    @returns(lambda compressor, given, v, *_: checked(given, v.size), given=arrays.read_only)
    def compress(self, v: Vector, t: Round, *state: Any, **named: Any) -> Compressed:  # a subclass has state, or it has none
        """C(v) of v (d,). NaN and infinity are passed on, never lost; random choices are drawn from `t.rng`. A compressor that
        remembers something from one message to the next defines `start`, and `compress(v, t, state)`."""

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        """C of each row of V (m, d), as rows; each draws from its own stream. A compressor defines this or `compress`."""
        return stacked([self.applied(v, t[i]) for i, v in enumerate(V)])

    def start(self, dim: int) -> Any:
        """What a node's compressor remembers before its first message: arrays, lists, a dict or a dataclass of them. `compress`
        gets it, and changes it in place. Each worker has its own, and so has the master; checkpoints save it."""
        return None

    def applied(self, v: Vector, t: Round) -> Compressed:
        """C(v), with the node's state where there is one."""
        return self.compress(v, t, t.state) if has_state(self) else self.compress(v, t)

    def known(self, dim: int) -> Mapping[str, Any]:
        """What a receiver must know to read this compressor's messages and both ends know beforehand: it costs no bits. Its keys
        are fields of the kind of message: `bucket` for Levels; `sigma`, `radius` (None: it is sent) and `stochastic` for
        Lattice."""
        return {}

    def check(self, dim: int) -> None:
        """Raise ValueError where the parameters cannot be meant for vectors of `dim` coordinates."""

    def in_run(self, dim: int, **known: Any) -> "Compressor":
        """This compressor with the parameters that follow from what is known of a run; others stay.

        Args:
            known: `sizes`, the coordinates of each block of the model, none for a loss of a margin; or, by what it `follows`,
                `step`: γ of the round; `regime`: True in a critical one (ACCORDION); `noise`: (ζ², σ²) of the gradients at the
                start, ζ² ≥ (1/n) Σ‖∇f_i − ∇f‖² and σ² ≥ E‖ξ_i‖² (HT Assumptions 4 and 3, C = M = 0).
        """
        return self

    @returns(_stated(1.0))
    def delta(self, dim: int) -> float | None:
        """δ with ‖v − C(v)‖² ≤ (1 − δ)‖v‖² for every v (in the mean, where C is random); None: not contractive. An unbiased C with
        ω < 1 is contractive with δ = 1 − ω."""
        ω = self.omega(dim)
        return None if ω is None or ω >= 1 else 1.0 - ω

    @returns(_stated(math.inf))
    def omega(self, dim: int) -> float | None:
        """ω with E C(v) = v and E‖C(v) − v‖² ≤ ω‖v‖² for every v; None: biased, or not bounded so."""
        return None

    @returns(_stated(math.inf))
    def variance(self, dim: int) -> float | None:
        """v² with ‖v − C(v)‖² ≤ v² for every v (in the mean, where C is random; HT Definition 3); None: not absolute."""
        return None

    def unbiased(self, dim: int) -> bool:
        """True if E C(v) = v for every v."""
        return self.omega(dim) is not None


def _by_rows(self: Compressor, of_rows: Callable[..., Any], v: Vector, t: Round, *state: Any, **named: Any) -> Any:
    """`compress` by rows of one."""
    return of_rows(self, np.ascontiguousarray(v, dtype=np.float64)[None], Rounds.of(t))[0]


class AmongWorkers(Compressor):
    """A compressor whose messages of all n workers belong together, so that it must know how many there are."""

    @abstractmethod
    def among(self, n: int) -> "AmongWorkers":
        """This compressor in a run of n workers; ValueError where its parameters name another number."""


def among(compressor: Compressor, n: int) -> Compressor:
    """A compressor in a run of n workers."""
    return compressor.among(n) if isinstance(compressor, AmongWorkers) else compressor


class Sized(Compressor):
    """A compressor Q_s with a size s, which an algorithm may tune: the paper bits of a message follow from s and d."""

    size_field: ClassVar[str]  # the name of the field that is s

    def sizes(self, dim: int) -> Sequence[int]:
        """The sizes to choose from for vectors (dim,), at most 255, the first ones with the fewest bits: 1, 2, 4, … and d."""
        return [*(1 << i for i in range((dim - 1).bit_length())), dim]

    def check(self, dim: int) -> None:
        self.known(dim)  # which raises where the size is not evaluated
        super().check(dim)

    def at_size(self, size: int) -> "Sized":
        """This compressor with that size."""
        return replace(self, **{self.size_field: size})

    @abstractmethod
    def payload(self, dim: int, fpp: int) -> float:
        """The paper bits of its messages of vectors (dim,)."""


compressors: Registry[Compressor] = Registry("compressor", Compressor)


def _count(k: Any) -> Any:
    if isinstance(k, str):
        if not re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*%\s*", k):
            raise ValueError("a count such as 10 or a percentage such as '0.2%'")
        share(k)
    elif not (isinstance(k, int | np.integer) and k >= 1):
        raise ValueError("at least 1 (or a percentage above 0)")
    return k


Count = Annotated[int | str, Checked(_count, is_range=True)]
"""How many coordinates: 10, or a share of d, "0.2%"."""

Levels32 = Annotated[int, within("[1, 2147483647]")]
"""A number of levels that 32 bits hold."""


def share(k: str) -> float:
    """The share that a percentage means."""
    value = float(k.strip().removesuffix("%")) / 100
    if not 0 < value <= 1:
        raise ValueError("a percentage above 0 and up to 100")
    return value


def evaluated(value: Any, wanted: str) -> Any:
    """A parameter that has been set; ValueError if it has not."""
    if value is None:
        raise ValueError(f"needs {wanted} (only some algorithms set it)")
    return value


def count_of(k: int | str | None, dim: int) -> int:
    """The number of coordinates that k means for d = dim: the nearest whole number to a share of d, and at least 1."""
    k = evaluated(k, "k = a count or a percentage")
    if isinstance(k, str):
        return max(1, round(share(k) * dim))
    if k > dim:
        raise ValueError(f"k = {k} is more than the d = {dim} coordinates there are")
    return k


def has_state(compressor: Compressor) -> bool:
    """True if it remembers something from one message to the next: its class defines `start`."""
    return type(compressor).start is not Compressor.start


def coordinates_sent(compressor: Compressor, dim: int) -> int | None:
    """How many of `dim` coordinates a compressor sends, or the first one of a chain, where it has a k that says so."""
    k = getattr(getattr(compressor, "outer", compressor), "k", None)
    return count_of(k, dim) if isinstance(k, int) or (isinstance(k, str) and "%" in k) else None


class OfK(Compressor):
    """A compressor that sends k of the coordinates."""

    k: Count | None

    def check(self, dim: int) -> None:
        count_of(self.k, dim)


def one_of(**values: object) -> None:
    """Raise ValueError unless exactly one value is given."""
    given = [f"{name} = {value}" for name, value in values.items() if value is not None]
    if len(given) != 1:
        raise ValueError(f"needs one of {', '.join(values)}; given: {' and '.join(given) or 'none'}")
