from collections.abc import Sequence
from typing import Any, ClassVar

from mpi_compress.algorithms.needs import Need
from mpi_compress.algorithms.vocabulary import Compressed, Downlink, Estimator, Message, Node, Round, Vector, dense, downlinks


@downlinks.register("mean")
class Mean(Downlink):
    """The mean goes down, and every node remembers it and moves x alike.

    master answers   C(the mean of what was sent)
    everyone         moves x along the direction that it means
    """

    lifts: ClassVar[Sequence[Need]] = ()
    everyone_remembers = True

    def start(self, m: Estimator, x0: Vector) -> Node:
        return Node(m.started(x0), m.start_memory(x0), m.start_known(x0))

    def master_answers(self, m: Estimator, node: Node, master: Any, mean: Compressed, t: Round) -> Message:
        return m.downlink(node, t.k).pack(mean, t)

    def all_hear(self, m: Estimator, node: Node, down: Compressed, t: Round) -> None:
        g = m.estimate(node, node.memory, down, t)
        m.next_round(node, t)
        m.move(node.moved, g, t.k)

    def iterate(self, m: Estimator, node: Node) -> Vector:
        return dense(node.moved.x) if node.moved.mean is None else node.moved.mean.x
