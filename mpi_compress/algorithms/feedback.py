"""What algorithms with error feedback share: the memory, compressors that follow the run, and what is logged."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mpi_compress.algorithms.base import Setting
from mpi_compress.algorithms.gd import GD, Node
from mpi_compress.compressed import Compressed, Vector
from mpi_compress.compressors import Compressor
from mpi_compress.compressors.accordion import Accordion
from mpi_compress.compressors.hard_threshold import HardThreshold
from mpi_compress.crew import Crew
from mpi_compress.kernels import feedback as kernels
from mpi_compress.link import Link, Message, attempt
from mpi_compress.memory import LOGS, Memory, trace_columns
from mpi_compress.objective import Objective
from mpi_compress.regimes import Regime
from mpi_compress.steps import falls_at
from mpi_compress.streams import Round

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
    def grow(self, node: Node, worker: Memory, f: Objective, t: Round) -> float:
        """p/γ ← e_i/γ + g_i, in `worker.e`. Returns ‖p/γ‖² if all of it is below `level`, otherwise −1."""

    def worker_sends(self, node: Node, worker: Memory, f: Objective, t: Round) -> Message:
        self.at_step(worker, self.gamma(t.k))
        return self.send(node, worker, t, self.grow(node, worker, f, t))

    def at_step(self, worker: Memory, γ: float) -> None:
        """Go on with the step γ."""
        if γ != worker.step:
            worker.rescale(γ)

    def add(self, worker: Memory, g: Vector) -> float:
        """`grow` by g − h_i."""
        return kernels.grow(worker.e, g, worker.h, self.level)

    def send(self, node: Node, worker: Memory, t: Round, squares: float) -> Message:
        """C(p/γ), where `worker.e` holds p/γ; e ← p − γ C(p/γ). `squares` as from `grow`."""
        if squares >= 0:
            return self.silent(worker, squares, t.k)
        link = self.uplink_of(node, t.k)
        message = link.pack(worker.e, t)
        worker.keep(link.unpack(message))
        return self.after_sending(worker, message, t.k)

    def silent(self, worker: Memory, squares: float, k: int) -> Message:
        """The same where no coordinate reaches the threshold."""
        worker.note(squares, squares, 0)
        return self.after_sending(worker, self.silence, k)

    def after_sending(self, worker: Memory, message: Message, k: int) -> Message:
        """The message, after what becomes of a worker that has sent it."""
        if self.forgets:
            self.forget(worker, k)
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
        squares = self.grow_all(node, crew, k)
        speaking = [row for row, s in enumerate(squares) if s < 0]
        packed = self.pack_all(link, crew, speaking) if len(speaking) > _FEW else None
        sent = []
        for (i, worker), s in zip(crew.workers.items(), squares, strict=True):
            if s >= 0:
                sent.append(self.silent(worker, s, k))
            elif packed is None:
                sent.append(attempt(self.send, node, worker, crew.round(i, k), s))
            else:
                message, (corrected, left) = next(packed)
                worker.note(corrected, left, link.unpack(message).elements)
                sent.append(self.after_sending(worker, message, k))
        return sent

    def pack_all(self, link: Link, crew: Crew, speaking: list[int]) -> Iterator[tuple[Message, list[float]]] | None:
        """`send` of some workers by few calls: each one's message, ‖p/γ‖² and ‖e/γ‖²; None: one of them is refused."""
        rows, p = np.array(speaking), crew.side_by_side("e")
        packed = link.pack_all(p, rows)
        if packed is None:
            return None
        messages, seen = packed
        norms = np.empty((rows.size, 2))
        kernels.take_out_of_rows(seen.indices, seen.values, seen.ends, rows, p, norms)
        return zip(messages, norms.tolist(), strict=True)

    def grow_all(self, node: Node, crew: Crew, k: int) -> list[float]:
        """`at_step` and `grow` of all workers: what it returns."""
        γ, workers, fs = self.gamma(k), crew.workers, crew.objectives
        for worker in workers.values():
            if γ != worker.step:
                self.at_step(worker, γ)
        if not (self.adds_gradients and crew.looks_ahead):
            crew.look_ahead(self.asks_for(node))
            return [self.grow(node, worker, fs[i], crew.round(i, k)) for i, worker in workers.items()]
        squares = np.empty(len(workers))
        kernels.grow_all(crew.side_by_side("e"), crew.gradients(node.x), crew.side_by_side("h"), self.level, squares)
        return squares.tolist()

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

    @cached_property
    def forgets(self) -> bool:
        """Whether errors are ever dropped."""
        return not self.feedback or self.reset is not None

    def forget(self, worker: Memory, k: int) -> None:
        """Drop the error, where a switch says so."""
        if not self.feedback or (k + 1) % self.reset == 0:  # type: ignore[operator]
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
        return worker.logs()

    def trace_logs(self, means: Mapping[str, float], node: Node) -> Mapping[str, float]:
        return {**trace_columns(means), "silent": node.silent}
