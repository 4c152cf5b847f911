import math

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.metrics.base import Metric, ProblemView, metrics


@metrics.register("perplexity")
class Perplexity(Metric):
    """exp(test_loss), of rows that no worker holds: for a model whose loss is the mean −log of the words' probabilities."""

    def value(self, x: Vector, problem: ProblemView) -> float:
        if problem.held_out is None:
            raise ValueError('perplexity is of a test set, and the job has none: [data] test = "…"')
        loss = problem.held_out.columns(x)["test_loss"]
        return math.exp(loss) if loss < 700 else math.inf
