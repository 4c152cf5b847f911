"""Error feedback of all workers of a process by few kernel calls.

On short vectors a call takes a good part of the time. All errors grow, and are looked at for something to send, by one call; so is
what is sent. With sparse minibatches and a constant threshold only coordinates of the minibatch can come to be sent.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.error_memory import ErrorMemory, level_of
from mpi_compress.algorithms.estimators.ef import EF, ErrorFeedback
from mpi_compress.algorithms.estimators.ef_gdstar import EFGDStar
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.algorithms.parts import dense
from mpi_compress.kernels import feedback as kernels
from mpi_compress.kernels.threshold import reaching_among
from mpi_compress.messages.kinds import Sparse, Vector
from mpi_compress.messages.link import Link, Message, attempt
from mpi_compress.problem.objective import pays
from mpi_compress.problem.scaled_vector import ScaledVector

_FEW = 4  # messages, which are sooner packed one by one
_NONE = np.empty(0)


class Way(HostedWorkers, ABC):
    """Runs hosted workers as they would run one by one, to the last bit."""

    plays: ClassVar[tuple[type[Method], ...]]  # methods whose lines it runs, but not what derives from them

    @classmethod
    @abstractmethod
    def holds(cls, hosted: HostedWorkers) -> bool:
        """True if this path serves these workers."""


@dataclass
class ErrorsTogether(Way):
    """Workers whose error is below a hard threshold send the message of no coordinates, and are not compressed; of the others,
    those of one process are compressed, encoded, decoded and taken out of their errors together."""

    plays = EF, EFGDStar
    algorithm: ErrorFeedback
    workers: Mapping[int, ErrorMemory]

    @classmethod
    def holds(cls, hosted: HostedWorkers) -> bool:
        link = hosted.algorithm.up
        followed = any(worker.followed is not None for worker in hosted.workers.values())
        return not followed and (link.in_bulk or level_of(link.compressor) > 0)

    def messages(self, node: Any, k: int) -> list[Message]:
        link = self.algorithm.uplink(node, k)
        speaking = [row for row, silent in enumerate(self._grow(node, k)) if not silent]
        sent, members = [self.algorithm.up.nothing] * len(self.workers), list(self.workers.items())
        together = link.in_bulk and len(speaking) > _FEW and pays(len(self.workers), self.algorithm.setting.dim)
        packed = self._send_together(link, self.algorithm.gamma(k), np.array(speaking)) if together else None
        for place, row in enumerate(speaking):
            i, worker = members[row]
            sent[row] = attempt(self._send, link, worker, i, k) if packed is None else packed[place]
        self._drop(sent, k)
        return sent

    def _grow(self, node: Any, k: int) -> list[bool]:
        """p/γ ← e_i/γ + g_i of all workers. Returns which of them have nothing to send."""
        γ, fs, method = self.algorithm.gamma(k), self.objectives, self.algorithm
        for worker in self.workers.values():
            if γ != worker.step:
                worker.at_step(γ, method.is_in_units_of_x)
        if method.batch is not None or method.by_update or not pays(len(fs), fs.dim):
            return [self._grow_one(node, worker, i, k) for i, worker in self.workers.items()]
        g, silent = fs.gradients(dense(node.x)), np.empty(len(fs), dtype=np.bool_)
        kernels.grow_all(self._e, g, self._h, self._threshold, γ, self._sizes, silent)
        return silent.tolist()

    def _grow_one(self, node: Any, worker: Any, i: int, k: int) -> bool:
        f, method = self.fs[i], self.algorithm
        rows = method.rows(f, self.round(i, k))
        if self.algorithm.by_update:
            method.grow(worker, node.x, f, self.round(i, k))
        elif rows is None:
            h = getattr(worker, "h", _NONE)
            return kernels.grow(worker.e, f.gradient(node.x), h, self._threshold, worker.step, worker.sizes)
        else:
            worker.add_gradient(f, node.x, rows)
        return kernels.is_silent(worker.e, self._threshold, worker.step, worker.sizes)

    def _send(self, link: Link, worker: ErrorMemory, i: int, k: int) -> Message:
        message = link.pack(worker.e, self.round(i, k))
        worker.take_out(link.unpack(message))
        return message

    def _send_together(self, link: Link, γ: float, rows: NDArray[np.int64]) -> list[Message] | None:
        """`_send` of some workers by few calls; None: one of them is refused, and none has sent."""
        packed = link.pack_all(self._e, rows)
        if packed is None:
            return None
        messages, seen = packed
        kernels.take_out_of_rows(seen.indices, seen.values, seen.ends, rows, self._e, γ, self._sizes)
        return messages

    def _drop(self, sent: list[Message], k: int) -> None:
        """Drop the errors, and mask the momenta, of the workers that have sent."""
        method, drops = self.algorithm, self.algorithm.drops_errors(k)
        masks = getattr(method, "masking", False)
        if not (drops or masks):
            return
        for worker, message in zip(self.workers.values(), sent, strict=True):
            if message.refusal is None:
                if drops:
                    worker.drop()
                if masks:
                    method.mask(worker, method.up.unpack(message))  # type: ignore[attr-defined]

    @cached_property
    def _threshold(self) -> float:
        return level_of(self.algorithm.up.compressor)

    @cached_property
    def _e(self) -> NDArray[np.float64]:
        return side_by_side(self.workers, "e")

    @cached_property
    def _sizes(self) -> NDArray[np.float64]:
        return side_by_side(self.workers, "sizes")

    @cached_property
    def _h(self) -> NDArray[np.float64]:
        shifted = isinstance(self.algorithm, EFGDStar)
        return side_by_side(self.workers, "h") if shifted else np.empty((len(self.workers), 0))


@dataclass
class OnlyTouched(Way):
    """|e_j/γ| < λ for all coordinates that a round does not touch, so a worker looks at those alone that its minibatch holds."""

    plays = (EF,)
    algorithm: EF
    workers: Mapping[int, ErrorMemory]

    @classmethod
    def holds(cls, hosted: HostedWorkers) -> bool:
        return all(worker.followed is not None for worker in hosted.workers.values())

    def messages(self, node: Any, k: int) -> list[Message]:
        shared = self.algorithm.up, self.algorithm.gamma(k), node.x
        return [attempt(self._send, i, worker, k, *shared) for i, worker in self.workers.items()]

    def _send(self, i: int, worker: ErrorMemory, k: int, link: Link, γ: float, x: Vector | ScaledVector) -> Message:
        f = self.fs[i]
        rows = self.algorithm.rows(f, self.round(i, k))
        assert rows is not None
        assert worker.followed is not None
        worker.step = γ
        touched, worker.followed.growth = f.add_sparse_gradient(worker.e, x, rows)
        message = link.encode(Sparse(link.dim, *reaching_among(worker.e, touched, level_of(link.compressor))))
        worker.take_out(link.unpack(message))
        return message


def side_by_side(memories: Mapping[int, Any], name: str) -> NDArray[np.float64]:
    """Moves the arrays `name` of workers' memories into the rows of one array (m, …), and returns it. A memory and its row are the
    same bytes as long as the memory keeps this array."""
    rows = np.array([getattr(memory, name) for memory in memories.values()])
    for memory, row in zip(memories.values(), rows, strict=True):
        setattr(memory, name, row)
    return rows
