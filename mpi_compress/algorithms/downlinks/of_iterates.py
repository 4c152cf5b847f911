"""Downlinks of which the change of x is compressed: the master alone moves x, and workers follow it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    LAST_ITERATE,
    STATELESS_DOWN,
    UNBIASED_DOWN,
    Batch,
    Compressed,
    Downlink,
    Estimator,
    Expression,
    Link,
    Message,
    Round,
    Rounds,
    ServerState,
    Shards,
    Vector,
    dense,
    downlinks,
)


@dataclass
class Node:
    x: Vector  # (d,) ef21-p: w, where gradients are taken; marina-p: x, which the master alone uses
    known: Any  # the estimator's

    @property
    def iterate(self) -> Vector:
        """The point (d,) to evaluate."""
        return self.x


@dataclass
class Master:
    state: ServerState
    memory: Any  # the estimator's, of the means so far


@downlinks.register("ef21-p")
class EF21P(Downlink):
    """EF21-P: Gruntkowska, Tyurin, Richtárik (ICML 2023), Algorithm 1: x is the master's. w starts at x_0.

    worker sends     what it sends for the point w
    master answers   moves x along the direction that the mean means;  q ← C(x − w)
    everyone         w ← w + q

    C, the downlink's, is contractive. A server that takes gradients elsewhere than at x sends that point for x. Results are of w,
    which all nodes know.
    """

    paper = "EF21-P, Algorithm 1"
    needs = [LAST_ITERATE]

    def start(self, m: Estimator, x0: Vector) -> Node:
        return Node(x0.copy(), m.start_known(x0))

    def start_master(self, m: Estimator, node: Node) -> Master:
        return Master(m.server.begun(node.x), m.start_memory(node.x))

    def master_answers(self, m: Estimator, node: Node, master: Master, mean: Compressed, t: Round) -> Message:
        m.move(master.state, m.estimate(node, master.memory, mean, t), t.k)
        return m.down.pack(np.asarray(dense(master.state.point)) - node.x, t)

    def all_hear(self, m: Estimator, node: Node, down: Compressed, t: Round) -> None:
        m.next_round(node, t)
        down.add_to(node.x)


@dataclass
class NodeWithCoin(Node):
    full: bool = True  # True: this round's messages down are whole; the coin is tossed alike by all, and costs no bits

    def of_worker(self, i: int) -> "NodeWithCoin":
        """What worker i of those hosted here knows, of what all of them know."""
        before = getattr(self.known, "before", None)
        return replace(self, x=self.x[i], known=self.known if before is None else replace(self.known, before=before[i]))


@dataclass
class Worker:
    x: Vector  # (m, d) w_i: where they take gradients
    before: Vector | None  # (m, d) w_i of the round before, where the estimator takes gradients there too
    own: Any  # the estimator's


@downlinks.register("marina-p")
class MARINAP(EF21P):
    """MARINA-P: Gruntkowska, Tyurin, Richtárik (2024): each worker gets a message of its own down. w_i = x0.

    worker sends     what it sends for the point w_i
    master answers   moves x along the direction that the mean means, to x⁺;  to worker i x⁺ in a full round, else Q_i(x⁺ − x)
    worker hears     w_i ← x⁺ in a full round, else w_i + what came
    everyone         the next round is full with probability p

    Q_i is unbiased with ω, and perm-k by default: its messages of a round do not overlap, and the mean of the w_i moves as x does.
    p = 1/(1 + ω) by default, which is 1/n for perm-k.
    """

    paper = "MARINA-P"
    compressor = "perm-k"
    needs = [STATELESS_DOWN, UNBIASED_DOWN, LAST_ITERATE]
    p: Expression = "1/(1 + omega_down)"  # p, the probability of a full round, whose messages down are whole

    def check(self) -> None:
        if not 0 < self.p <= 1:
            raise ValueError(f"p = {self.p} must be more than 0, and at most 1")

    def verbs(self, m: Estimator) -> Mapping[str, Any]:
        """Workers keep w_i beside what is the estimator's own, and hear messages of their own."""
        own = {verb: partial(getattr(self, verb), m) for verb in ("start_workers", "workers_send", "answers", "downlink")}
        of_worker, vector = m.log.of_worker, m.log.vector
        return {
            **own,
            "workers_hear": self.workers_hear,
            "point": self.point,
            "log": replace(
                m.log, of_worker=lambda worker: of_worker(worker.own), vector=vector and (lambda worker: vector(worker.own))
            ),
        }

    def downlink(self, m: Estimator, node: NodeWithCoin, k: int) -> Link:
        return m.down.whole if node.full else m.down

    def start(self, m: Estimator, x0: Vector) -> NodeWithCoin:
        return NodeWithCoin(x0.copy(), m.start_known(x0))

    def start_workers(self, m: Estimator, node: NodeWithCoin, fs: Shards) -> Worker:
        looks_back = getattr(node.known, "before", None) is not None
        own = type(m).start_workers(m, node, fs)
        return Worker(fs.zeros() + node.x, fs.zeros() + node.x if looks_back else None, own)

    def workers_send(self, m: Estimator, node: NodeWithCoin, w: Worker, fs: Shards, t: Rounds) -> Batch:
        known = node.known if w.before is None else replace(node.known, before=w.before)
        return type(m).workers_send(m, NodeWithCoin(w.x, known, node.full), w.own, fs, t)

    def answers(self, m: Estimator, node: NodeWithCoin, master: Master, ups: Sequence[Compressed], t: Round) -> Sequence[Message]:
        before = dense(master.state.point).copy()
        m.move(master.state, m.estimate(node, master.memory, m.answer(ups), t), t.k)
        x, link = dense(master.state.point), self.downlink(m, node, t.k)
        v = x if node.full else x - before
        return [link.pack(v, t.to(i)) for i in range(m.setting.n)]

    def workers_hear(self, node: NodeWithCoin, w: Worker, down: Compressed, t: Rounds) -> None:
        if w.before is not None:
            w.before[:] = w.x
        if node.full:
            w.x[:] = 0.0
        down.add_to(w.x)

    def point(self, master: Master) -> Vector:
        return dense(master.state.point)

    def all_hear(self, m: Estimator, node: Any, down: Compressed, t: Round) -> None:
        m.next_round(node, t)
        node.x[:] = down.dense()
        node.full = bool(t.shared.random() < self.p)
