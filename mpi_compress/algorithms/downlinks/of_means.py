"""Downlinks of which the mean, or the direction that it means, is compressed: everyone moves x alike."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    Compressed,
    Downlink,
    Estimator,
    Message,
    Node,
    Round,
    Vector,
    add,
    downlinks,
    packed,
    residual_of,
)


@downlinks.register("mean")
class Mean(Downlink):
    """The mean goes down, and every node remembers it and moves x alike.

    master answers   C(the mean of what was sent)
    everyone         moves x along the direction that it means

    Where nodes add up the means, those may be rounded to fewer than 64 bits: the master keeps a `Residual` (`error_memory`).
    """

    everyone_remembers = True

    def start(self, m: Estimator, x0: Vector) -> Node:
        return Node(m.server.begun(x0), m.start_memory(x0), m.start_known(x0))

    def start_master(self, m: Estimator, node: Node) -> Any:
        return residual_of(m)

    def master_answers(self, m: Estimator, node: Node, master: Any, mean: Compressed, t: Round) -> Message:
        return packed(master, m.downlink(node, t.k), mean, t)

    def all_hear(self, m: Estimator, node: Node, down: Compressed, t: Round) -> None:
        g = m.estimate(node, node.memory, down, t)
        m.next_round(node, t)
        m.move(node.state, g, t.k)


@dataclass
class Master:
    e: Vector  # (d,) E, what the master has not sent yet
    memory: Any  # the estimator's, of the means so far


@downlinks.register("double-squeeze")
class DoubleSqueeze(Mean):
    """DoubleSqueeze: Tang, Lian, Yu, Zhang, Liu (ICML 2019), Algorithm 1: error memory at the master. E starts at 0.

    master answers   V ← g + E, g the direction that the mean means;  q ← C(V);  E ← V − q
    everyone         moves x along q
    """

    paper = "DoubleSqueeze, Algorithm 1"
    everyone_remembers = False

    def start(self, m: Estimator, x0: Vector) -> Node:
        return Node(m.server.begun(x0), None, m.start_known(x0))

    def start_master(self, m: Estimator, node: Node) -> Master:
        return Master(np.zeros(m.setting.dim), m.start_memory(m.iterate(node)))

    def master_answers(self, m: Estimator, node: Node, master: Master, mean: Compressed, t: Round) -> Message:
        for term in m.estimate(node, master.memory, mean, t) or ():
            add(master.e, term)
        q = m.down.pack(master.e, t)
        m.down.unpack(q).add_to(master.e, -1.0)
        return q

    def all_hear(self, m: Estimator, node: Node, down: Compressed, t: Round) -> None:
        m.next_round(node, t)
        m.move(node.state, (down,), t.k)
