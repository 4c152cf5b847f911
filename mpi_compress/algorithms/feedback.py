"""What algorithms with error feedback share: the memory, compressors that follow the run, and what is logged."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.base import Setting
from mpi_compress.algorithms.error_memory import LOGS, Memory, trace_columns
from mpi_compress.algorithms.gd import GD, Node
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.steps import falls_at
from mpi_compress.core.streams import Round
from mpi_compress.engine.fast.crew import Crew
from mpi_compress.kernels import feedback as kernels
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.compressors.accordion import Accordion
from mpi_compress.messages.compressors.hard_threshold import HardThreshold
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message, attempt
from mpi_compress.problem.objective import Objective

_FEW = 4  # messages, which are sooner packed one by one


@dataclass(frozen=True)
class ErrorFeedback(GD):
    """The lines of HT's Algorithm 1 that do not depend on what g_i is."""

    compressor = "top-k"
    logs = LOGS
    feedback: bool = True  # false: e is dropped after every round
    reset: int | None = None  # e is dropped after every so many rounds

    def within(self, setting: Setting) -> "ErrorFeedback":
        bound: ErrorFeedback = super().within(setting)  # type: ignore[assignment]
        if isinstance(setting.up.compressor, HardThreshold) and isinstance(bound.step, float):
            settled = setting.up.compressor.at_step(bound.step, setting.dim)
            object.__setattr__(bound, "setting", replace(setting, up=replace(setting.up, compressor=settled)))
        return bound

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return way == "up" and isinstance(compressor, HardThreshold) and compressor.accuracy is not None

    def check(self) -> None:
        super().check()
        if self.reset is not None and self.reset < 1:
            raise ValueError(f"reset = {self.reset} must be at least 1 round; leave it out to keep the errors")

    def uplink_of(self, node: Node, k: int) -> Link:
        """The uplink of round k: the threshold of an accuracy settled by γ_k, ACCORDION's k by its regime."""
        if not self.follows:
            return self.up
        compressor = self.up.compressor
        if isinstance(compressor, HardThreshold):
            return replace(self.up, compressor=compressor.at_step(self.gamma(k), self.setting.dim))
        assert node.regime is not None
        return self.up.at(k=node.regime.budget(compressor))  # type: ignore[arg-type]

    def start(self, x0: Vector) -> Node:
        node = super().start(x0)
        if isinstance(self.up.compressor, Accordion):
            node.regime = Regime(np.zeros_like(x0))
        return node

    def start_worker(self, node: Node, f: Objective) -> Memory:
        return Memory(np.zeros(f.dim))

    @abstractmethod
    def grow(self, node: Node, worker: Memory, f: Objective, t: Round) -> bool:
        """p/γ ← e_i/γ + g_i, in `worker.e`. Returns whether all of it is below `level`: then nothing is sent, and e ← p."""

    def worker_sends(self, node: Node, worker: Memory, f: Objective, t: Round) -> Message:
        self.at_step(worker, self.gamma(t.k))
        message = self.silence if self.grow(node, worker, f, t) else self.send(node, worker, t)
        if self.clears:
            self.clear(worker, message, t.k)
        return message

    def at_step(self, worker: Memory, γ: float) -> None:
        """Go on with the step γ."""
        if γ != worker.step:
            worker.rescale(γ)

    def add(self, worker: Memory, g: Vector) -> bool:
        """`grow` by g − h_i."""
        return kernels.grow(worker.e, g, worker.h, self.level, worker.step, worker.sizes)

    def send(self, node: Node, worker: Memory, t: Round) -> Message:
        """C(p/γ), where `worker.e` holds p/γ; e ← p − γ C(p/γ)."""
        link = self.uplink_of(node, t.k)
        message = link.pack(worker.e, t)
        worker.keep(link.unpack(message))
        return message

    def touches_only(self, f: Objective) -> bool:
        """Whether `worker_sends` looks only at what the gradient touches: then it is not `grow` and `send`."""
        return False

    @property
    def adds_gradients(self) -> bool:
        """Whether `grow` is `add` of the full gradient."""
        return self.batch is None

    def crew_sends(self, node: Node, crew: Crew, k: int) -> list[Message]:
        link = self.uplink_of(node, k)
        if not (crew.acts_together and link.in_bulk) or self.touches_only(crew.any_objective):
            return super().crew_sends(node, crew, k)
        speaking = [row for row, silent in enumerate(self.grow_all(node, crew, k)) if not silent]
        sent, members = [self.silence] * len(crew.workers), list(crew.workers.items())
        packed = self.send_all(link, crew, self.gamma(k), np.array(speaking)) if len(speaking) > _FEW else None
        for place, row in enumerate(speaking):
            i, worker = members[row]
            sent[row] = attempt(self.send, node, worker, crew.round(i, k)) if packed is None else packed[place]
        if self.clears:
            for (_, worker), message in zip(members, sent, strict=True):
                if message.refusal is None:
                    self.clear(worker, message, k)
        return sent

    def grow_all(self, node: Node, crew: Crew, k: int) -> list[bool]:
        """`at_step` and `grow` of all workers: what it returns."""
        γ, workers, fs = self.gamma(k), crew.workers, crew.objectives
        for worker in workers.values():
            if γ != worker.step:
                self.at_step(worker, γ)
        if not (self.adds_gradients and crew.looks_ahead):
            crew.look_ahead(self.asks_for(node))
            return [self.grow(node, worker, fs[i], crew.round(i, k)) for i, worker in workers.items()]
        g, silent = crew.gradients(node.x), np.empty(len(workers), dtype=np.bool_)
        e, h, sizes = crew.side_by_side("e"), crew.side_by_side("h"), crew.side_by_side("sizes")
        kernels.grow_all(e, g, h, self.level, γ, sizes, silent)
        return silent.tolist()

    def send_all(self, link: Link, crew: Crew, γ: float, rows: NDArray[np.int64]) -> list[Message] | None:
        """`send` of some workers by few calls; None: one of them is refused, and none has sent."""
        e, sizes = crew.side_by_side("e"), crew.side_by_side("sizes")
        packed = link.pack_all(e, rows)
        if packed is None:
            return None
        messages, seen = packed
        kernels.take_out_of_rows(seen.indices, seen.values, seen.ends, rows, e, γ, sizes)
        return messages

    @cached_property
    def level(self) -> float:
        """λ of a hard threshold that stays the same: most of its messages hold nothing, and are not computed. 0: there is none."""
        compressor = self.up.compressor
        return compressor.level if isinstance(compressor, HardThreshold) and compressor.accuracy is None else 0.0

    @cached_property
    def silence(self) -> Message:
        """The message of a worker that has nothing to send."""
        return self.up.nothing

    @cached_property
    def follows(self) -> bool:
        """Whether the uplink differs from round to round."""
        return isinstance(self.up.compressor, Accordion) or self.settles(self.up.compressor)

    @property
    def forgets(self) -> bool:
        """Whether errors are ever dropped."""
        return not self.feedback or self.reset is not None

    @cached_property
    def clears(self) -> bool:
        """Whether `clear` ever does anything."""
        return self.forgets

    def clear(self, worker: Memory, message: Message, k: int) -> None:
        """What a worker drops that has sent its message of round k: the error, where a switch says so."""
        if not self.feedback or (self.reset is not None and (k + 1) % self.reset == 0):
            worker.drop()

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        super().all_hear(node, down, t)
        node.silent += down.elements == 0
        if node.regime is not None:
            node.regime.hear(self.up.compressor, down, t.k, self.epoch, falls_at(self.step, t.k + 1))  # type: ignore[arg-type]

    @property
    def epoch(self) -> int:
        """Rounds in which a worker sees its shard once."""
        rows = math.ceil(self.setting.numbers["N"] / self.setting.n)
        return 1 if self.batch is None else math.ceil(rows / self.batch)

    def worker_logs(self, worker: Any) -> Sequence[float]:
        return worker.sizes.tolist()

    def trace_logs(self, means: Mapping[str, float], node: Node) -> Mapping[str, float]:
        return {**trace_columns(means), "silent": node.silent}
