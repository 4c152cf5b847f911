from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.servers.momentum import HeavyBall
from mpi_compress.algorithms.tuning.sizes import tuned
from mpi_compress.algorithms.vocabulary import (
    ERRORS,
    HEARS_MEAN,
    IS_TIGHT,
    NO_GRADIENT,
    OPTIMUM,
    PLAIN,
    TIGHT,
    WHOLE,
    AtLeastOne,
    Batch,
    Compressed,
    Decay,
    Direction,
    ErrorMemory,
    Estimator,
    Link,
    PartialMean,
    Positive,
    Round,
    Rounds,
    Setting,
    Shards,
    Step,
    Theorem,
    UsualParameters,
    Vector,
    algorithms,
    check_need,
    constants,
    fact,
    level_of,
    rounds_of_epoch,
    squared_norm,
    tight_factor,
)


@dataclass
class Memory:
    regime: Regime | None  # where the compressor follows ACCORDION's
    silent: int = 0  # rounds in which no worker sent anything


@dataclass(frozen=True)
class ErrorFeedback(UsualParameters, Estimator):
    """What is compressed is the gradient and an error: what was not sent before. All e_i start at 0.

    worker sends     Δ_i ← g_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    master answers   Δ' ← (1/n) Σ C(Δ_i)

    The error is in units of the gradient, whatever the step, unless the method says that it is in units of x.
    """

    compressor = "top-k"
    by_update = False  # True: each worker has a momentum, which grows its error
    needs = [NO_GRADIENT]
    is_in_units_of_x = False  # True: e_i stays as it is where the step changes; else e_i/γ does
    theory = "1/(4*L_max)"  # HT Theorems 4 and 5
    feedback: bool = True  # false: the error e is dropped after every round
    reset: AtLeastOne | None = None  # rounds after which the error e is dropped, again and again; left out: it is kept

    def bind(self, setting: Setting) -> Self:
        bound = super().bind(setting)
        stays = bound.up.compressor.follows == "step" and isinstance(bound.step, float)  # so does the threshold
        return bound.bound_to(up=bound.in_round(0, None)) if stays else bound

    def check(self) -> None:
        super().check()
        if self.up.compressor.follows == "regime":
            check_need(HEARS_MEAN, self)

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(Regime(np.zeros_like(x0)) if self.up.compressor.follows == "regime" else None)

    def start_workers(self, node: Any, fs: Shards) -> ErrorMemory:
        stays = isinstance(self.step, float) and self.feedback and self.reset is None
        return ErrorMemory.begun(fs, self.up.compressor, self.batch, stays)

    def uplink(self, node: Any, k: int) -> Link:
        return self.in_round(k, node.memory.regime) if self.up.compressor.follows else self.up

    def in_round(self, k: int, regime: Regime | None) -> Link:
        """The uplink of round k: a threshold given by an accuracy follows γ, ACCORDION's k follows the regime."""
        compressor = self.up.compressor.in_run(self.up.dim, step=self.gamma(k), regime=regime is None or regime.critical)
        return replace(self.up, compressor=compressor)

    def drops_errors(self, k: int) -> bool:
        """True if errors are dropped after round k."""
        return not self.feedback or (self.reset is not None and (k + 1) % self.reset == 0)

    def workers_send(self, node: Any, w: Any, fs: Shards, t: Rounds) -> Batch:
        link = self.uplink(node, t.k)
        w.at_step(self.gamma(t.k), self.is_in_units_of_x)
        if w.followed is not None:
            Δ = link.encode(w.touched(fs, node.x, self.rows(fs, t), level_of(link.compressor)))
        else:
            self.grow(w, node.x, fs, t)  # Δ_i ← g_i + e_i
            Δ = link.pack(w.e, t)  # C(Δ_i)
        w.take_out(link.unpack(Δ))  # e_i ← Δ_i − C(Δ_i)
        if self.drops_errors(t.k):
            w.drop()
        return Δ

    def grow(self, w: Any, x: Any, fs: Shards, t: Rounds) -> None:
        """e_i ← e_i + g_i, in units of the gradient."""
        fs.add_gradients(w.e, x, self.rows(fs, t))

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        memory.silent += mean.elements == 0
        if memory.regime is not None:
            epoch = rounds_of_epoch(self.setting.numbers["N"], self.setting.n, self.batch)
            of_blocks = getattr(self.up.compressor, "each", self.up.compressor)
            memory.regime.hear(of_blocks, mean, t.k, epoch, self.gamma(t.k + 1) < self.gamma(t.k))
        return (mean,)


