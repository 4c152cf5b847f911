"""The list of what is checked of users' parts by `check-part`."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.parts import Downlink, Server
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.guard import hidden_state, of_algorithms, of_data, of_functions, of_messages
from mpi_compress.guard.findings import SEED, Finding, tried
from mpi_compress.guard.of_data import of_stop
from mpi_compress.guard.of_messages import link_at, stated
from mpi_compress.job.stops import StopRule
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.compressors.base import has_state
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.datasets.formats import Format
from mpi_compress.problem.datasets.generators import Generator
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.metrics import Metric, ProblemView
from mpi_compress.problem.models import Model
from mpi_compress.problem.partitions import Partition
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows

_DIMS, _LARGE = (2, 12, 60), 4000  # of vectors, beside those of the links up to the largest
_ROUNDS, _LAST = (5, 20, 60), 60  # after which the state is asked
_FEW, _MANY = 8, 300  # draws of one vector: those that show whether C is random, and all of them if it is
_SEQUENCES: Mapping[str, Callable[[int, Vector, Vector, Vector], Vector]] = {
    "(0, …, 0, 1)": lambda k, u, v, sent: np.eye(u.size)[-1],
    "one coordinate after another": lambda k, u, v, sent: np.eye(u.size)[k % u.size],
    "one half and the other in turn": lambda k, u, v, sent: u * ((np.arange(u.size) < u.size // 2) == k % 2),
    "a vector that doubles": lambda k, u, v, sent: 2.0**k * u,
    "a vector that halves": lambda k, u, v, sent: 0.5**k * u,
    "the same vector": lambda k, u, v, sent: u,
    "1 where it has just sent and 0.4 elsewhere": lambda k, u, v, sent: np.where(sent != 0, 1.0, 0.4),
    "what it has just lost and a vector": lambda k, u, v, sent: v - sent + u,  # as error feedback does
}
"""The vector of round k, of a normal vector u, the vector before it, and what was sent of that."""
_ASKED: Mapping[str, Callable[[Vector, Vector], Vector]] = {
    "1 where it has just sent and 0.4 elsewhere": lambda u, sent: np.where(sent != 0, 1.0, 0.4),
    "the opposite of what it has just sent": lambda u, sent: -sent,
    "normal numbers": lambda u, sent: u[::-1],
    "small numbers": lambda u, sent: 1e-3 * u[::-1],
}


@dataclass
class Subject:
    """A part, and what it can be asked by; None: what needs this is not asked. Made before the part is called."""

    part: Any
    parts: Sequence[Any] = ()  # those whose memory counts; (): the part alone
    dim: int = 0  # of a job's vectors
    links: Sequence[Link] | None = None  # of a compressor, as it is in a run, for several d
    rows: Rows | None = None  # of a model
    view: ProblemView | None = None  # of a metric: the problem
    file: tuple[Path, int | None] | None = None  # of a format, with d if it is known
    problems: Sequence[of_algorithms.Problem] | None = None  # of a method
    rounds: Callable[[], None] | None = None  # runs two rounds
    held: hidden_state.Contents = field(init=False)  # what the parts held before
    drawn: Any = field(init=False)  # where global generators stood before

    def __post_init__(self) -> None:
        self.held, self.drawn = hidden_state.contents(self.parts or [self.part]), hidden_state.generators()


@dataclass(frozen=True)
class Check:
    """One thing that can be said of a part."""

    name: str
    of: Any  # the kinds of part that it is about
    takes: tuple[str, ...]  # what it needs: fields of `Subject`
    ask: Callable[..., Iterator[Finding]]

    def about(self, s: Subject) -> Iterator[Finding]:
        """What it finds; nothing if it is about other kinds, or needs what is not there."""
        given = [getattr(s, name) for name in self.takes]
        if isinstance(s.part, self.of) and all(each is not None for each in given):
            yield from (replace(found, by=self.name) for found in self.ask(*given))


def after_rounds(links: Sequence[Link]) -> Iterator[Finding]:
    """δ, ω and variance of a compressor with a state: after rounds of vectors that are hard for a memory, by its link, its state is
    asked for further vectors, a random compressor's by draws that are independent of one another."""
    dims = dict.fromkeys([*_DIMS, *(min(link.dim, _LARGE) for link in links)])
    for at, name in product([at for dim in dims if (at := _at(links[0].compressor, dim))], _SEQUENCES):
        found = [*tried(f"rounds of {name}", partial(_after, at, name))]
        yield from found
        if not all(each.holds for each in found):
            return


def _at(c: Compressor, dim: int) -> Link | None:
    """The link of a compressor for vectors (dim,), if these go with it and it states something of them."""
    link = link_at(c, dim) if has_state(c) else None
    δ, others = (c.delta(dim), (c.omega(dim), c.variance(dim))) if link else (None, (None, None))
    return None if (δ is None and others == (None, None)) or (δ or 0) > 1 else link


