"""Metrics of a point and of its test set."""

import math

import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.problem.metrics.base import HeldOut, Metric, ProblemView, Vector, metrics


@metrics.register("nonzeros")
class Nonzeros(Metric):
    """The number of coordinates of x that are not 0."""

    def value(self, x: Vector, problem: ProblemView) -> float:
        return float(np.count_nonzero(x))


@metrics.register("accuracy")
class Accuracy(Metric):
    """The share of training samples whose label is the class that x predicts, as `test_accuracy` has it on a test set."""

    rises = True

    def value(self, x: Vector, problem: ProblemView) -> float:
        found = HeldOut(problem.rows, problem.loss).columns(x)
        if "test_accuracy" not in found:
            raise ValueError("the labels are no classes, so there is no accuracy")
        return found["test_accuracy"]


@metrics.register("perplexity")
class Perplexity(Metric):
    """exp(test_loss), of rows that no worker holds: for a model whose loss is the mean −log of the words' probabilities."""

    def value(self, x: Vector, problem: ProblemView) -> float:
        if problem.held_out is None:
            raise ValueError('perplexity is of a test set, and the job has none: [data] test = "…"')
        loss = problem.held_out.columns(x)["test_loss"]
        return math.exp(loss) if loss < 700 else math.inf


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
