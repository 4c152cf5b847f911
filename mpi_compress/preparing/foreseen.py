"""What a run will be refused for as it begins, as far as the size of its data tells, before they are read."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.job.runs import RunSpec
from mpi_compress.preparing.memory_needs import Shape
from mpi_compress.preparing.problems import Wanted, unsolved_of
from mpi_compress.preparing.runs import algorithm_of
from mpi_compress.problem.constants import Smoothness
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model
from mpi_compress.problem.partitions import refuse_idle_workers

_SMOOTHNESSES = (1e-4, 1.0, 1e4)  # what is refused with each of these, in the same words, does not depend on L


def refusal(spec: RunSpec, shape: Shape) -> str:
    """Why a run on data of this size is refused, whatever their smoothness is; "" if nothing is known that speaks against it."""
    if isinstance(spec.loss, Model) or spec.up.compressor.needs_noise:
        return ""  # settled by the data themselves
    played = spec.trials[0] if spec.tune else spec
    found = ""
    for of_data in _smoothnesses(played, spec.loss):
        why = _refused(played, shape, of_data)
        if not why or why != (found := found or why):
            return ""
    return found


def _refused(spec: RunSpec, shape: Shape, of_data: Smoothness) -> str:
    n = spec.workers.count
    data = DataSet(Path(), spec.data.title, shape.samples, shape.dim, int(shape.nonzeros))
    try:
        refuse_idle_workers(n, shape.samples)
        problem = unsolved_of(spec, data, spec.loss, of_data)
        problem = replace(problem, x_star=np.zeros(problem.dim))
        algorithm_of(spec, problem, {**problem.numbers(n), "g0": 1.0})
    except UserError as error:
        return str(error)
    except Exception:  # of a part of the user's, which may fail for what is made up here alone
        return ""
    return ""


def _smoothnesses(spec: RunSpec, loss: Loss) -> Iterator[Smoothness]:
    wanted, n = Wanted.by(spec), spec.workers.count
    if not loss.smooth or isinstance(spec.objective.smoothness, float | int):
        yield Smoothness(math.nan)
        return
    for L in _SMOOTHNESSES:
        yield Smoothness(L, [L] * n if wanted.each else None, L if wanted.row else None)