def _after(link: Link, name: str) -> Iterator[Finding]:
    u, state = np.random.default_rng(SEED).standard_normal(link.dim), link.start()
    v = sent = np.zeros(link.dim)
    for k in range(_LAST + 1):
        vector = _SEQUENCES[name](k, u, v, sent)
        if k in _ROUNDS:
            asked = {"the next one": vector, **{what: ask(u, sent) for what, ask in _ASKED.items()}}
            yield from _of_state(link, k, state, asked, name)
        try:
            v, sent = vector, link.unpack(Message(link.pack(vector, _round(k, 0, state)).data)).dense()
        except OverflowError:  # more than the codec's floats can hold
            return


def _of_state(link: Link, k: int, state: Any, vectors: Mapping[str, Vector], name: str) -> Iterator[Finding]:
    """What is found of a state. A random compressor, which a few draws show, takes many, and so has the first vectors alone."""
    few = _draws(link, vectors["normal numbers"], k, state, _FEW)
    random = bool((few != few[0]).any())
    if random and k < _LAST:
        return
    for what, v in [*vectors.items()][: 2 if random else None]:
        told = f"{_shown(v)} ({what}; after {k} rounds of {name})"
        found = [*stated(link.compressor, v, _draws(link, v, k, state, _MANY if random else 1), told)]
        if not (random or all(each.holds for each in found)):  # chance may have made that of one draw
            draws = _draws(link, v, k, state, _MANY)
            found = [*stated(link.compressor, v, draws if (draws != draws[0]).any() else draws[:1], told)]
        yield from found


def _draws(link: Link, v: Vector, k: int, state: Any, count: int) -> Any:
    """Independent draws of C(v), (count, d), of a state, which stays as it is."""
    return np.array([link.compress(v, _round(k, seed, copy.deepcopy(state))).dense() for seed in range(1, count + 1)])


def _round(k: int, seed: int, state: Any) -> Round:
    return Round(k, _streams(seed), Role.WORKER, state=state)


@cache
def _streams(seed: int) -> Streams:
    return Streams(SEED + seed)


def _shown(v: Vector) -> str:
    """A vector's numbers, of many the first and the last."""
    numbers = [f"{x:.3g}" for x in v]
    return f"({', '.join(numbers if v.size <= 4 else [*numbers[:3], '…', numbers[-1]])})"


def _cost(cost: CostModel) -> Iterator[Finding]:
    check_cost(cost)
    yield Finding("cost", True, "a number from 0 on, which does not fall as payloads grow, and the same for numbers and arrays")


def _drawn(part: Any, before: Any) -> Iterator[Finding]:
    moved = hidden_state.generators() != before
    text = "come from the global random or np.random" + ", not from t.rng" * isinstance(part, Compressor)
    yield Finding("draws", not moved, text if moved else "none are global")


CHECKS = (
    Check("compress", Compressor, ("part", "dim"), of_messages.compress),
    Check("state", Compressor, ("links",), of_messages.state),
    Check("theorems", Compressor, ("links",), of_messages.theorems),
    Check("after rounds", Compressor, ("links",), after_rounds),
    Check("NaN", Compressor, ("links",), of_messages.not_finite),
    Check("codec", Compressor, ("links",), of_messages.through_codec),
    Check("messages", Codec, ("part", "dim"), of_messages.messages),
    Check("cost", CostModel, ("part",), _cost),
    Check("slope", Loss, ("part",), of_functions.slope),
    Check("curvature", Loss, ("part",), of_functions.curvature_of_loss),
    Check("second derivative", Loss, ("part",), of_functions.second_derivative),
    Check("samples", Loss, ("part",), of_functions.samples),
    Check("gradient", Penalty, ("part",), of_functions.gradient_of_penalty),
    Check("prox", Penalty, ("part",), of_functions.prox),
    Check("gradient", Model, ("part", "rows"), of_functions.gradient_of_model),
    Check("mean", Model, ("part", "rows"), of_functions.mean_of_rows),
    Check("smoothness", Model, ("part", "rows"), of_functions.smoothness),
    Check("hessian_product", Model, ("part", "rows"), of_functions.hessian_product),
    Check("rehearsal", Method, ("rounds",), of_algorithms.rehearsal),
    Check("rounds", Algorithm | Server | Downlink, ("problems",), of_algorithms.rounds),
    Check("rows", Partition, ("part",), of_data.of_partition),
    Check("rows", Generator, ("part",), of_data.of_generator),
    Check("rows", Format, ("part", "file"), of_data.of_format),
    Check("value", Metric, ("part", "view"), of_data.of_metric),
    Check("answers", StopRule, ("part",), of_stop),
    Check("memory", object, ("held",), hidden_state.kept),
    Check("draws", object, ("part", "drawn"), _drawn),
)
"""What is asked last looks at what the others have left."""


def everything(s: Subject) -> list[Finding]:
    """What all checks find, their errors too, each property once: what is wrong first found, or else what was tried last."""
    found: dict[str, Finding] = {}
    for check in CHECKS:
        for each in tried(check.name, partial(check.about, s)):
            if each.what not in found or found[each.what].holds:
                found[each.what] = each
    return [*found.values()]
