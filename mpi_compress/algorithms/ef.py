from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

from mpi_compress.algorithms.averaging import IterateMean
from mpi_compress.algorithms.base import PartialMean, Setting, algorithms
from mpi_compress.algorithms.error_feedback import ErrorFeedback, first_regime
from mpi_compress.algorithms.error_memory import ErrorMemory
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.tuned_link import tuned
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.scaled_vector import ScaledVector


@dataclass
class Node:
    x: ScaledVector  # (d,) iterate
    mean: IterateMean | None  # of the iterates, where it is wanted
    regime: Regime | None  # where the compressor follows ACCORDION's
    silent: int = 0  # rounds in which no worker sent anything


@algorithms.register("ef")
@dataclass(frozen=True)
class EF(ErrorFeedback):
    """Distributed SGD with error feedback: Sahu, Dutta, Abdelmoniem, Banerjee, Canini, Kalnis (NeurIPS 2021), Algorithm 1.

    worker sends     p ← e_i + γ g_i;  Δ_i ← γ C(p/γ);  e_i ← p − Δ_i
    master answers   Δ̄ ← (1/n) Σ Δ_i
    everyone         x ← x − Δ̄

    What is sent is C(p/γ); g_i, γ and the regulariser are as in gd. With momentum it is their Algorithm 2 (form = "gradient") or
    Algorithm 3 (form = "update", and `masking`). `feedback` = false drops e_i after every round (its size is logged still),
    `reset` = r after every r-th. `budget` = "cat" tunes C to each p/γ as CAT tunes it to a gradient.

    Without momentum, if some of the workers take part, the others keep their e_i, and Δ̄ is the mean of what was sent (Fed-EF: Li
    and Li, ICML 2023).
    """

    paper = "HT Algorithms 1, 2, 3"
    partial_mean: ClassVar[PartialMean] = "over participants"
    forms: ClassVar[dict[str, type["EF"]]] = {}  # with momentum
    momentum: float = 0.0  # λ, the momentum; 0: none
    direction: Literal["printed", "nesterov", "heavy-ball"] = "printed"  # u = Δ' + m as in the paper, Δ' + λ m, or m alone
    form: Literal["gradient", "update"] = "gradient"  # momentum of what all hear (HT Algorithm 2), or of each worker (Algorithm 3)
    budget: Literal["cat"] | None = None  # "cat": T of top-k, or a contraction's size, is tuned for each message; left out: fixed
    masking: bool = False  # true: a worker's momentum is cleared at the coordinates that it sends; for form = "update"

    def within(self, setting: Setting) -> "EF":
        form = self.forms[self.form] if self.momentum else EF
        if isinstance(self, form):
            return super().within(setting if self.budget is None else replace(setting, up=tuned(setting.up, setting.cost)))
        if type(self) is not EF:
            raise ValueError(f"{type(self).__name__} derives from EF; with momentum it should derive from {form.__name__}")
        return form(**{f.name: getattr(self, f.name) for f in fields(self)}).within(setting)

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return (way == "up" and self.budget is not None) or super().settles(compressor, way)

    def check(self) -> None:
        super().check()
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum = {self.momentum} must be from 0 to below 1")
        if self.direction != "printed" and not self.momentum:
            raise ValueError(f'direction = "{self.direction}" is a direction of momentum: it needs momentum = …')
        if self.masking and not (self.momentum and self.form == "update"):
            raise ValueError('masking = true clears a worker\'s momentum: it needs momentum = … and form = "update"')

    @property
    def fixed_budget(self) -> int | None:
        return None if self.budget is not None else super().fixed_budget

    def start(self, x0: Vector) -> Node:
        return Node(ScaledVector(x0.copy()), IterateMean.begun(self.average, x0), first_regime(self.up.compressor, x0))

    def worker_sends(self, node: Node, worker: ErrorMemory, f: Objective, t: Round) -> Message:
        γ, link = self.gamma(t.k), self.uplink(node, t.k)
        worker.at_step(γ)
        worker.add_gradient(f, node.x, self.rows(f, t))  # p/γ ← e_i/γ + g_i
        Δ = link.pack(worker.e, t)  # C(p/γ)
        worker.take_out(link.unpack(Δ))  # e_i/γ ← p/γ − C(p/γ)
        if self.drops_errors(t.k):
            worker.drop()
        return Δ

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        node.x.shrink(self.kept_by_regulariser(t.k), at_once=self.batch is None)
        node.x.add(down, -self.gamma(t.k))
        self.note_round(node, down, t.k)
