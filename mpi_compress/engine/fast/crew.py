"""The workers that one process hosts."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import LookAhead, Objective, stay_cached


class Crew:
    """The workers that one process hosts, in order: what can be done for all of them by one call.

    Args:
        objectives: f_i of each.
        workers: their own memories.
        streams: what they draw from.
    """

    def __init__(self, objectives: Mapping[int, Objective], workers: Mapping[int, Any], streams: Streams):
        self.objectives, self.workers, self._streams = objectives, workers, streams
        self._ahead = LookAhead.of(objectives.values())
        self._laid: dict[str, NDArray[np.float64]] = {}

    @cached_property
    def acts_together(self) -> bool:
        """Whether a call for all is sooner than one for each: they are several, and a vector (d,) of each stays in the cache."""
        m = len(self.objectives)
        return m > 1 and stay_cached(m, self.any_objective.dim)

    @cached_property
    def any_objective(self) -> Objective:
        """One of the f_i, which are all of a kind."""
        return next(iter(self.objectives.values()))

    @property
    def looks_ahead(self) -> bool:
        """Whether full gradients of all can be computed by one call."""
        return self._ahead is not None

    def round(self, i: int, k: int) -> Round:
        """What worker i knows of round k."""
        return Round(k, self._streams, Role.WORKER, i)

    def look_ahead(self, x: Vector | None) -> None:
        """∇f_i(x) of all by one call, if it `looks_ahead` and x is known: the workers are about to ask for them."""
        if self._ahead is not None and x is not None:
            self._ahead.look(x)

    def gradients(self, x: Vector) -> NDArray[np.float64]:
        """What every worker gets from `gradient(x)` (m, d), if it `looks_ahead`."""
        assert self._ahead is not None
        return self._ahead.gradients(x)

    def side_by_side(self, name: str) -> NDArray[np.float64]:
        """The arrays `name` of the workers' memories, as rows of one (m, …), where they stay: to write to one is to write to the
        other, as long as the memories put no other array in its place."""
        if name not in self._laid:
            self._laid[name] = np.array([getattr(worker, name) for worker in self.workers.values()])
            for worker, row in zip(self.workers.values(), self._laid[name], strict=True):
                setattr(worker, name, row)
        return self._laid[name]
