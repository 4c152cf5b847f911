"""What a theorem assumes, measured on the random problems of its V: δ and ω, workers that draw independently, a coin's chance."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from mpi_compress.algorithms.steps import named_by
from mpi_compress.algorithms.theorem import in_mean, names_of_theorem
from mpi_compress.guard.findings import SEED, Finding
from mpi_compress.guard.of_algorithms import CheckedRounds
from mpi_compress.guard.of_messages import applied, stated, states_something, vectors
from mpi_compress.guard.random_problems import RandomProblem, links_of, loses_much
from mpi_compress.messages.compressors.base import has_state
from mpi_compress.messages.kinds import Vector, triangle
from mpi_compress.messages.link import Link
from mpi_compress.problem.objective import Shards

_DRAWS, _MOST_DRAWS = 400, 20_000  # of C(v): of each vector, and of the one whose mean is looked at closely
_CLOSELY = 3600  # draws of that one for ω = 1: they show a mean that is off by a tenth of v
_LOOSE = 1.6  # times what was measured, from which a bound says too little
_ROUNDS, _SEEDS = 7, 4  # in which the messages of workers alike are compared
_TOSSES = 1000
_SIGMAS = 5.0


def assumptions(given: object, problems: Sequence[RandomProblem]) -> Iterator[Finding]:
    """What is found of a declared method's assumptions on its problems."""
    links = [link for p in problems for link in links_of(p.method) if not p.method.sets_compressor]
    known = [link for link in links if states_something(link.compressor, link.dim) and not has_state(link.compressor)]
    known.sort(key=lambda link: (loses_much(link), -(link.compressor.omega(link.dim) or 0.0)))
    for link in {link.compressor.name: link for link in known}.values():  # of each the one with the least ω of those that lose much
        yield from _constants(link)
    yield from _independence(given, problems)
    yield from _coin(problems)


def _hard(dim: int) -> dict[str, Vector]:
    """Vectors (dim,) on which δ and ω of compressors are met: beside the usual ones those of equal numbers between two powers of 2,
    of one large number, and an identity matrix's triangle."""
    found = vectors(dim) | {"of four thirds": np.full(dim, 4 / 3)}
    found |= {f"of 1 and {small:g}": np.r_[1.0, np.full(dim - 1, small)] for small in (0.3, 1 / 8, 1 / 32)}
    side = (math.isqrt(8 * dim + 1) - 1) // 2
    return found | ({"of an identity matrix": triangle(np.eye(side))} if side * (side + 1) // 2 == dim else {})


def _constants(link: Link) -> Iterator[Finding]:
    """E C(v) = v, E‖C(v) − v‖² ≤ ω‖v‖² and ‖v − C(v)‖² ≤ (1 − δ)‖v‖² of hard vectors; and that some vector comes near to that."""
    c, dim = link.compressor, link.dim
    δ, ω, lost = c.delta(dim), c.omega(dim), 0.0
    for name, v in _hard(dim).items():
        closely = round(_CLOSELY * (ω or 0.0)) if name == "of normal numbers" else 0
        draws = np.array([applied(c, v, k, k % 3).dense() for k in range(min(max(_DRAWS, closely), _MOST_DRAWS))])
        for found in stated(c, v, draws, name):
            if not found.holds:
                yield Finding(f"{found.what} of {c.name}", False, found.text)
                return
        if (square := float(v @ v)) > 1e-300:
            lost = max(lost, float(np.mean(np.sum((draws - v) ** 2, axis=1))) / square)
    what, said, seen = ("ω", ω, lost) if ω is not None else ("δ", δ or 0.0, 1 - lost)
    loose = said > _LOOSE * seen if what == "ω" else said * _LOOSE < seen
    text = f"{said:.6g} is stated for d = {dim}, and {seen:.6g} is the worst that was found" + ": more holds than is stated" * loose
    yield Finding(f"{what} of {c.name}", not loose, text)


def _independence(given: object, problems: Sequence[RandomProblem]) -> Iterator[Finding]:
    """Whether workers with the same samples draw alike, where a theorem divides ω, or the variance of minibatches, by n."""
    named = names_of_theorem(given) | named_by(given)
    p = next((p for p in problems if p.is_compressed and in_mean(p.method)), None) or next(
        (p for p in problems if len(p.fs) > 1 and p.method.batch is not None), None
    )
    if p is None or "n" not in named or not {"omega", "batch"} & named:
        return
    alike = dict.fromkeys(p.fs.who, True)
    for seed in range(_SEEDS):
        play = CheckedRounds(p.method, Shards([p.fs.terms[0]] * len(p.fs)), p.x0, False, SEED + seed)
        for k in range(_ROUNDS):
            sent, _ = play.play(k)
            alike = {i: alike[i] and np.array_equal(sent.part(i, i + 1).raw, sent.part(0, 1).raw) for i in alike}
    together = [i for i in alike if i and alike[i]]
    text = f"worker {together[0]} draws as worker 0 does" if together else "workers with the same samples send unlike messages"
    yield Finding("independence", not together, f"{text} ({p.text})")


def _coin(problems: Sequence[RandomProblem]) -> Iterator[Finding]:
    """Heads of the method's coin, counted, where its chance is farthest from ½."""
    tossing = [p for p in problems if 0 < getattr(p.method, "p", 1.0) < 1]
    if not tossing:
        return
    p = max(tossing, key=lambda p: abs(p.method.p - 0.5))
    chance, heads, tosses = p.method.p, 0.0, 0.0
    for seed, k in product(range(_TOSSES), range(_ROUNDS)):
        if k == 0:
            play = CheckedRounds(p.method, p.fs, p.x0, False, SEED + seed)
        taken = play.fs.samples[0]
        play.play(k)
        new = p.method.theorem.tossed(play.nodes[0], play.ups, (play.fs.samples[0] - taken) / play.fs.sizes[0])
        heads, tosses = heads + new[0], tosses + new[1]
        if not tosses or tosses >= _TOSSES:
            break
    if tosses:
        off = _SIGMAS * math.sqrt(chance * (1 - chance) / tosses) + 1 / tosses
        text = f"{heads:.0f} heads of {tosses:.0f} tosses; the theorem's coin has p = {chance:.6g} ({p.text})"
        yield Finding("coin", abs(heads / tosses - chance) <= off, text)
