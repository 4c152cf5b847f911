"""Small problems for a method, made up, and random ones for its theorem."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from mpi_compress.algorithms.theorem import Shard, factor, names_of_theorem, unproved, value_of
from mpi_compress.algorithms.vocabulary import TIGHT, Link, Method, Objective, Setting, Shards, Vector, coordinates_sent
from mpi_compress.core.streams import Role, Round
from mpi_compress.guard.findings import SEED, NeedsAJob, seeded
from mpi_compress.guard.of_algorithms import CheckedRounds, Problem
from mpi_compress.guard.of_messages import can_be_stated, usual
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors.base import Compressor, among, compressors
from mpi_compress.messages.costs import costs
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.losses import losses
from mpi_compress.problem.optimum.newton import Optimum, minimize
from mpi_compress.problem.rows import Rows

_DIM, _ROWS, _MU = 12, 8, 0.1  # of made-up problems, rows of each worker
_LINKS = ("identity", "random-k", "top-k", "perm-k")
_HALVED = 20  # times that the distance to x* is halved at most, for a local theorem: below, rounding of x* takes part
_LEAST = 1e-9  # of V at the start, below which rounding takes part


@dataclass(frozen=True)
class RandomProblem:
    """A small random problem, and a method that is bound to it."""

    method: Any
    fs: Shards
    x0: Vector
    text: str

    @property
    def is_compressed(self) -> bool:
        """True if there are several workers, and some link loses much."""
        return len(self.fs) > 1 and any(loses_much(link) for link in links_of(self.method))

    def fall(self, seed: int, rounds: int) -> tuple[Vector, Vector]:
        """V before and after some rounds (rounds + 1,), and ρ of each (rounds,)."""
        method, play, ρ = self.method, CheckedRounds(self.method, self.fs, self.x0, False, seed), list[float]()
        shards = [Shard(f, method.setting.x_star) for f in self.fs]
        V = [self.at(play, shards)]
        with suppress(OverflowError):  # its precision is exhausted
            while len(ρ) < rounds and V[-1] > _LEAST * V[0]:
                play.play(len(ρ))
                ρ.append(factor(method, Round(len(ρ), play.streams, Role.MASTER)))
                V.append(self.at(play, shards))
        return np.array(V), np.array(ρ)

    def at(self, play: CheckedRounds, shards: Sequence[Shard]) -> float:
        """V."""
        method, node, n = self.method, play.nodes[0], len(shards)
        x = method.iterate(node)
        for shard in shards:
            shard.x = x
        pairs = zip(play.workers, shards, strict=True)
        terms = [method.theorem.terms(method, node, worker, shard) for worker, shard in pairs]
        f, g = (sum(each) / n for each in zip(*(shard.at(x) for shard in shards), strict=True))
        return value_of(method, node, [sum(each) / n for each in zip(*terms, strict=True)], play.master, x, f, g)


@dataclass(frozen=True)
class Regression:
    """A regression on the samples of n workers, and what a setting says of it."""

    a: Vector  # (nm, d)
    labels: Vector  # (nm,)
    n: int
    loss: Any
    mu: float
    x0: Vector

    def objectives(self, apart: float = 0.0, careful: bool = False) -> Shards:
        """f_i, without a part of µ that is `apart`."""
        d, n = self.x0.size, self.n
        shards = (Rows((self.a[i::n],), self.labels[i::n], d) for i in range(n))
        return Shards([data_term(rows, self.loss, n / len(self.a), self.mu - apart) for rows in shards], careful=careful)

    def setting(self, up: Link, down: Link, apart: float = 0.0) -> Setting:
        """What a method is bound to."""
        whole, cost = partial(Objective, loss=self.loss, weight=1.0 / len(self.a), mu=self.mu), costs["wire"]()
        return Setting(
            n=self.n, dim=self.x0.size, up=up, down=down, cost=cost, numbers=self.numbers, mu_apart=apart,
            x_star=self.best.x, f_star=self.best.f, whole=whole,
        )  # fmt: skip

    @cached_property
    def best(self) -> Optimum:
        return minimize(self.whole)

    @cached_property
    def whole(self) -> Objective:
        return Objective(Rows((self.a,), self.labels, self.x0.size), self.loss, 1.0 / len(self.a), self.mu)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """What formulas may name."""
        n, N, µ = self.n, len(self.a), self.mu
        each = [_largest(self.a[i::n], self.loss) * n / N + µ for i in range(n)]
        L, L_rms = _largest(self.a, self.loss) / N + µ, math.sqrt(sum(L_i**2 for L_i in each) / n)
        L_row = float(self.loss.curvature * np.max(np.sum(self.a * self.a, axis=1))) + µ
        g0 = float(np.linalg.norm(self.whole.elsewhere(self.x0)[1]))
        return {
            "L": L, "L_rms": L_rms, "L_pm": L_rms, "L_mean": sum(each) / n, "L_max": max(each), "kappa": L / µ, "L_row": L_row,
            "g0": g0, "mu": µ, "n": float(n), "d": float(self.x0.size), "N": float(N), "rounds": 9.0,
        }  # fmt: skip


def made_up_problem(given: Method, n: int) -> Problem:
    """A method within a made-up problem of n workers; NeedsAJob if none of the usual links goes with it."""
    rng = seeded()
    a, y = rng.standard_normal((n * _ROWS, _DIM)) / np.sqrt(_DIM), rng.choice([-1.0, 1.0], n * _ROWS)
    made, why = Regression(a, y, n, losses["logistic"](), _MU, np.linspace(-1.0, 1.0, _DIM)), ""
    apart = _MU if given.regularizer == "master" else 0.0
    for names in product((given.compressor, *_LINKS), _LINKS):
        try:
            links = [usual(compressors[name]) for name in names]
            up, down = (_link(among(c, n), _DIM) for c in links)
            return given.bind(made.setting(up, down, apart)), made.objectives(apart, careful=True), made.x0
        except Exception as error:  # other links may do
            why = why or str(error)
    raise NeedsAJob(f"{given.name}: {why}")


LOSSES, WORKERS, CONDITION = ("logistic", "least-squares"), (1, 2, 3, 5), (3.0, 1000.0)  # of random problems; the last are of κ


def random_problem(given: Any, seed: int, own: Sequence[Compressor] = ()) -> RandomProblem | str:
    """A random problem that goes with V of a method; or why the last one that was tried does not. Every second pair of seeds has
    several workers whose messages hold at most half of the coordinates, where the method goes with these."""
    rng, why, much = np.random.default_rng([SEED, seed]), "", seed // 2 % 2 == 0
    loss = losses[LOSSES[seed % len(LOSSES)]]()
    other = {"step": TIGHT} if given.theorem.tight else given.theorem.also
    methods = [given, replace(given, **other)] if other else [given]
    counts = rng.permutation(WORKERS).tolist()
    for n in (*sorted(counts, key=lambda n: much and n == 1), 1):
        d, m, κ = int(rng.integers(3, 12)), int(rng.integers(2, 9)), 10 ** rng.uniform(*np.log10(CONDITION))
        a, labels = _rows(rng, n, m, d)
        made = Regression(a, labels, n, loss, _largest(a, loss) / (n * m) / (κ - 1), rng.standard_normal(d))
        links = _links(rng, given, d, own, d // 2 if much else d)
        for (up, down), method in ((pair, method) for pair in links for method in rng.permutation(methods)):
            try:
                bound = method.bind(made.setting(up, down))
                why = unproved(bound)
            except ValueError as error:
                why = str(error)
                continue
            if not why:
                said = f"{loss.name}, n = {n}, d = {d}, κ = {κ:.3g}, up {_said(up)}, down {_said(down)}"
                x, fs = made.best.x, made.objectives()
                near = (RandomProblem(bound, fs, x + (made.x0 - x) / 2**j, said) for j in range(_HALVED))
                found = next((p for p in near if p.fall(seed, 0)[0][0] > 0), None)
                if found is not None:  # the first, unless the theorem is local
                    return found
                why = f"the theorem of {given.name} is local, and covers no x0 near x*, or V is 0 there"
    return why


def _rows(rng: Any, n: int, m: int, d: int) -> tuple[Vector, Vector]:
    """Rows (nm, d) of unlike scales and workers, and their labels (nm,)."""
    a = rng.standard_normal((n * m, d)) * 10 ** rng.uniform(-1, 0.3, d) + rng.standard_normal(d) * rng.integers(0, 2)
    return a * np.resize(10 ** rng.uniform(-0.5, 0.5, n), n * m)[:, None], rng.choice([-1.0, 1.0], n * m)


def _largest(a: Vector, loss: Any) -> float:
    return float(loss.curvature * np.linalg.norm(a, 2) ** 2)


def _links(rng: Any, given: Any, d: int, run: Sequence[Compressor], most: int) -> Iterator[tuple[Link, Link]]:
    """Links up and down: a run's, if they fit; exact ones where the method's are, and where its theorem has no δ or ω of theirs;
    else of at most so many coordinates."""
    with suppress(ValueError):  # there is none; or it keeps 100 of 10, or states so
        for C in run:
            C.check(d)
        up, down = (_link(C, d) for C in run if can_be_stated(C, d))
        yield up, down
        return
    k, exact, named = int(rng.integers(1, most + 1)), [compressors["identity"]()], names_of_theorem(given)
    known: Any = compressors
    usual = [known[name](k=k) for name in rng.permutation(["top-k", "random-k"])]
    usual += [known[name]() for name in rng.permutation(["natural", "block-sign"])]
    own = [C for C in usual if C.name == given.compressor and rng.random() < 0.5]
    ups = [*own, *usual] if {"delta", "omega"} & named or given.compressor != "identity" else exact
    ups = [compressors[given.compressor]()] if given.sets_compressor else ups
    downs = ups if "down" in given.links else usual if {"delta_down", "omega_down"} & named else exact
    yield from ((_link(up, d), _link(down, d)) for down, up in product(downs, ups))


def links_of(method: Any) -> list[Link]:
    """The links of a bound method, that of Hessians too, by which something is lost."""
    found = (method.up, method.down, getattr(method, "hessians", method.up))
    return [link for link in dict.fromkeys(found) if link.compressor.omega(link.dim) != 0.0]


def loses_much(link: Link) -> bool:
    """True if its messages hold at most half of the coordinates, or no coordinates."""
    with suppress(ValueError):  # a user's k may be above d
        sent = coordinates_sent(link.compressor, link.dim)
        return sent is None or 2 * sent <= link.dim
    return False


def _link(compressor: Compressor, d: int) -> Link:
    return Link(compressor, codecs[compressor.codec](), d)


def _said(link: Link) -> str:
    k = getattr(link.compressor, "k", None)
    return link.compressor.name + (f" {k}" if k is not None else "")
