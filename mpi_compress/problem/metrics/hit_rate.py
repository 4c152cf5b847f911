import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.metrics.base import Metric, ProblemView, metrics


@metrics.register("hit-rate")
class HitRate(Metric):
    """The share of tested users whose left-out item is among the k largest scores of their candidates (He et al. 2017: HR@10).

    The test set's rows are each user's left-out item, followed by the items that it is ranked against. Ties count against it.
    """

    k: AtLeastOne = 10  # how many items a user is shown

    def value(self, x: Vector, problem: ProblemView) -> float:
        candidates = 0 if problem.test is None else problem.test.sizes.get("candidates", 0)
        if problem.held_out is None or not candidates:
            raise ValueError('the hit rate is of a test set of candidates, such as [data] test = "held-out" of movielens')
        scores = problem.held_out.scores(x)
        if scores is None:
            raise ValueError("the model has no scores")
        if len(scores) % candidates:
            raise ValueError(f"{len(scores)} samples of the test set are looked at; test_rows should be a multiple of {candidates}")
        ordered = (scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]).reshape(-1, candidates)
        better = np.sum(ordered[:, 1:] >= ordered[:, :1], axis=1)
        return float(np.mean(better < self.k))
