"""A part of each kind as a user types it: `mypy --strict` has nothing to say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mpi_compress as mc

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Signs(mc.Compressed):
    negative: NDArray[np.bool_]
    scale: float

    @property
    def dim(self) -> int:
        return self.negative.size

    @property
    def elements(self) -> int:
        return self.dim

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        out += np.where(self.negative, -1, 1) * (scale * self.scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.dim

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.scale))


@mc.codecs.register("typed-packed-signs")
@dataclass(frozen=True)
class PackedSigns(mc.Codec):
    def writes(self, kind: type[mc.Compressed]) -> bool:
        return kind is Signs

    def encode(self, compressed: mc.Compressed) -> NDArray[np.uint8]:
        assert isinstance(compressed, Signs)
        return np.append(np.array([compressed.scale]).view(np.uint8), np.packbits(compressed.negative))

    def decode(
        self, data: NDArray[np.uint8], at: int, dim: int, kind: type[mc.Compressed], known: Mapping[str, Any] = {}
    ) -> tuple[mc.Compressed, int]:
        middle, end = at + 8, at + 8 + (dim + 7) // 8
        if end > data.size:
            raise mc.CorruptMessage("short")
        return Signs(np.unpackbits(data[middle:end], count=dim).astype(bool), float(data[at:middle].view("<f8")[0])), end


@mc.compressors.register("typed-scaled-sign")
@dataclass(frozen=True)
class ScaledSign(mc.Compressor):
    makes = Signs
    codec = "typed-packed-signs"

    def compress(self, v: Vector, t: mc.Round) -> Signs:
        return Signs(v < 0, float(np.abs(v).mean()))


@mc.compressors.register("typed-in-turn")
@dataclass(frozen=True)
class InTurn(mc.Compressor):
    k: int = 10

    def start(self, dim: int) -> dict[str, int]:
        return {"next": 0}

    def compress(self, v: Vector, t: mc.Round, state: dict[str, int]) -> mc.Sparse:
        i = (state["next"] + np.arange(self.k)) % v.size
        state["next"] = int(i[-1]) + 1
        return mc.Sparse(v.size, i, v[i])

    def delta(self, dim: int) -> float:
        return self.k / dim


@mc.compressors.register("typed-levels")
@dataclass(frozen=True)
class MySized(mc.Sized):
    size_field = "s"
    s: int = 3

    def compress(self, v: Vector, t: mc.Round) -> mc.Sparse:
        i = np.argsort(-np.abs(v))[: self.s]
        return mc.Sparse(v.size, i, v[i])

    def sizes(self, dim: int) -> Sequence[int]:
        return [1, 2, 3]

    def payload(self, dim: int, fpp: int) -> float:
        return self.s * fpp


@mc.compressors.register("typed-among")
@dataclass(frozen=True)
class Among(mc.AmongWorkers):
    n: int = 1

    def among(self, n: int) -> "Among":
        return Among(n)

    def compress(self, v: Vector, t: mc.Round) -> mc.Dense:
        return mc.Dense(v)


@dataclass
class Node:
    x: Vector
    m: Vector


@mc.algorithms.register("typed-heavy-ball")
@dataclass(frozen=True)
class HeavyBall(mc.Algorithm):
    step: mc.Step = "1/L"
    beta: float = 0.9

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0))

    def worker_sends(self, node: Node, worker: None, f: mc.Objective, t: mc.Round) -> mc.Message:
        if t.rng.random() >= 0.5:
            return mc.SILENT
        return self.up.pack(f.gradient(node.x), t)

    def master_answers(self, node: Node, master: None, ups: Sequence[mc.Compressed], t: mc.Round) -> mc.Message:
        return self.down.pack(self.mean(ups), t)

    def all_hear(self, node: Node, down: mc.Compressed, t: mc.Round) -> None:
        node.m *= self.beta
        down.add_to(node.m)
        node.x -= mc.step_at(self.step, t.k) * node.m


@dataclass
class Memory:
    g: Vector


@mc.algorithms.register("typed-normalised-ef21")
@dataclass(frozen=True)
class NormalisedEF21(mc.Estimator):
    compressor = "top-k"
    needs = (mc.algorithms.needs.WHOLE_GRADIENTS, mc.algorithms.needs.EXACT_DOWN)
    partial_mean = "over all"
    theory = "g0/L"
    step: mc.Step = "theory/16"

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: mc.Objective) -> Memory:
        return Memory(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Memory, f: mc.Objective, t: mc.Round) -> mc.Message:
        c = self.up.pack(f.gradient(node.x) - worker.g, t)
        self.up.unpack(c).add_to(worker.g)
        return c

    def estimate(self, node: Any, memory: Memory, mean: mc.Compressed, t: mc.Round) -> Sequence[Vector] | None:
        mean.add_to(memory.g)
        length = np.linalg.norm(memory.g)
        return [memory.g / length] if length else None


@mc.losses.register("typed")
@dataclass(frozen=True)
class MyLoss(mc.Loss):
    curvature = 1.0

    def value_and_slope(self, y: Vector, m: Vector) -> tuple[Vector, Vector]:
        return 0.5 * (m - y) ** 2, m - y


@mc.penalties.register("typed")
@dataclass(frozen=True)
class MyPenalty(mc.Penalty):
    def value(self, x: Vector) -> float:
        return self.λ * float(np.abs(x).sum())

    def prox(self, x: Vector, γ: float) -> Vector:
        return np.sign(x) * np.maximum(np.abs(x) - γ * self.λ, 0.0)


@mc.models.register("typed")
@dataclass(frozen=True)
class MyModel(mc.Model):
    labels = "number"

    @property
    def blocks(self) -> Mapping[str, tuple[int, ...]]:
        return {"w": (self.outline.features,)}

    def within(self, outline: mc.Outline) -> "MyModel":
        return super().within(outline)

    def loss_and_gradient(self, x: Vector, rows: mc.Rows, draw: np.random.Generator | None) -> tuple[float, Vector]:
        return 0.0, np.zeros(x.size)


@mc.partitions.register("typed")
@dataclass(frozen=True)
class MySplit(mc.Partition):
    def deal(self, labels: Vector, n: int, rng: np.random.Generator) -> Sequence[NDArray[np.int64]]:
        return [np.arange(i, len(labels), n) for i in range(n)]


@mc.metrics.register("typed")
@dataclass(frozen=True)
class MyMetric(mc.Metric):
    def value(self, x: Vector, problem: mc.ProblemView) -> float:
        return float(np.abs(x).max())


@mc.costs.register("typed")
@dataclass(frozen=True)
class MyCost(mc.CostModel):
    def cost(self, payload: Any) -> Any:
        return np.ceil(payload / 8)


@mc.datasets.register("typed")
@dataclass(frozen=True)
class MyData(mc.Generator):
    samples: int = 30
    dim: int = 10

    def make(self) -> tuple[Vector, Vector]:
        rng = self.stream(0)
        return rng.standard_normal((self.samples, self.dim)), np.sign(rng.standard_normal(self.samples))


@dataclass(frozen=True)
class Lines(mc.Format):
    """Numbers, a row a line, the label first."""

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Any:
        raise mc.UserError(f"{path}: there is nothing to read")


@dataclass(frozen=True)
class ToEach(mc.AnswersEach):
    """Gradient descent whose master sends x to each worker by itself."""

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), x0)

    def start_master(self, node: Node) -> Memory:
        return Memory(node.x.copy())

    def worker_sends(self, node: Node, worker: None, f: mc.Objective, t: mc.Round) -> mc.Message:
        return self.up.pack(f.gradient(node.x), t)

    def answers(self, node: Node, master: Memory, ups: Sequence[mc.Compressed], t: mc.Round) -> list[mc.Message]:
        self.mean(ups).add_to(master.g, -0.1)
        return [self.down.pack(master.g, t.to(i)) for i in range(self.setting.n)]

    def point(self, master: Memory) -> Vector:
        return master.g

    def all_hear(self, node: Node, down: mc.Compressed, t: mc.Round) -> None:
        node.x[:] = down.dense()


def scales(setting: mc.Setting, link: mc.PairLink) -> float:
    """What a part may ask of the setting of a run, and of a link of pairs."""
    return setting.numbers["L"] / link.dim


if TYPE_CHECKING:
    unknown = mc.Objectives  # type: ignore[attr-defined]
