import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    ADDS_UP,
    Batch,
    Compressed,
    Count,
    Estimator,
    Expression,
    Rounds,
    Setting,
    Shards,
    Step,
    Vector,
    algorithms,
    count_of,
    exact_up,
    silent,
    spread,
    squared_norms,
    starts_at_0,
    together,
)


@dataclass
class Worker:
    g: Vector  # (d,) g_i: what everyone believes ∇f_i(x) is
    y: Vector  # (d,) ∇f_i at the iterate before


@algorithms.register("3pc")
class ThreePC(Estimator):
    """Three-point compressors: Richtárik, Sokolov, Gasanov, Fatkhullin, Li, Gorbunov (ICML 2022), Algorithm 1 with CLAG's map.

    worker sends     nothing where ‖∇f_i(x) − g_i‖² ≤ ζ‖∇f_i(x) − y_i‖², else c_i ← C(∇f_i(x) − g_i)
                     g_i ← g_i + c_i;  y_i ← ∇f_i(x)
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    Round 0 sends all of ∇f_i(x0). With ζ = 0 this is EF21, and with the identity LAG. C is contractive with δ: with s = √(1−δ),
    A = 1 − s and B = max{s²/(1−s), ζ}, their theorem for smooth f has γ ≤ 1/(L + L̃ √(B/A)), L̃ = √((1/n) Σ L_i²), the default; then
    (1/T) Σ‖∇f(x_k)‖² ≤ 2(f(x0) − f*)/(γT). Up to ζ = s²/(1−s) the trigger costs no step size. With ζ = 1 the trigger compares
    two equal numbers after each whole message, and the worker is silent: y_i is then g_i as it was decoded, to the last bit.
    """

    paper = "3PC, Algorithm 1"
    compressor = "top-k"
    first = "gradient"
    adds_up = True
    needs = ADDS_UP
    theory = "1/(L + L_rms*sqrt(max((1 - delta)/(1 - sqrt(1 - delta)), zeta)/(1 - sqrt(1 - delta))))"
    step: Step = "theory"  # γ, the step size
    zeta: Expression = 0.0  # ζ, the trigger: the larger it is, the more workers are silent; with 0 it is EF21

    def check(self) -> None:
        super().check()
        if self.zeta < 0:
            raise ValueError(f"zeta = {self.zeta} must be 0 or more")

    start_workers = starts_at_0(Worker)

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        g = fs.gradients(node.x)
        D, tolerance = g - w.g, self.zeta * squared_norms(g - w.y)
        w.y[:] = g
        speaks = np.flatnonzero(~(squared_norms(D) <= tolerance) | (t.k == 0))
        if not speaks.size:
            return silent(len(fs))
        sent = self.up.whole.pack(D, t) if t.k == 0 else self.pack(D[speaks], tolerance[speaks], t[speaks])
        c: Any = self.uplink(node, t.k).unpack(sent)
        c.add_to(w.g, 1.0, speaks)
        whole = speaks[self.is_whole(c) | (t.k == 0)]
        w.y[whole] = w.g[whole]  # both are ∇f_i(x) but for the rounding of the message, which must not decide the next trigger
        return spread(sent, speaks, len(fs))

    def is_whole(self, c: Compressed) -> Any:
        """(m,) True where c is D = ∇f_i(x) − g_i but for rounding: C lost nothing."""
        return (c.elements == self.setting.dim) & (self.up.compressor.delta(self.setting.dim) == 1.0)

    def pack(self, D: Vector, tolerance: Vector, t: Rounds) -> Batch:
        """The messages of D = ∇f_i(x) − g_i (m, d) from workers that are not silent: ‖D‖² > `tolerance` (m,)."""
        return self.up.pack(D, t)


@algorithms.register("clag")
class CLAG(ThreePC):
    """CLAG, compressed and lazily aggregated gradients: 3pc with the largest trigger that costs no step size."""

    paper = "3PC, CLAG"
    zeta: Expression = "(1 - delta)/(1 - sqrt(1 - delta))"  # ζ, the trigger: the larger it is, the more workers are silent


