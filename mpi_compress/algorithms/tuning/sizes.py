"""CAT's choice for a compressor Q_s with a size s: the s of the largest improvement(s)/C(s), the first one among equals.

f(x − Q/L) ≤ f(x) − (‖g‖² − ‖g − Q‖²)/2L holds for every vector Q, g = ∇f(x), so that what CAT's eq. 8 and 10 take for a budget T is

    improvement(s) = 1 − ‖g − Q_s(g)‖²/‖g‖²   of a deterministic Q_s, by each worker for its own g
                     1/(1 + ω(s))             of an unbiased one, sent with γL = 1/(1 + ω(s)), in the mean over its choices

top-k is the first with s = T. The second is the same for every g, so the size is settled once, and all workers share γL.

Then CAT's choice outside of its own method: for what other methods compress, such as error feedback, and for one vector alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mpi_compress.algorithms.tuning.schemes import (
    ANY_ROUND,
    SCHEMES,
    Budget,
    Mean,
    Sparsified,
    Tuning,
    check_budget,
    check_planned,
    scaled,
)
from mpi_compress.algorithms.tuning.search import TIE
from mpi_compress.algorithms.vocabulary import (
    Batch,
    ChoosingLink,
    Compressed,
    CostModel,
    Each,
    Link,
    Round,
    Rounds,
    Sized,
    UserError,
    Vector,
    WithSize,
    at_moment,
    costs,
)
from mpi_compress.messages.fields import Field, Reader, joined, one_byte
from mpi_compress.messages.from_tables import parts_of


@dataclass(frozen=True)
class SizedLink(ChoosingLink):
    """A link whose messages begin with a byte for the size, which the sender chooses for each vector."""

    links: list[Link]  # of each size
    cost: CostModel

    @classmethod
    def of(cls, link: Link, cost: CostModel, sizes: Sequence[int]) -> "SizedLink":
        return cls(link.compressor, link.codec, link.dim, of_sizes(link, sizes), cost)

    def compress(self, v: Vector, t: Any) -> Compressed:
        """Q_s(v) of the best s of v (d,), or of each row (m, d)."""
        return self.of_vector(v, t) if v.ndim == 1 else Each([self.of_vector(row, t[i]) for i, row in enumerate(v)])

    def of_vector(self, v: Vector, t: Round) -> WithSize:
        """Q_s(v) of the best s; the first s where v (d,) is 0 or not finite."""
        found = [WithSize(i, len(self.links), link.compress(v, t)) for i, link in enumerate(self.links)]
        peak = float(np.max(np.abs(v)))
        if not 0 < peak < np.inf:
            return found[0]
        squares = float(np.sum((v / peak) ** 2))
        lost = [float(np.sum(((v - c.dense()) / peak) ** 2)) for c in found]
        return found[first_best(1 - np.array(lost) / squares, np.array([self._cost(c, t) for c in found]))]

    def _cost(self, c: WithSize, t: Round) -> float:
        cost = at_moment(self.cost, t.second, t.who)
        return cost.cost(self.encode(c).wire_bits if cost.on_wire else self.paper_bits(c))

    def write(self, rows: Any) -> Field:
        each = [self.links[c.number].write(c.vector.as_rows()) for c in rows.parts]
        numbers = one_byte(np.array([c.number for c in rows.parts]))
        return joined(numbers, (np.concatenate([data[: ends[0]] for data, ends in each]), np.cumsum([ends[0] for _, ends in each])))

    def read(self, r: Reader) -> Compressed:
        numbers, many = r.bytes(len(self.links) - 1, "size").tolist(), len(self.links)
        return Each([WithSize(i, many, self.links[i].read(one)[0]) for i, one in zip(numbers, r.each(), strict=True)])


def of_sizes(link: Link, sizes: Sequence[int]) -> list[Link]:
    """The same link with its compressor at each size."""
    compressor: Any = link.compressor
    return [replace(link, compressor=compressor.at_size(s)) for s in sizes]


def first_best(improvements: Vector, costs: Vector) -> int:
    """The place of the largest improvement(s)/C(s), the first of those that are equal."""
    ratios = improvements / costs
    return int(np.argmax(ratios >= np.max(ratios) * (1 - TIE)))


class DeterministicSizes(Tuning):
    """Each worker chooses s for its own g, and says so by a byte; γ = 1/L."""

    is_unbiased = False

    def __init__(self, link: Link, cost: CostModel, sizes: Sequence[int]):
        self.sizes, self.link = sizes, SizedLink.of(link, cost, sizes)

    def messages(self, g: Vector, t: Rounds) -> tuple[Any, Batch]:
        sent = self.link.pack(g, t)
        seen: Any = self.link.unpack(sent)
        return [self.sizes[c.number] for c in seen.parts], sent

    def improvement_for(self, g: Vector) -> float:
        peak = float(np.max(np.abs(g)))
        if not 0 < peak < np.inf:
            return np.nan if peak else 1.0
        lost = (g - self.link.compress(g, ANY_ROUND[0]).dense()) / peak
        return float(1 - np.sum(lost**2) / np.sum((g / peak) ** 2))


class UnbiasedSizes(Tuning):
    """The s of the largest 1/((1 + ω(s)) C(s)), for all workers and rounds; the master applies γL = 1/(1 + ω(s))."""

    is_unbiased = True

    def __init__(self, link: Link, cost: CostModel, sizes: Sequence[int]):
        links, fpp = of_sizes(link, sizes), link.codec.float_format.bits
        parts: list[Any] = [each.compressor for each in links]
        gains = 1 / (1 + np.array([part.omega(link.dim) for part in parts], dtype=float))
        payloads = np.array([part.payload(link.dim, fpp) for part in parts])
        best = first_best(gains, np.array([cost.cost(payload) for payload in payloads.tolist()]))
        self.size, self.link, self.gain = sizes[best], links[best], float(gains[best])

    def messages(self, g: Vector, t: Rounds) -> tuple[Any, Batch]:
        return self.size, self.link.pack(g, t)

    def answer(self, mean: Mean, ups: Any) -> Compressed:
        return scaled(mean(ups), self.gain)

    def improvement_for(self, g: Vector) -> float:
        return self.gain


def sizes_of(link: Link, cost: CostModel, size: int | None = None) -> DeterministicSizes | UnbiasedSizes:
    """CAT's scheme for a compressor with a size, tuned or of one `size`.

    Raises:
        ValueError: the compressor has no size, or not this one; or an unbiased one is charged for what is sent.
    """
    compressor, dim = link.compressor, link.dim
    if not isinstance(compressor, Sized):
        raise ValueError(f"'{compressor.name}' has no size to tune")
    sizes = [size] if size is not None else list(compressor.sizes(dim))
    least, most = (compressor.at_size(compressor.sizes(dim)[end]) for end in (0, -1))
    for key in fields(compressor):
        says_size = key.init and getattr(least, key.name) != getattr(most, key.name)
        if says_size and getattr(compressor, key.name) != key.default:
            raise ValueError(f"the algorithm sets {key.name} of '{compressor.name}' itself: leave it out")
    first = compressor.at_size(sizes[0])
    first.check(dim)
    if first.omega(dim) is None:
        return DeterministicSizes(link, cost, sizes)
    if cost.on_wire and size is None:
        raise ValueError(
            f"the size of '{compressor.name}' is settled before its messages are written, so the cost model \"{cost.name}\" "
            "cannot be planned for; use another one"
        )
    return UnbiasedSizes(link, cost, sizes)


def tuning_of(link: Link, cost: CostModel, budget: Budget = "cat", n: int = 1) -> Tuning:
    """How CAT sends gradients of n workers by a link; ValueError where its compressor has no such budget, or no cost is planned."""
    check_budget(link, cost, budget)
    if isinstance(link.compressor, Sized):
        return sizes_of(link, cost, budget if isinstance(budget, int) else None)
    return SCHEMES[link.compressor.name](link, cost, budget, n)


@dataclass(frozen=True)
class TunedTopK(ChoosingLink):
    """The T largest coordinates, T = argmax α(T)/C(T) of each vector (CAT eq. 10)."""

    scheme: Sparsified

    def compress(self, v: Vector, t: Any) -> Compressed:
        return self.scheme.chosen(v, t) if v.ndim == 2 else self.scheme.chosen(v[None], Rounds.of(t))[0]


def follows_link(method: Any) -> bool:
    """True if a bound method's messages are others on another link: all with budget = "cat" plan by the cost, or a deadline."""
    return hasattr(method, "deadline") or isinstance(method.up, ChoosingLink) or getattr(method, "budget", None) == "cat"


