from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.estimators.ef import ErrorFeedback
from mpi_compress.algorithms.vocabulary import (
    ERRORS,
    NO_GRADIENT,
    OPTIMUM,
    WHOLE_GRADIENTS,
    ErrorMemory,
    Rounds,
    Shards,
    Vector,
    algorithms,
    fact,
)


@dataclass
class ShiftedWorker(ErrorMemory):
    h: Vector | None = None  # (d,) ∇f_i(x*)


@algorithms.register("ef-gdstar")
class EFGDStar(ErrorFeedback):
    """Error feedback with gradients shifted by those at x*: EC-GDstar of Gorbunov, Kovalev, Makarenko, Richtárik (NeurIPS 2020).

    It is here as HT §C.3.2 runs it:

    worker sends     p ← e_i + γ (∇f_i(x) − ∇f_i(x*));  Δ_i ← γ C(p/γ);  e_i ← p − Δ_i
    master answers   Δ̄ ← (1/n) Σ Δ_i
    everyone         x ← x − Δ̄

    Σ_i ∇f_i(x*) = 0, so nothing is lost; what is compressed goes to 0 with x → x*, and so does the error of a contractive C. It
    shows what error feedback can reach: x* is known beforehand. Gradients are full.
    """

    paper = "HT §C.3.2"
    scaled = True
    log = ERRORS
    needs = [WHOLE_GRADIENTS, OPTIMUM, NO_GRADIENT]
    batch: int | None = None  # must be left out: gradients are full

    def check(self) -> None:
        super().check()
        if self.batch is not None:
            raise ValueError(f"batch = {self.batch} was given, and ef-gdstar takes full gradients: leave it out")

    @fact
    def is_in_units_of_x(self) -> bool:
        return self.server.name == "step"

    def start_workers(self, node: Any, fs: Shards) -> ShiftedWorker:
        h = fs.zeros()
        for i, f in enumerate(fs):
            h[i] = f.value_and_gradient(self.setting.x_star)[1]
        return ShiftedWorker(**vars(super().start_workers(node, fs)), h=h)

    def grow(self, w: Any, x: Any, fs: Shards, t: Rounds) -> None:
        w.e += fs.gradients(x) - w.h