@algorithms.register("lag")
class LAG(ThreePC):
    """LAG, lazily aggregated gradients (Chen, Giannakis, Sun, Yin, NeurIPS 2018), as 3pc has it: with the identity."""

    paper = "3PC, LAG"
    compressor = "identity"
    needs = (*ADDS_UP, exact_up("lag sends whole gradients: leave up.compressor out, or take clag"))
    zeta: Expression = 1.0  # ζ, the trigger: the larger it is, the more workers are silent; with 0 it is gradient descent


@algorithms.register("laq")
class LAQ(ThreePC):
    """LAQ, lazily aggregated quantised gradients (Sun, Chen, Giannakis, Yang, NeurIPS 2019), by the trigger that 3pc has for LAG.

    It is `clag` with LAQ's quantiser, each coordinate to the nearest of 2s + 1 levels of its largest magnitude (`uniform`). LAQ's
    own trigger compares with the last moves of x and adds the errors of quantising, which the theorem of 3pc has no need of.
    """

    paper = "LAQ, with 3PC's trigger"
    links = {"up": {"compressor": {"name": "uniform", "levels": 7}}}
    zeta: Expression = "(1 - delta)/(1 - sqrt(1 - delta))"  # ζ, the trigger: the larger it is, the more workers are silent


@algorithms.register("adacgd")
class AdaCGD(ThreePC):
    """Adaptive compressed gradient descent: Makarenko, Gasanov, Islamov, Sadiev, Richtárik (2022), as a three-point compressor.

    worker sends     nothing where ‖D‖² ≤ τ, with D = ∇f_i(x) − g_i and τ = ζ‖∇f_i(x) − y_i‖²;
                     else c_i ← C_j(D) with the first j = 1, …, m that has ‖D − C_j(D)‖² ≤ τ, or with j = m

    and the rest as in 3pc. C_j is top-k with the j-th of `levels`, the coarsest first. The default step is that of 3pc for the δ of
    C_m, the finest; this was not checked against the paper. One level and ζ = 0 are EF21.
    """

    paper = "AdaCGD, Algorithm 1"
    sets_compressor = True
    zeta: Expression = 1.0  # ζ, the trigger: the larger it is, the shorter messages are, and the more workers are silent
    levels: list[Count] | None = None  # increasing numbers of coordinates, or shares of d such as "1%"; left out: 1, 2, 4, …, d

    def bind(self, setting: Setting) -> Self:
        if setting.up.compressor.name != "top-k":
            raise ValueError(f"adacgd chooses the k of top-k, and up.compressor = {setting.up.compressor.name} was given")
        finest = setting.up.at(k=self.counts_of(setting.dim)[-1])
        return super().bind(replace(setting, up=finest))

    def counts_of(self, d: int) -> Sequence[int]:
        """The k of C_1, …, C_m for vectors of d coordinates."""
        if self.levels is None:
            return [*itertools.takewhile(lambda k: k < d, (2**j for j in itertools.count())), d]
        return [count_of(level, d) for level in self.levels]

    @cached_property
    def counts(self) -> Sequence[int]:
        """The k of C_1, …, C_m."""
        return self.counts_of(self.setting.dim)

    def check(self) -> None:
        super().check()
        if any(a >= b for a, b in itertools.pairwise(self.counts)):
            raise ValueError(f"levels = {self.levels} must increase, the coarsest first")

    def pack(self, D: Vector, tolerance: Vector, t: Rounds) -> Batch:
        return together([self.up.at(k=self.coarsest(v, most)).pack(v, t_i) for v, most, t_i in zip(D, tolerance, t, strict=True)])

    def coarsest(self, D: Vector, tolerance: float) -> int:
        """The first k with ‖D − C_j(D)‖² ≤ τ, or the last one."""
        lost = np.concatenate([[0.0], np.cumsum(np.sort(D * D))])[::-1]  # (d + 1,) ‖D − C(D)‖² of top-k with k = 0, …, d
        return next((k for k in self.counts if lost[k] <= tolerance), self.counts[-1])