def tuned(link: Link, cost: CostModel) -> Link:
    """The link with its compressor tuned to each vector p, the most 1 − ‖p − C(p)‖²/‖p‖² for C's cost; or itself, if it is tuned.

    Raises:
        ValueError: the compressor is not top-k without k, and is no contraction with a size; or its cost cannot be planned.
    """
    compressor = link.compressor
    if isinstance(link, TunedTopK | SizedLink):
        return link
    if compressor.name != "top-k":
        scheme = sizes_of(link, cost)
        if not isinstance(scheme, DeterministicSizes):
            raise ValueError(f"budget = \"cat\" tunes a contraction here: '{compressor.name}' is unbiased; use top-k or block-sign")
        return scheme.link
    if getattr(compressor, "k", None) is not None:
        raise ValueError('budget = "cat" sets k itself: leave it out of up.compressor')
    check_planned(link, cost)
    smallest = replace(link.compressor, k=1)  # type: ignore[call-arg]  # its δ holds for every T
    return TunedTopK(smallest, link.codec, link.dim, Sparsified(link, cost))


def best_size(compressor: str | Mapping[str, Any], v: Any, cost: str | Mapping[str, Any] = "payload", codec: Any = None) -> int:
    """The T, or the size, of the most improvement of a vector v (d,) for the cost of its message (CAT eq. 8 and 10).

    Args:
        compressor: a compressor that CAT tunes, such as "top-k", "sq" or "block-sign", without its size.
        cost: a cost model with its parameters, as [cost] has them: {"model": "packet", "c1": "576 B", …}.
        codec: as a job names it; None: the one that the compressor's paper counts.

    Raises:
        UserError: the compressor has no size to tune, or the cost cannot be planned for.
    """
    table = {"model": cost} if isinstance(cost, str) else dict(cost)
    model = costs.build({"name" if key == "model" else key: value for key, value in table.items()}, "cost")
    part, written = parts_of(compressor, codec, "best_size")
    g = np.ascontiguousarray(v, dtype=np.float64)
    link = Link(part, written, g.size)
    try:
        return int(np.ravel(tuning_of(link, model).messages(g[None], ANY_ROUND)[0])[0])
    except (ValueError, OverflowError) as error:
        raise UserError(f"best_size: {error}") from None
