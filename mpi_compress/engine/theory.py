"""CAT's theory beside practice: what each budget T gains at the iterates of a run, and the bounds of table 1 that follow from it.

`[log] theory = true` asks for it. It is evaluated at logged rounds, off the clock and the counts.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.tuning.search import Improvement
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.batch import LENGTH_BYTES
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.kinds import Sparse, Vector, index_bits
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.second_order import sampling_noise

_ALL_UP_TO = 10  # budgets T that are each looked at
_PER_DECADE = 12


def budgets(dim: int, also: Iterable[int] = ()) -> NDArray[np.int64]:
    """The budgets T that are looked at: few, even in their logarithms, powers of ten and d among them."""
    tens = 10 ** np.arange(math.floor(math.log10(dim)) + 1)
    even = np.geomspace(1, dim, math.ceil(_PER_DECADE * math.log10(dim)) + 1).round().astype(np.int64)
    return np.unique(np.r_[np.arange(1, min(_ALL_UP_TO, dim) + 1), tens, even, dim, np.array(list(also), dtype=np.int64)])


def sparsification(codec: Codec, cost: CostModel, dim: int, T: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """P(T) in bits (CAT eq. 5) and C(T) of T sparse coordinates; C is NaN where T does not decide what is sent."""
    payload = T * (index_bits(dim) * (codec.indices == "counted") + codec.float_format.bits)
    if not cost.on_wire:
        return payload.astype(float), cost.cost(payload)
    planned = codec.planned_bytes(Sparse, T, dim)
    return payload.astype(float), (
        np.full(T.size, np.nan) if planned is None else cost.cost((8 * (LENGTH_BYTES + planned)).astype(float))
    )


@dataclass(frozen=True)
class Theory:
    """Evaluates, at a point x of a run,

    alpha, beta   α(T), β(T) of ∇f(x)                                        (CAT Lemmas 1, 3)
    omega         the smallest ω(T) of the workers' ∇f_i(x)                  (CAT Lemma 4)
    improvement   what the algorithm's next round gains by its lemma: the smallest over workers
    variance      σ² = (1/n) Σ E‖g_i − ∇f(x)‖², g_i what worker i compresses
    """

    T: NDArray[np.int64]  # (G,)
    payload: Vector  # (G,) P(T) of sparsification
    cost: Vector  # (G,) its C(T)

    @classmethod
    def of(cls, algorithm: Method) -> "Theory":
        """The theory of a run of this algorithm, bound to its setting; a fixed T of its own is among the budgets."""
        setting, own = algorithm.setting, algorithm.lemma.T
        T = budgets(setting.dim, [] if own is None else [own])
        return cls(T, *sparsification(setting.up.codec, setting.cost, setting.dim, T))

    def attributes(self, algorithm: Method) -> Mapping[str, Any]:
        """Attributes of the result that hold for the whole run."""
        return {"curve": algorithm.lemma.curve, "theory_T": self.T, "theory_payload": self.payload, "theory_cost": self.cost}

    def of_worker(self, algorithm: Method, f: Objective, x: Vector, g: Vector) -> tuple[Vector, float]:
        """What worker i with g = ∇f_i(x) reports: −ω(T) for all T and −improvement; and E‖g_i‖², rows drawn with replacement."""
        omega = Improvement.OMEGA.curve(g)[self.T - 1]
        noise = 0.0 if algorithm.batch is None else sampling_noise(f, x) / algorithm.batch
        return -np.append(omega, algorithm.lemma.improvement(g)), squared_norm(g) + noise

    def row(self, gradient: Vector, peaks: Vector, moment: float, mean: float) -> dict[str, Any]:
        """The row of /theory: `peaks` the largest of the workers' reports, `moment` the mean of E‖g_i‖², `mean` ‖(1/n)ΣE g_i‖²."""
        return {
            "alpha": Improvement.ALPHA.curve(gradient)[self.T - 1],
            "beta": Improvement.BETA.curve(gradient)[self.T - 1],
            "omega": -peaks[:-1],
            "improvement": -peaks[-1],
            "variance": max(moment - mean, 0.0),
        }
