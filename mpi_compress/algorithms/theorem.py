"""What a method states of its theorem: V, a function of its states, and ρ, the factor by which V falls in a round."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpi_compress.algorithms.needs import LAST_ITERATE, ONE_STEP_SIZE, Need, check_need, is_exact
from mpi_compress.algorithms.steps import OF_COMPRESSORS, of_compressor
from mpi_compress.core.expressions import evaluate, names_in
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective

_ROUNDING = 1e-9
_DECIDE = frozenset(("theorem", "worker_sends", "estimate", "master_answers", "all_hear", "theory", "parts"))


class Theorem:
    """A theorem about a bound method m; by default it says nothing. One with V defines `V`, and `terms` if V needs some."""

    convex: bool = False  # True: the step size `theory` is that of a theorem about convex f_i
    tight: str = ""  # the step size of a tight analysis, as a formula, which steps may name `tight`
    needs: Sequence[Need] = ()  # of V, beside what the method needs itself
    formulas: Sequence[str] = ()  # further formulas that name quantities of V
    of_first: bool = False  # True: the step size `theory` is that of the mean of the first messages to arrive, too
    also: Mapping[str, Any] = {}  # parameters with which the method is tried, too, where its theorem is checked
    rate: Any = None  # ρ: a formula of the method's quantities, or a method `rate(self, m, t)` of the round that V went through

    def terms(self, m: Any, node: Any, worker: Any, f: "Shard") -> Sequence[float | Vector]:
        """What V needs of a worker, numbers and vectors (d,)."""
        return ()

    def V(self, m: Any, node: Any, workers: Any, master: Any, known: "AtRecord") -> float:
        """V, by the means of all workers' terms."""
        raise NotImplementedError

    def tossed(self, node: Any, ups: Sequence[Any], gradients: float) -> tuple[float, float]:
        """Heads and tosses of the coin of chance p in the last round, by what a node knows after it, by what workers' messages
        decode to, and by the gradients that each worker took; none where the method has no coin."""
        return 0, 0


class OfConvex(Theorem):
    """The step size `theory` is that of a theorem about convex f_i, and no V is stated."""

    convex = True


@dataclass(frozen=True)
class AtRecord:
    """What V may use beside the states: the problem at the iterate of a record."""

    x: Vector  # (d,) the iterate
    f: float  # f(x)
    gradient: Vector  # (d,) ∇f(x)
    x_star: Any  # (d,); None where it is not known
    f_star: float  # NaN likewise

    @property
    def gap(self) -> float:
        """f(x) − f*."""
        return self.f - self.f_star

    def distance2(self, x: Vector | None = None) -> float:
        """‖x − x*‖² of the iterate, or of another point."""
        return squared_norm((self.x if x is None else x) - self.x_star)


@dataclass
class Shard:
    """What the terms of a worker may use beside the states: its f_i. Nothing is counted, and the clock stands."""

    f: Objective
    x_star: Any  # (d,); None where it is not known
    x: Any = None  # (d,) the iterate of the record

    @property
    def gradient(self) -> Vector:
        """∇f_i at the iterate (d,)."""
        return self.f.value_and_gradient(self.x)[1]

    def at(self, x: Vector) -> tuple[float, Vector]:
        """f_i and ∇f_i (d,) at any point."""
        return self.f.elsewhere(x)

    @cached_property
    def at_optimum(self) -> Vector:
        """∇f_i(x*) (d,)."""
        return self.at(self.x_star)[1]


OWN_PARTS = Need(lambda m: {m.server.name, m.by.name} <= {*m.parts}, "V of {name} is that of its own server and downlink")
EXACT_MEAN = Need(lambda m: is_exact(m.down), "V of {name} is that of an exact message down")
PLAIN = (ONE_STEP_SIZE, LAST_ITERATE, EXACT_MEAN, OWN_PARTS)
OWN_MOMENTUM = Need(lambda m: m.momentum is None and m.setting.numbers["mu"], "V of {name} needs mu > 0 and its own τ")
WHOLE = Need(lambda m: m.batch is None, "V of {name} is that of full gradients: leave batch out")
F_STAR = Need(lambda m: m.setting.f_star == m.setting.f_star, "V of {name} needs f*, which is not known here")
WITHIN = Need(lambda m: m.step <= evaluate(m.theory, quantities(m)) * (1 + _ROUNDING), "V of {name} covers no step beyond `theory`")
_USUAL = Need(
    lambda m: not (m.setting.participants or m.setting.penalty_apart),
    "V of {name} is that of f without penalty, and of the mean of all workers",
)


