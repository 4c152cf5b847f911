from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.metrics.base import HeldOut, Metric, ProblemView, metrics


@metrics.register("accuracy")
class Accuracy(Metric):
    """The share of training samples whose label is the class that x predicts, as `test_accuracy` has it on a test set."""

    def value(self, x: Vector, problem: ProblemView) -> float:
        found = HeldOut(problem.rows, problem.loss).columns(x)
        if "test_accuracy" not in found:
            raise ValueError("the labels are no classes, so there is no accuracy")
        return found["test_accuracy"]
