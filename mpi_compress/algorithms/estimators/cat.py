"""Methods that choose how much each message says by what it costs."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from mpi_compress.algorithms.estimators.gd import GD
from mpi_compress.algorithms.needs import ADDS_UP, Need
from mpi_compress.algorithms.theorem import F_STAR, PLAIN, WHOLE
from mpi_compress.algorithms.tuning.schemes import SCHEMES, Budget, Scheme, Sparsified, Tuning, check_budget
from mpi_compress.algorithms.tuning.sizes import sizes_of
from mpi_compress.algorithms.vocabulary import Compressed, Estimator, First, Message, Objective, Round, Setting, Step, algorithms
from mpi_compress.core.expressions import Time
from mpi_compress.core.registry import fact
from mpi_compress.messages.compressors.base import Count, Sized, count_of
from mpi_compress.messages.costs import Clocked, at_moment
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link


@dataclass
class Worker:
    budget: float = np.nan  # T of the last round, or the size s


LEMMA = Need(
    lambda m: m.setting.n == 1 and m.up.compressor.name == "top-k" and m.is_lemma_step,
    "V of {name} is that of one worker, top-k and the step 1/L",
)


@algorithms.register("cat")
class CAT(GD):
    """Communication-aware adaptive tuning: Khirirat, Magnússon, Aytekin, Johansson (AAAI 2021), eq. 8–16.

    worker sends     γL·Q_T(g),  g = ∇f_i(x) or its estimate by a minibatch,  T = argmax improvement(T)/C(T)
    master answers   ĝ = (1/n) Σ γL·Q_T(g)
    everyone         x ← x − (1/L) ĝ

    C(T) is the cost model's for a message of budget T. Every worker tunes its own T in every round:

    compressor    improvement                       γL
    top-k         α(T) = ‖Q_T(g)‖²/‖g‖²             1
    sq            β(T) = ⟨g, Q_T(g)⟩²/(T‖g‖⁴)       √β/√T, the worker's own: with very unlike shards it can stall
    stochastic    ω(T) = ‖g‖²/E‖Q_T(g)‖²            min_j ω_j, applied by the master: steps of one's own would bias the mean
    block-sign    1 − ‖g − Q_s(g)‖²/‖g‖²            1
    others        1/(1 + ω(s))                      1/(1 + ω(s)), applied by the master; s is the same for all workers and rounds

    The last two rows are beyond the paper: any compressor with a size s in place of T (`tuning.sizes`), for
    f(x − Q/L) ≤ f(x) − (‖g‖² − ‖g − Q‖²)/2L, of which eq. 8's lemmas are special cases. The others are `natural`, `dithering` and
    `count-sketch`.

    A message of S+Q holds a scalar, the magnitude, and so does one of stochastic sparsification by several workers, ω_j; C(T) and
    the bits count it. A single worker folds ω into the values, and sends what eq. 5 counts.
    """

    paper = "CAT eq. 8–16"
    compressor = "top-k"
    sets_compressor = True
    proximal = False
    partial_mean = ""
    logs = ("budget",)
    budget: Budget = "cat"  # T, or the size s: tuned, by Alistarh's rule for S+Q, or a number

    theorem_needs: ClassVar[Sequence[Need]] = (*PLAIN, WHOLE, F_STAR, LEMMA)

    rate = "1 - mu/(L*d)"

    def lyapunov(self, node: Any, workers: Any, master: Any, known: Any) -> float:
        """f − f*, which falls by 1 − α(T)µ/L where f is µ-PŁ (CAT's Lemma 1); α(T) is at least T/d, and T at least 1."""
        return float(known.gap)

    @cached_property
    def tuning(self) -> Tuning:
        """How messages are made by the uplink's compressor."""
        if isinstance(self.up.compressor, Sized):
            return sizes_of(self.up, self.setting.cost, self.budget if isinstance(self.budget, int) else None)
        return SCHEMES[self.up.compressor.name].of(self.up, self.setting.cost, self.budget, self.setting.n)

    def check(self) -> None:
        check_budget(self.up, self.setting.cost, self.budget)
        self.tuning  # noqa: B018  raises where the cost cannot be planned

    def uplink(self, node: Any, k: int) -> Link:
        return self.tuning.link

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker()

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        worker.budget, message = self.tuning.message(f.gradient(node.x, self.rows(f, t)), t)
        return message

    def answer(self, ups: Sequence[Compressed]) -> Compressed:
        return self.tuning.answer(self.mean, ups)

    @fact
    def needs_each(self) -> bool:
        return self.tuning.needs_each

    @fact
    def curve(self) -> str:
        return self.tuning.symbol

    @property
    def fixed_budget(self) -> int | None:
        return self.budget if isinstance(self.budget, int) and isinstance(self.tuning, Scheme) else None

    def improvement(self, g: Vector) -> float:
        if not self.is_lemma_step or isinstance(self.setting.cost, Clocked) or (self.setting.n > 1 and not self.tuning.is_unbiased):
            return np.nan
        return self.tuning.improvement_for(g)

    def worker_logs(self, worker: Worker) -> Sequence[float]:
        return (worker.budget,)


@dataclass
class WorkerWithGradient:
    g: Vector  # (d,) g_i: what everyone believes ∇f_i(x) is
    budget: float = np.nan  # T of the last message


@algorithms.register("kimad")
class Kimad(Estimator):
    """Kimad: Xin, Ilin, Zhang, Canini, Richtárik (2023), up, with one layer: EF21 whose messages fill the time that a round has.

    worker sends     T ← the largest with C(T) ≤ deadline − the time of ∇f_i(x), by the link of the moment; at least `least`
                     c_i ← top-T(∇f_i(x) − g_i);  g_i ← g_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    C(T) is the cost of a message of T coordinates. "trace" knows the link of the moment and a gradient's time. Another
    model has the same C in every round, and the deadline is in its unit. A worker whose link is too slow for `least` is late.

    Every message contracts at least as top-`least` does, with δ = least/d, so that EF21's Theorem 1 holds: γ ≤ 1/(L + L̃ √(β/θ)),
    θ = 1 − √(1−δ), β = (1−δ)/θ, the default. On a link that does not change this is ef21 with one T.
    Of the paper its abstract and introduction alone were found: the rule for T follows them, its details are ours.
    """

    paper = "Kimad"
    compressor = "top-k"
    adds_up = True
    needs = ADDS_UP
    sets_compressor = True
    fixed_budget = None
    plans_by_cost = True
    logs = ("budget",)
    theory = "1/(L + L_rms*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"
    deadline: Time = field(kw_only=True)  # of a gradient and its message up, such as "0.5 s"
    step: Step = theory  # γ, the step size
    least: Count = 1  # the fewest coordinates of a message, or a share of d such as "1%"
    first: First = "compressed"  # what round 0 sends: whole gradients, or compressed ones

    def bind(self, setting: Setting) -> Self:
        compressor, least = setting.up.compressor, count_of(self.least, setting.dim)
        if compressor.name != "top-k" or getattr(compressor, "k", None) not in (None, least):
            raise ValueError("kimad sets k itself: its compressor is top-k without k")
        if setting.cost.on_wire and setting.up.planned_wire_bits(1) is None:
            raise ValueError(f'the codec "{setting.up.codec.name}" does not decide the bits by T alone; use "fixed" or "bitmap"')
        if not float(self.deadline) >= 0:
            raise ValueError(f"deadline = {self.deadline} must be 0 or more")
        return super().bind(replace(setting, up=setting.up.at(k=least)))

    def start_worker(self, node: Any, f: Objective) -> WorkerWithGradient:
        return WorkerWithGradient(np.zeros(f.dim))

    def largest(self, f: Objective, t: Round) -> int:
        """T: what fits into the time that is left to the message."""
        cost = self.setting.cost
        left = float(self.deadline) - (cost.computing(f.rows.nonzeros) if isinstance(cost, Clocked) else 0.0)
        fitting = bisect_right(self._charged, left, key=at_moment(cost, t.second, t.who).cost)
        return max(fitting, count_of(self.least, f.dim))

    @cached_property
    def _charged(self) -> list[float]:
        """The bits that a message of T = 1, …, d coordinates is charged for."""
        return Sparsified(self.up, self.setting.cost).charged(self.setting.cost, np.arange(1.0, self.setting.dim + 1)).tolist()

    def worker_sends(self, node: Any, worker: WorkerWithGradient, f: Objective, t: Round) -> Message:
        v = f.gradient(node.x) - worker.g
        worker.budget = f.dim if self.starts_whole(t.k) else self.largest(f, t)
        c = (self.up.whole if self.starts_whole(t.k) else self.up.at(k=int(worker.budget))).pack(v, t)
        self.uplink(node, t.k).unpack(c).add_to(worker.g)
        return c

    def worker_logs(self, worker: WorkerWithGradient) -> Sequence[float]:
        return (worker.budget,)
