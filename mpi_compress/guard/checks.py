"""The list of what is checked of users' parts by `check-part`."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import get_annotations
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.progress import Amount
from mpi_compress.guard import hidden_state, of_algorithms, of_data, of_functions, of_messages
from mpi_compress.guard.findings import Finding, Findings, either, seeded, tried, worst
from mpi_compress.guard.of_messages import link_at, round_of, stated, states_something
from mpi_compress.messages.batch import batch_of
from mpi_compress.messages.compressors.base import Compressor, has_state
from mpi_compress.messages.costs.base import CostModel, check_cost
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link
from mpi_compress.problem.metrics import ProblemView
from mpi_compress.problem.rows import Rows

_DIMS, _LARGE = (2, 12, 60), 4000  # of vectors, beside those of the links up to the largest
_ROUNDS, _LAST = (5, 20, 60), 60  # after which the state is asked
_FEW, _MANY = 8, 300  # draws of one vector: those that show whether C is random, and all of them if it is


def _sequences(k: int, u: Vector, v: Vector, sent: Vector) -> dict[str, Vector]:
    """The vectors of round k, of a normal vector u, the vector before it, and what was sent of that."""
    at, d = np.arange(u.size), u.size
    return {
        "(0, …, 0, 1)": 1.0 * (at == d - 1),
        "one coordinate after another": 1.0 * (at == k % d),
        "one half and the other in turn": u * ((at < d // 2) == k % 2),
        "a vector that doubles": 2.0**k * u,
        "a vector that halves": 0.5**k * u,
        "the same vector": u,
        "1 where it has just sent and 0.4 elsewhere": np.where(sent != 0, 1.0, 0.4),
        "what it has just lost and a vector": v - sent + u,  # as error feedback does
    }


def _asked(u: Vector, sent: Vector) -> dict[str, Vector]:
    return {
        "1 where it has just sent and 0.4 elsewhere": np.where(sent != 0, 1.0, 0.4),
        "the opposite of what it has just sent": -sent,
        "normal numbers": u[::-1],
        "small numbers": 1e-3 * u[::-1],
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
    play: Callable[[], None] | None = None  # runs two rounds
    held: hidden_state.Contents = field(init=False)  # what the parts held before
    before: Any = field(init=False)  # where global generators stood

    def __post_init__(self) -> None:
        self.held, self.before = hidden_state.contents(self.parts or [self.part]), hidden_state.generators()


def after_rounds(c: Compressor, links: Sequence[Link]) -> Findings:
    """δ, ω and variance of a compressor with a state: after rounds of vectors that are hard for a memory, by its link, its state is
    asked for further vectors, a random compressor's by draws that are independent of one another."""
    c, dims = links[0].compressor, dict.fromkeys([*_DIMS, *(min(link.dim, _LARGE) for link in links)])
    at = [link for dim in dims if has_state(c) and (link := link_at(c, dim, links[0].codec)) and states_something(c, dim)]
    for link, name in product(at, _sequences(0, *np.zeros((3, 1)))):
        found = [*tried(f"rounds of {name}", _after, link, name)]
        yield from found
        if not all(each.holds for each in found):
            return


def _after(link: Link, name: str) -> Findings:
    u, state = seeded().standard_normal(link.dim), link.start()
    v = sent = np.zeros(link.dim)
    for k in range(_LAST + 1):
        vector = _sequences(k, u, v, sent)[name]
        if k in _ROUNDS:
            yield from _of_state(link, k, state, {"the next one": vector, **_asked(u, sent)}, name)
        try:
            v, sent = vector, link.unpack(batch_of(link.pack(vector, round_of(k, state=state)).raw)).dense()
        except OverflowError:  # more than the codec's floats can hold
            return


def _of_state(link: Link, k: int, state: Any, vectors: Mapping[str, Vector], name: str) -> Findings:
    """What is found of a state. A random compressor, which a few draws show, takes many, and so has the first vectors alone."""
    few = _draws(link, vectors["normal numbers"], k, state, _FEW)
    random = bool((few != few[0]).any())
    if random and k < _LAST:
        return
    for what, v in [*vectors.items()][: 2 if random else None]:
        shown = f"{_shown(v)} ({what}; after {k} rounds of {name})"
        found = [*stated(link.compressor, v, _draws(link, v, k, state, _MANY if random else 1), shown)]
        if not (random or all(each.holds for each in found)):  # chance may have made that of one draw
            draws = _draws(link, v, k, state, _MANY)
            found = [*stated(link.compressor, v, draws if (draws != draws[0]).any() else draws[:1], shown)]
        yield from found


def _draws(link: Link, v: Vector, k: int, state: Any, count: int) -> Any:
    """Independent draws of C(v), (count, d), of a state, which stays as it is."""
    rounds = (round_of(k, state=copy.deepcopy(state), seed=seed) for seed in range(1, count + 1))
    return np.array([link.compress(v, t).dense() for t in rounds])


def _shown(v: Vector) -> str:
    """A vector's numbers, of many the first and the last."""
    numbers = [f"{x:.3g}" for x in v]
    return f"({', '.join(numbers if v.size <= 4 else [*numbers[:3], '…', numbers[-1]])})"


def cost(model: CostModel) -> Findings:
    """What messages cost."""
    check_cost(model)
    yield Finding("cost", True, "a number from 0 on, which does not fall as payloads grow, and the same for numbers and arrays")


def draws(part: object, held: hidden_state.Contents, before: Any) -> Findings:
    """Whether global generators stand where they stood, and no code calls what returns something else each time."""
    moved = "come from the global random or np.random" + ", not from t.rng" * isinstance(part, Compressor)
    found = [moved] * (hidden_state.generators() != before) + [*map(". ".join, hidden_state.drawn(held).items())]
    yield either("draws", not found, "none are global or without a seed, and no clock is read", ": ".join(found))


CHECKS: Sequence[Callable[..., Findings]] = (
    of_messages.compress, of_messages.state, of_messages.theorems, after_rounds, of_messages.codec, of_messages.messages,
    of_messages.not_finite, cost,
    of_functions.slope, of_functions.curvature, of_functions.second_derivative, of_functions.least, of_functions.samples,
    of_functions.gradient_of_penalty, of_functions.prox,
    of_functions.gradient_of_model, of_functions.mean_of_rows, of_functions.smoothness, of_functions.hessian_product,
    of_algorithms.two_rounds, of_algorithms.rounds,
    of_data.partition, of_data.generator, of_data.format_of_files, of_data.value, of_data.answers,
    hidden_state.memory, draws,
)  # fmt: skip
"""Each is about parts of the kinds that its first argument has, and needs the fields of `Subject` that its others name. NaN, which
a part may keep, comes after other messages. What is asked last looks at what the others have left."""


def everything(s: Subject) -> list[Finding]:
    """What all checks find, their errors too, each property once, where it is worst. What is kept where it should not be, or drawn,
    is said first."""
    found = list[Finding]()
    with Amount(f"checking {getattr(s.part, 'name', 'a part')}", quiet=False, what=("checks", 1)) as tell:
        for done, check in enumerate(CHECKS):
            (_, kinds), *others, _ = get_annotations(check).items()
            given = [getattr(s, name) for name, _ in others]
            if isinstance(s.part, kinds) and None not in given:
                tell(done, len(CHECKS))
                by = check.__name__.replace("_", " ")
                found += [replace(each, by=by) for each in tried(by, check, s.part, *given)]
    return sorted(worst(found), key=lambda each: each.holds or each.what not in ("memory", "draws"))
