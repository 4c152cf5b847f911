"""What a run asks of its problem that takes long to compute."""

from dataclasses import dataclass, replace

from mpi_compress.algorithms.needs import OPTIMUM
from mpi_compress.algorithms.steps import named_by
from mpi_compress.algorithms.theorem import names_of_theorem
from mpi_compress.core.registry import is_ours
from mpi_compress.job.runs import RunSpec

OF_WORKERS = ("L_max", "L_mean", "L_rms", "L_pm")  # quantities that need all workers' smoothness
OF_OPTIMUM = ("distance", "relative_distance", "bound", "gap")  # columns that need x* in the rounds


@dataclass(frozen=True)
class Wanted:
    """Constants that a job needs, and that are costly."""

    each: bool  # L_max, L_mean, L_rms or L_pm
    row: bool  # L_row
    optimum: bool  # x*
    f_star: bool  # f*
    asked: bool  # x* or f*, if they can be computed

    @classmethod
    def by(cls, spec: RunSpec) -> "Wanted":
        names, stop = named_by(spec.algorithm), spec.stop
        names |= names_of_theorem(spec.algorithm) if spec.log.theory else set()
        optimum = spec.start.at == "optimum" or OPTIMUM in spec.algorithm.needs or not stop.columns.isdisjoint(OF_OPTIMUM)
        own = not all(map(is_ours, (spec.algorithm, *spec.metrics)))  # they may look at x*, if it is known
        named = not spec.asked.isdisjoint((*OF_OPTIMUM, "suboptimality"))
        asked = own or named or spec.log.theory or spec.objective.f_star == "solve"
        return cls(not names.isdisjoint(OF_WORKERS), "L_row" in names, optimum, "suboptimality" in stop.columns, asked)


def without_optimum(spec: RunSpec) -> RunSpec:
    """This run without x* and f*, unless its method needs them."""
    return spec if Wanted.by(spec).optimum else replace(spec, objective=replace(spec.objective, f_star="skip"))


def key_of(spec: RunSpec) -> str:
    """Runs of equal keys have one problem: the tables of the run after [tune], and the folder of their files."""
    start = spec.start if spec.objective.f_star == "lowest seen" else None
    return repr((spec.folder, spec.data, spec.objective, spec.workers, spec.seed, start, Wanted.by(spec)))
