from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.needs import LAST_ITERATE
from mpi_compress.algorithms.vocabulary import Compressed, Downlink, Estimator, Message, Moved, Round, Vector, dense, downlinks


@dataclass
class Node:
    x: Vector  # (d,) w: what everyone believes x is; gradients are taken here
    known: Any  # the estimator's


@dataclass
class Master:
    moved: Moved
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
    needs = (LAST_ITERATE,)

    def start(self, m: Estimator, x0: Vector) -> Node:
        return Node(x0.copy(), m.start_known(x0))

    def start_master(self, m: Estimator, node: Node) -> Master:
        return Master(m.started(node.x), m.start_memory(node.x))

    def master_answers(self, m: Estimator, node: Node, master: Master, mean: Compressed, t: Round) -> Message:
        m.move(master.moved, m.estimate(node, master.memory, mean, t), t.k)
        return m.down.pack(np.asarray(dense(master.moved.point)) - node.x, t)

    def all_hear(self, m: Estimator, node: Node, down: Compressed, t: Round) -> None:
        m.next_round(node, t)
        down.add_to(node.x)
