from collections.abc import Sequence
from typing import Any, ClassVar

from mpi_compress.algorithms.needs import Need
from mpi_compress.algorithms.rest import packed, rest_of
from mpi_compress.algorithms.vocabulary import Compressed, Downlink, Estimator, Message, Node, Round, Vector, dense, downlinks


@downlinks.register("mean")
class Mean(Downlink):
    """The mean goes down, and every node remembers it and moves x alike.

    master answers   C(the mean of what was sent)
    everyone         moves x along the direction that it means

    Where nodes add up the means, those may be rounded to fewer than 64 bits: the master keeps what rounding left (`rest.Rest`).
    """

    lifts: ClassVar[Sequence[Need]] = ()
    everyone_remembers = True
    keeps_rest = True

    def start(self, m: Estimator, x0: Vector) -> Node:
        return Node(m.started(x0), m.start_memory(x0), m.start_known(x0))

    def start_master(self, m: Estimator, node: Node) -> Any:
        return rest_of(m)

    def master_answers(self, m: Estimator, node: Node, master: Any, mean: Compressed, t: Round) -> Message:
        if master is not None and m.renews(node):
            master.e[:] = 0.0
        return packed(master, m.downlink(node, t.k), mean, t, m.weight(node))

    def all_hear(self, m: Estimator, node: Node, down: Compressed, t: Round) -> None:
        g = m.estimate(node, node.memory, down, t)
        m.next_round(node, t)
        m.move(node.moved, g, t.k)

    def iterate(self, m: Estimator, node: Node) -> Vector:
        return dense(node.moved.x) if node.moved.mean is None else node.moved.mean.x