@dataclass
class WorkerWithMomentum(ErrorMemory):
    m: Vector | None = None  # (m, d) m_i, momentum


class EFTheorem(Theorem):
    tight = TIGHT
    needs = (*PLAIN, WHOLE, OPTIMUM, IS_TIGHT)

    def rate(self, m, t: Round) -> float:
        L, µ, δ = constants(m, "L", "mu", "delta")
        return tight_factor(L, µ, 1 - δ)

    def terms(self, m, node, worker: ErrorMemory, f) -> Sequence[Vector]:
        return (m.gamma(0) * worker.e,)

    def V(self, m, node, workers, master, known) -> float:
        """‖x − x* − e‖² + ‖e‖²/√ε, ε = 1 − δ: Berg Thomsen, Taylor, Dieuleveut (NeurIPS 2025), of one worker and the tight step."""
        (e,), (δ,) = workers, constants(m, "delta")
        return known.distance2(known.x - e) + squared_norm(e) / max(np.sqrt(1 - δ), 1e-300)


@algorithms.register("ef")
class EF(ErrorFeedback):
    """Distributed SGD with error feedback: Sahu, Dutta, Abdelmoniem, Banerjee, Canini, Kalnis (NeurIPS 2021), Algorithm 1.

    worker sends     p ← e_i + γ g_i;  Δ_i ← γ C(p/γ);  e_i ← p − Δ_i
    master answers   Δ̄ ← (1/n) Σ Δ_i
    everyone         x ← x − Δ̄

    What is sent is C(p/γ); g_i, γ and the regulariser are as in gd. With momentum the error is in units of the gradient, whatever
    the step, and logged times γ, and all workers take part in every round. As printed, momentum takes twice Algorithm 1's step when
    λ nears 0. It is their Algorithm 2 (form = "gradient", the server "heavy-ball") or Algorithm 3 (form = "update"):

    worker sends     m_i ← λ m_i + g_i;  u_i ← m_i + g_i, or as `direction` says;  Δ_i ← u_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         x ← x − γ (1/n) Σ C(Δ_i)

    where `masking` clears m_i at the coordinates that were sent (Lin et al. 2018).

    `feedback` = false drops e_i after every round (its size is logged still), `reset` = r after every r-th. `budget` = "cat", here
    or in [up], tunes C to each p/γ as CAT does to a gradient.

    γ = 1/(4L_max) is `theory` (HT Theorems 4 and 5). For µ > 0, whole gradients and no momentum, the worst case is least with
    `tight`, 2/(L̄ + µ) · (1 − √(1−δ))/(1 + √(1−δ)), L̄ = (1/n) Σ L_i: Berg Thomsen, Taylor, Dieuleveut (NeurIPS 2025, ICML 2026).

    Without momentum, if some of the workers take part, the others keep their e_i, and Δ̄ is the mean of what was sent (Fed-EF: Li
    and Li, ICML 2023).
    """

    paper = "HT Algorithms 1, 2, 3"
    theorem = EFTheorem()
    scaled = True
    log = ERRORS
    momentum: Decay = 0.0  # λ, the momentum; 0: none
    direction: Literal["printed", "nesterov", "heavy-ball"] = "printed"  # u = Δ' + m as in the paper, Δ' + λ m, or m alone
    form: Literal["gradient", "update"] = "gradient"  # momentum of what all hear (HT Algorithm 2), or of each worker (Algorithm 3)
    budget: Literal["cat"] | None = None  # "cat": T of top-k, or a contraction's size, is tuned for each message; left out: fixed
    masking: bool = False  # true: a worker's momentum is cleared at the coordinates that it sends; for form = "update"

    @fact
    def sets_compressor(self) -> bool:
        return self.budget is not None

    @fact
    def partial_mean(self) -> PartialMean:
        return "" if self.momentum else "over participants"

    @fact
    def is_in_units_of_x(self) -> bool:
        return not self.momentum and self.server.name == "step"

    def bind(self, setting: Setting) -> Self:
        if self.momentum and self.form == "gradient" and self.server.name == "step":
            return self.bound_to(server=HeavyBall(self.momentum, self.direction)).bind(setting)
        return super().bind(replace(setting, up=tuned(setting.up, setting.cost)) if self.budget else setting)

    def check(self) -> None:
        super().check()
        if self.direction != "printed" and not self.momentum:
            raise ValueError(f'direction = "{self.direction}" is a direction of momentum: it needs momentum = …')
        if self.masking and not (self.momentum and self.form == "update"):
            raise ValueError('masking = true clears a worker\'s momentum: it needs momentum = … and form = "update"')

    @fact
    def by_update(self) -> bool:
        return bool(self.momentum) and self.form == "update"

    def start_workers(self, node: Any, fs: Shards) -> ErrorMemory:
        begun = super().start_workers(node, fs)
        return WorkerWithMomentum(begun.e, begun.sizes, begun.step, m=fs.zeros()) if self.by_update else begun

    def workers_send(self, node: Any, w: Any, fs: Shards, t: Rounds) -> Batch:
        Δ = super().workers_send(node, w, fs, t)
        if self.masking:
            self.mask(w, self.up.unpack(Δ))
        return Δ

    def grow(self, w: Any, x: Any, fs: Shards, t: Rounds) -> None:
        if not self.by_update:
            super().grow(w, x, fs, t)
            return
        g = fs.gradients(x, self.rows(fs, t))
        w.m *= self.momentum
        w.m += g
        w.e += self.momentum * w.m if self.direction == "nesterov" else w.m
        if self.direction != "heavy-ball":
            w.e += g

    def mask(self, w: Any, sent: Compressed) -> None:
        """m_i ← 0 at the coordinates that were sent."""
        held = sent.sparse()
        if held is None:
            w.m[sent.dense() != 0] = 0.0
        else:
            w.m[np.repeat(np.arange(len(w.m)), held.counts), held.indices] = 0.0


