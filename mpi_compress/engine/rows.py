"""The rows of a result, from what was counted and evaluated."""

from dataclasses import dataclass, field
from typing import Any

from mpi_compress.engine.counting import Counters
from mpi_compress.engine.evaluation import Evaluation

TAKEN = {
    "round", "epoch", "loss", "suboptimality", "grad_norm", "wire_bits_up", "wire_bits_down", "paper_bits_up", "paper_bits_down",
    "elements_up", "cost_up", "cost_down", "distance", "test_loss", "test_accuracy",
}  # fmt: skip
"""Columns that a trace has whatever the algorithm."""


@dataclass(frozen=True)
class Row:
    """One row of a result: the point after `round` rounds, and what it took to reach it."""

    trace: dict[str, float]
    workers: dict[str, list[float]]
    timing: dict[str, float]
    theory: dict[str, Any] = field(default_factory=dict)


def row_of(k: int, c: Counters, e: Evaluation, n_samples: int, f_star: float) -> Row:
    """The row of round k; `n_samples` make an epoch."""
    return Row(
        trace={
            "round": k,
            "epoch": e.samples / n_samples,
            "loss": e.loss,
            "suboptimality": e.loss - f_star,
            "grad_norm": e.grad_norm,
            "wire_bits_up": sum(c.wire_up),
            "wire_bits_down": c.wire_down,
            "paper_bits_up": sum(c.paper_up),
            "paper_bits_down": c.paper_down,
            "elements_up": c.elements,
            "cost_up": c.cost_up,
            "cost_down": c.cost_down,
            **e.columns,
        },
        workers={"wire_bits_up": list(c.wire_up), "paper_bits_up": list(c.paper_up), **e.of_workers},
        timing={
            "seconds": c.seconds,
            "compute": e.seconds.compute,
            "pack": e.seconds.pack,
            "exchange": max(0.0, c.seconds - e.seconds.compute - e.seconds.pack - c.clock.update),
            "update": c.clock.update,
            "evaluate": max(0.0, c.clock.evaluate - e.seconds.borrowed),
        },
        theory=dict(e.theory),
    )
