from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mpi_compress.algorithms.answers_each import AnswersEach
from mpi_compress.algorithms.base import algorithms, whole_gradients
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message, of_all_coordinates
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate, which the master alone uses
    full: bool = True  # True: this round's messages down are whole; the coin is tossed alike by all, and costs no bits


@dataclass
class Worker:
    w: Vector  # (d,) w_i: where it takes gradients


@dataclass
class Master:
    x: Vector  # (d,) iterate


@algorithms.register("marina-p")
@dataclass(frozen=True)
class MARINAP(AnswersEach):
    """MARINA-P: Gruntkowska, Tyurin, Richtárik (2024). Each worker gets a message of its own down; the uplink is whole. w_i = x0.

    worker sends     ∇f_i(w_i)
    master answers   x⁺ ← x − γ (1/n) Σ ∇f_i(w_i);  to worker i x⁺ in a full round, else Q_i(x⁺ − x);  x ← x⁺
    worker hears     w_i ← x⁺ in a full round, else w_i + what came
    everyone         the next round is full with probability p

    Q_i is unbiased with ω, and perm-k by default: its messages of a round do not overlap, and the mean of the w_i moves as x does.
    p = 1/(1 + ω), which is 1/n for perm-k, and 1/γ ≥ L + L_max √(ω(1−p)/p) are the defaults: the theorem with L_A = L_max and
    L_B = 0, which hold for every f (derived here, not quoted). Then (1/T) Σ E‖∇f(x_k)‖² ≤ 2(f(x0) − f*)/(γT).
    """

    paper = "MARINA-P"
    links = {"down": {"compressor": "perm-k"}}  # noqa: RUF012
    theory = "1/(L + L_max*sqrt(omega_down*(1 - p)/p))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "1/(1 + omega_down)"  # p, the probability of a full round, whose messages down are whole

    def check(self) -> None:
        super().check()
        whole_gradients(self)
        d = self.setting.dim
        if not self.down.compressor.unbiased(d):
            raise ValueError("marina-p needs an unbiased compressor down, such as perm-k or random-k")
        if self.up.compressor.omega(d) != 0.0:
            raise ValueError("marina-p sends whole gradients up: leave up.compressor out")
        if not 0 < float(self.p) <= 1:
            raise ValueError(f"p = {self.p} must be more than 0, and at most 1")

    @cached_property
    def whole(self) -> Link:
        """The downlink of a full round."""
        return of_all_coordinates(self.down)

    def downlink(self, node: Node, k: int) -> Link:
        return self.whole if node.full else self.down

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(node.x.copy())

    def start_master(self, node: Node) -> Master:
        return Master(node.x.copy())

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        return self.up.pack(f.gradient(worker.w), t)

    def answers(self, node: Node, master: Master, ups: Sequence[Compressed], t: Round) -> Sequence[Message]:
        before = master.x.copy()
        self.mean(ups).add_to(master.x, -self.gamma(t.k))
        v, link = master.x if node.full else master.x - before, self.downlink(node, t.k)
        return [link.pack(v, t.to(i)) for i in range(self.setting.n)]

    def worker_hears(self, node: Node, worker: Worker, down: Compressed, t: Round) -> None:
        if node.full:
            worker.w[:] = 0.0
        down.add_to(worker.w)

    def point(self, master: Master) -> Vector:
        return master.x

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        node.x[:] = down.dense()
        node.full = bool(t.shared.random() < float(self.p))