@algorithms.register("adam")
class Adam(ErrorFeedback):
    """Adam (Kingma and Ba 2015) on the mean of compressed gradients: GSpar §4.1 without errors, HT's NCF with error feedback.

    worker sends     Δ_i ← g_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         ĝ ← (1/n) Σ C(Δ_i);  x moves by the server `adam`

    `feedback` = false drops e_i after every round, which an unbiased C wants.
    """

    parts = "adam", "mean"
    paper = "GSpar §4.1; HT table 5"
    log = ERRORS
    theory = ""
    step: Step = 1e-3  # γ, the step size
    beta1: Decay = 0.9  # β1, the share that m keeps
    beta2: Decay = 0.999  # β2, the share that v keeps
    epsilon: Positive = 1e-8  # ε, added to √v


@algorithms.register("double-squeeze")
class DoublySqueezed(ErrorFeedback):
    """DoubleSqueeze: Tang, Lian, Yu, Zhang, Liu (ICML 2019), Algorithm 1: error memory in both directions. All start at 0.

    worker sends     u_i ← ∇f_i(x; ξ) + e_i;  c_i ← C(u_i);  e_i ← u_i − c_i
    master answers   V ← (1/n) Σ c_i + E;  q ← C(V);  E ← V − q
    everyone         x ← x − γ q

    So x − γ (E + (1/n) Σ e_i) is always x_0 − γ Σ (1/n) Σ ∇f_i(x; ξ). With a constant γ a floor of O(γ²) remains. γ = 1/(4L) is the
    default, the paper's step without its terms for the noise and the number of rounds; the 4 was not checked against it.
    """

    parts = "step", "double-squeeze"
    paper = "DoubleSqueeze, Algorithm 1"
    theory = "1/(4*L)"
    step: Step = "theory"  # γ, the step size

    def grow(self, w: Any, x: Any, fs: Shards, t: Rounds) -> None:
        w.e += fs.gradients(x, self.rows(fs, t))
