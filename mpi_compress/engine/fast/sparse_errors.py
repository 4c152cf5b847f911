"""Error feedback with sparse minibatches and a constant threshold: only coordinates of the minibatch can come to be sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.error_memory import ErrorMemory
from mpi_compress.algorithms.estimators.ef import EF
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.engine.fast.ways import Way, register
from mpi_compress.kernels.threshold import reaching_among
from mpi_compress.messages.kinds import Sparse, Vector
from mpi_compress.messages.link import Link, Message, attempt
from mpi_compress.problem.scaled_vector import ScaledVector


@register(EF)
@dataclass
class OnlyTouched(Way):
    """|e_j/γ| < λ for all coordinates that a round does not touch, so a worker looks at those alone that its minibatch holds."""

    algorithm: EF
    workers: Mapping[int, ErrorMemory]

    @classmethod
    def holds(cls, hosted: HostedWorkers) -> bool:
        return all(worker.followed is not None for worker in hosted.workers.values())

    def messages(self, node: Any, k: int) -> list[Message]:
        shared = self.algorithm.up, self.algorithm.gamma(k), node.x
        return [attempt(self._send, i, worker, k, *shared) for i, worker in self.workers.items()]

    def _send(self, i: int, worker: ErrorMemory, k: int, link: Link, γ: float, x: Vector | ScaledVector) -> Message:
        f = self.objectives[i]
        rows = self.algorithm.rows(f, self.round(i, k))
        assert rows is not None
        assert worker.followed is not None
        worker.step = γ
        touched, worker.followed.growth = f.add_sparse_gradient(worker.e, x, rows)
        message = link.encode(Sparse(link.dim, *reaching_among(worker.e, touched, link.compressor.least_sent)))
        worker.take_out(link.unpack(message))
        return message