def quantities(method: Any) -> dict[str, float]:
    """The numbers of a bound method's theorem: those of its formulas, and δ and ω of its compressors."""
    found: dict[str, float] = {}
    for name in OF_COMPRESSORS:
        with suppress(ValueError, TypeError):  # a parameter that the method sets from round to round; or it states none
            found[name] = float(of_compressor(method, name))
    return found | method.setting.numbers


def constants(method: Any, *names: str) -> list[float]:
    """Some of its `quantities`."""
    known = quantities(method)
    return [known[name] for name in names]


def stated(method: Any) -> bool:
    """True if a method states V itself: one that changes a line, a part or the step of another one does not inherit V."""
    own = next(vars(cls) for cls in type(method).__mro__ if not _DECIDE.isdisjoint(vars(cls)))
    return "theorem" in own and type(method.theorem).V is not Theorem.V


def has_theory(cls: Any) -> Any:
    """The class that states the step size `theory` of a method."""
    return next(each for each in cls.__mro__ if "theory" in vars(each))


def is_of_another(cls: Any) -> bool:
    """True if a method changes a line, and the theorem of its step size `theory` is another one's."""
    changes = next(vars(each) for each in cls.__mro__ if not _DECIDE.isdisjoint(vars(each)))
    return {"theory", "theorem"}.isdisjoint(changes)


def names_of_theorem(method: Any) -> set[str]:
    """The quantities of the problem that V and ρ of a method may name."""
    theorem = method.theorem
    formulas = (method.theory, theorem.tight, theorem.rate, *theorem.formulas)
    return set().union(*(names_in(each) for each in formulas if each and isinstance(each, str))) if stated(method) else set()


def factor(method: Any, t: Round) -> float:
    """ρ of round t.k."""
    rate = method.theorem.rate
    return float(rate(method, t)) if callable(rate) else evaluate(rate, quantities(method))


def unproved(method: Any) -> str:
    """Why V of a bound method is not evaluated, in one line; "" if it is."""
    if not stated(method):
        return f"{method.name} states no V"
    try:
        for need in (_USUAL, *method.theorem.needs):
            check_need(need, method)
        ρ = factor(method, Round(0, Streams(0), Role.MASTER))
    except ValueError as error:
        return str(error)
    return "" if 0 <= ρ <= 1 + _ROUNDING else f"the theorem of {method.name} does not cover this step: its ρ is {ρ:.4g}"


def in_mean(method: Any) -> bool:
    """True if the theorem of a bound method is about the mean over random choices: of compressors, coins and minibatches."""
    draws = any(C.omega(method.setting.dim) or C.draws_indices for C in (method.up.compressor, method.down.compressor))
    return draws or getattr(method, "p", 1.0) != 1.0 or method.batch is not None


def value_of(method: Any, node: Any, means: Any, master: Any, x: Vector, f: float, gradient: Vector) -> float:
    """V, by the means of workers' terms."""
    known = AtRecord(x, f, gradient, method.setting.x_star, method.setting.f_star)
    return float(method.theorem.V(method, node, means, master, known))


TIGHT = "2/(L_mean + mu)*(1 - sqrt(1 - delta))/(1 + sqrt(1 - delta))"
"""η*, EF's and EF21's step with the least worst case, for one worker, or workers with equal constants: Berg Thomsen, Taylor,
Dieuleveut (NeurIPS 2025, arXiv 2506.05271)."""


def tight_factor(L: float, µ: float, ε: float) -> float:
    """ρ* with η*, ε = 1 − δ: V is ‖x − x* − e‖² + ‖e‖²/√ε of EF, ‖g − ∇f(x)‖² + √ε‖∇f(x)‖² of EF21."""
    s, gap = math.sqrt(ε), L - µ
    λ = 2 / (L + µ) ** 2 * (1 - s) / (1 + s) * ((1 - s) * gap + (1 + s) * math.sqrt(gap**2 + 16 * L * µ * s / (1 + s) ** 2))
    return s + (1 + s) * gap * λ / 4


def is_tight(method: Any) -> bool:
    """True if the step of a bound method is η*, and it has one worker."""
    numbers = {"L_mean": method.setting.numbers.get("L"), **quantities(method)}
    return bool(method.setting.n == 1 and "delta" in numbers and abs(method.step / evaluate(TIGHT, numbers) - 1) < 1e-9)


IS_TIGHT = Need(is_tight, 'V of {name} is that of one worker and step = "tight"')
