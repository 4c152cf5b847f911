"""Small random problems for a method and its theorem."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms import Setting
from mpi_compress.algorithms.theorem import Shard, factor, names_of_theorem, unproved, value_of
from mpi_compress.core.streams import Role, Round
from mpi_compress.guard.findings import SEED
from mpi_compress.guard.of_algorithms import Rounds
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.costs import costs
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum.newton import minimize
from mpi_compress.problem.rows import Rows

_HALVED = 40  # times that the distance to x* is halved at most, for a local theorem
_LEAST = 1e-9  # of V at the start, below which rounding takes part


@dataclass(frozen=True)
class RandomProblem:
    """A small random problem, and a method that is bound to it."""

    method: Any
    fs: Mapping[int, Objective]
    x0: Vector
    text: str

    def fall(self, seed: int, rounds: int) -> tuple[Vector, Vector]:
        """V before and after some rounds (rounds + 1,), and ρ of each (rounds,)."""
        method, play, ρ = self.method, Rounds(self.method, self.fs, self.x0, False, seed), list[float]()
        shards = {i: Shard(f, method.setting.x_star) for i, f in self.fs.items()}
        V = [self.at(play, shards)]
        while len(ρ) < rounds and V[-1] > _LEAST * V[0]:
            try:
                play.play(len(ρ))
            except OverflowError:  # its precision is exhausted
                break
            ρ.append(factor(method, Round(len(ρ), play.streams, Role.MASTER)))
            V.append(self.at(play, shards))
        return np.array(V), np.array(ρ)

    def at(self, play: Rounds, shards: Mapping[int, Shard]) -> float:
        """V."""
        method, node, n = self.method, play.nodes[0], len(shards)
        x = method.iterate(node)
        for shard in shards.values():
            shard.x = x
        terms = [method.theorem.terms(method, node, play.workers[i], shard) for i, shard in shards.items()]
        f, g = (sum(each) / n for each in zip(*(shard.at(x) for shard in shards.values()), strict=True))
        return value_of(method, node, [sum(each) / n for each in zip(*terms, strict=True)], play.master, x, f, g)


def random_problem(given: Any, seed: int, own: Sequence[Compressor] = ()) -> RandomProblem | str:
    """A random problem that goes with V of a method; or why the last one that was tried does not."""
    rng, why = np.random.default_rng([SEED, seed]), ""
    loss = losses[("logistic", "least-squares")[seed % 2]]()
    methods = [given, replace(given, step="tight")] if given.theorem.tight else [given]
    for n in (*rng.permutation([1, 2, 3, 5]).tolist(), 1):
        d, m, κ = int(rng.integers(3, 12)), int(rng.integers(2, 9)), 10 ** rng.uniform(0.5, 3)
        a, labels = _rows(rng, n, m, d)
        L, each = _largest(a, loss) / (n * m), [_largest(a[i::n], loss) / m for i in range(n)]
        µ = L / (κ - 1)
        squares = {"L_rms": math.sqrt(sum((L_i + µ) ** 2 for L_i in each) / n), "L_mean": sum(each) / n + µ, "L_max": max(each) + µ}
        numbers = {"L": L + µ, "mu": µ, "n": float(n), "d": float(d), "N": float(n * m), "kappa": κ, **squares}
        numbers |= {"L_pm": numbers["L_rms"], "L_row": float(loss.curvature * np.max(np.sum(a * a, axis=1))) + µ}
        whole, x0 = partial(Objective, loss=loss, weight=1.0 / len(a), mu=µ), rng.standard_normal(d)
        best = minimize(f := whole(Rows((a,), labels, d)))
        numbers["g0"] = float(np.linalg.norm(f.elsewhere(x0)[1]))
        fs = {i: Objective(Rows((a[i::n],), labels[i::n], d), loss, 1.0 / m, µ) for i in range(n)}
        for (up, down), method in ((links, method) for links in _links(rng, given, d, own) for method in rng.permutation(methods)):
            cost = costs["wire"]()
            setting = Setting(
                n=n, dim=d, up=up, down=down, cost=cost, numbers=numbers, x_star=best.x, whole=whole, f_star=best.f
            )
            try:
                bound = method.bind(setting)
                why = unproved(bound)
            except ValueError as error:
                why = str(error)
                continue
            if not why:
                said = f"{loss.name}, n = {n}, d = {d}, κ = {κ:.3g}, up {_said(up)}, down {_said(down)}"
                near = (RandomProblem(bound, fs, best.x + (x0 - best.x) / 2**j, said) for j in range(_HALVED))
                found = next((p for p in near if not np.isnan(p.fall(seed, 0)[0][0])), None)
                if found is not None:  # the first, unless the theorem is local
                    return found
                why = f"the theorem of {given.name} is local, and covers no x0 near x*"
    return why


def _rows(rng: Any, n: int, m: int, d: int) -> tuple[Vector, Vector]:
    """Rows (nm, d) of unlike scales and workers, and their labels (nm,)."""
    a = rng.standard_normal((n * m, d)) * 10 ** rng.uniform(-1, 0.3, d) + rng.standard_normal(d) * rng.integers(0, 2)
    return a * np.resize(10 ** rng.uniform(-0.5, 0.5, n), n * m)[:, None], rng.choice([-1.0, 1.0], n * m)


def _largest(a: Vector, loss: Any) -> float:
    return float(loss.curvature * np.linalg.norm(a, 2) ** 2)


def _links(rng: Any, given: Any, d: int, run: Sequence[Compressor]) -> Iterator[tuple[Link, Link]]:
    """Links up and down: a run's, if they fit; exact ones where the method's are, and where its theorem has no δ or ω of theirs."""
    with suppress(ValueError):  # there is none; or it keeps 100 of 10
        for C in run:
            C.check(d)
        own_up, own_down = (Link(C, codecs[C.codec](), d) for C in run)
        yield own_up, own_down
        return
    k, exact, named = int(rng.integers(1, d + 1)), {"name": "identity"}, names_of_theorem(given)
    tables = [{"name": name, "k": k} for name in rng.permutation(["top-k", "random-k"])]
    tables += [{"name": name} for name in rng.permutation(["natural", "block-sign"])]
    own = [table for table in tables if table["name"] == given.compressor and rng.random() < 0.5]
    ups = [*own, *tables] if {"delta", "omega"} & named or given.compressor != "identity" else [exact]
    ups = [{"name": given.compressor}] if given.sets_compressor else ups
    downs = ups if "down" in given.links else tables if {"delta_down", "omega_down"} & named else [exact]
    yield from ((_link(up, d), _link(down, d)) for down in downs for up in ups)


def _link(table: Mapping[str, Any], d: int) -> Link:
    compressor = compressors.build(dict(table), "compressor")
    return Link(compressor, codecs[compressor.codec](), d)


def _said(link: Link) -> str:
    return " ".join([link.compressor.name, *(str(k) for k in [getattr(link.compressor, "k", None)] if k is not None)])
