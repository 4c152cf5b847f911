from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mpi_compress.algorithms.tuning.schemes import Sparsified, check_planned
from mpi_compress.algorithms.vocabulary import (
    ADDS_UP,
    Batch,
    Count,
    Estimator,
    First,
    Lemma,
    Log,
    Objective,
    Round,
    Rounds,
    Setting,
    Shards,
    Step,
    Time,
    Vector,
    algorithms,
    at_moment,
    count_of,
    starts_whole,
    together,
)


@dataclass
class Worker:
    g: Vector  # (d,) g_i: what everyone believes ∇f_i(x) is
    budget: Vector  # T of the last message


@algorithms.register("kimad")
class Kimad(Estimator):
    """Kimad: Xin, Ilin, Zhang, Canini, Richtárik (2023), up, with one layer: EF21 whose messages fill the time that a round has.

    worker sends     T ← the largest with C(T) ≤ deadline − the time of ∇f_i(x), by the link of the moment; at least `least`
                     c_i ← top-T(∇f_i(x) − g_i);  g_i ← g_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    C(T) is the cost of a message of T coordinates. "trace" knows the link of the moment, [time] a gradient's time. Another
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
    lemma = Lemma()
    log = Log(("budget",), lambda w: [w.budget], of_rows=True)
    theory = "1/(L + L_rms*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"
    deadline: Time = field(kw_only=True)  # of a gradient and its message up, such as "0.5 s"
    step: Step = "theory"  # γ, the step size
    least: Count = 1  # the fewest coordinates of a message, or a share of d such as "1%"
    first: First = "compressed"  # what round 0 sends: whole gradients, or compressed ones

    def bind(self, setting: Setting) -> Self:
        compressor, least = setting.up.compressor, count_of(self.least, setting.dim)
        if compressor.name != "top-k" or getattr(compressor, "k", None) not in (None, least):
            raise ValueError("kimad sets k itself: its compressor is top-k without k")
        check_planned(setting.up, setting.cost)
        if not float(self.deadline) >= 0:
            raise ValueError(f"deadline = {self.deadline} must be 0 or more")
        return super().bind(replace(setting, up=setting.up.at(k=least)))

    def start_workers(self, node: Any, fs: Shards) -> Worker:
        return Worker(fs.zeros(), np.full(len(fs), np.nan))

    def largest(self, f: Objective, t: Round, computed: float) -> int:
        """T: what fits into the time that is left to the message after so many seconds."""
        cost = self.setting.cost
        left = float(self.deadline) - computed
        fitting = bisect_right(self._charged, left, key=at_moment(cost, t.second, t.who).cost)
        return max(fitting, count_of(self.least, f.dim))

    @cached_property
    def _charged(self) -> list[float]:
        """The bits that a message of T = 1, …, d coordinates is charged for."""
        return Sparsified(self.up, self.setting.cost).charged(self.setting.cost, np.arange(1.0, self.setting.dim + 1)).tolist()

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        v, whole = fs.gradients(node.x) - w.g, starts_whole(self, t.k)
        computing = self.setting.computing
        computed = computing.of_gradients(fs, t) if computing else np.zeros(len(fs))
        w.budget[:] = fs.dim if whole else [*map(self.largest, fs, t, computed)]
        c = self.up.whole.pack(v, t) if whole else together([self.up.at(k=int(T)).pack(v[i], t[i]) for i, T in enumerate(w.budget)])
        self.uplink(node, t.k).unpack(c).add_to(w.g)
        return c
