"""The rows of a result, from what was counted and evaluated."""

from mpi_compress.engine.counting import Counters
from mpi_compress.engine.evaluation import Evaluation
from mpi_compress.results.writer import Row


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
