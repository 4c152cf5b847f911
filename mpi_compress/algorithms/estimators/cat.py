from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mpi_compress.algorithms.estimators.gd import GD
from mpi_compress.algorithms.tuning.schemes import Budget, Scheme, Tuning
from mpi_compress.algorithms.tuning.sizes import tuning_of
from mpi_compress.algorithms.vocabulary import (
    F_STAR,
    PLAIN,
    WHOLE,
    Batch,
    Compressed,
    Lemma,
    Link,
    Log,
    Need,
    Rounds,
    Shards,
    Theorem,
    Vector,
    algorithms,
    notes,
)


@dataclass
class Worker:
    budget: Vector  # T of the last round, or the size s


LEMMA = Need(
    lambda m: m.setting.n == 1 and m.up.compressor.name == "top-k" and m.is_lemma_step,
    "V of {name} is that of one worker, top-k and the step 1/L",
)


class CATTheorem(Theorem):
    needs = (*PLAIN, WHOLE, F_STAR, LEMMA)
    rate = "1 - mu/(L*d)"

    def V(self, m, node, workers, master, known) -> float:
        """f − f*, which falls by 1 − α(T)µ/L where f is µ-PŁ (CAT's Lemma 1); α(T) is at least T/d, and T at least 1."""
        return known.gap


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
    theorem = CATTheorem()
    compressor = "top-k"
    sets_compressor = True
    proximal = False
    partial_mean = ""
    log = Log(("budget",), lambda w: [w.budget], of_rows=True)
    budget: Budget = "cat"  # T, or the size s: tuned, by Alistarh's rule for S+Q, or a number

    @cached_property
    def tuning(self) -> Tuning:
        """How messages are made by the uplink's compressor."""
        return tuning_of(self.up, self.setting.cost, self.budget, self.setting.n)

    def check(self) -> None:
        self.tuning  # noqa: B018  raises where the cost cannot be planned

    def uplink(self, node: Any, k: int) -> Link:
        return self.tuning.link

    @notes
    def start_workers(self, node: Any, fs: Shards) -> Worker:
        return Worker(np.full(len(fs), np.nan))

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        w.budget[:], sent = self.tuning.messages(fs.gradients(node.x, self.rows(fs, t)), t)
        return sent

    def answer(self, ups: Any) -> Compressed:
        return self.tuning.answer(self.mean, ups)

    @property
    def lemma(self) -> Lemma:
        T = self.budget if isinstance(self.budget, int) and isinstance(self.tuning, Scheme) else None
        return Lemma(T, self.tuning.symbol, self.improvement)

    def improvement(self, g: Vector) -> float:
        if not self.is_lemma_step or self.setting.cost.clock or (self.setting.n > 1 and not self.tuning.is_unbiased):
            return np.nan
        return self.tuning.improvement_for(g)
