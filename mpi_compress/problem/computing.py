"""How long workers compute: by a law of times, or by times that were measured. A time is drawn at the address of a worker
and of its task's number, so that every method and every layout has the same times."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, exp, log1p, pi, sqrt
from typing import Annotated, Literal

import numpy as np

from mpi_compress.core.arrays import Places
from mpi_compress.core.expressions import seconds
from mpi_compress.core.fields import Checked, refuse_out_of_range, within
from mpi_compress.core.streams import Rounds
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Shards

NS = 10**9  # of a second
Per = Literal["gradient", "sample", "nonzero"]


def positive_time(value: float | str) -> float:
    """A time in seconds; ValueError if it is not more than 0."""
    try:
        if 0 < (found := seconds(value)) < float("inf"):
            return found
    except ValueError:
        pass
    raise ValueError('a time of more than 0, such as "10 ms"')


@dataclass(frozen=True)
class Law:
    """The time of each task, in units: of worker i = 1 … n it is 1, i or √i; or it is drawn from a distribution."""

    law: Literal["equal", "linear", "sqrt", "lognormal", "exponential", "pareto"]
    unit: Annotated[float | str, Checked(positive_time)]  # the time itself, worker 1's, the median (lognormal), mean or least time
    sigma: Annotated[float, within("(0, 10]")] | None = None  # σ of a lognormal time: unit·exp(σ z), z a standard normal
    alpha: Annotated[float, within("[0.5, inf)")] | None = None  # of a Pareto time: it is above s·unit with chance s^−α
    noise: Literal["half-normal"] | None = None  # adds unit·√i·|z| to sqrt and linear, unit·|z| to equal
    offset: Annotated[float | str, Checked(positive_time)] | None = None  # a time that is added to each; left out: none

    def __post_init__(self) -> None:
        refuse_out_of_range(self)
        for name, law in (("sigma", "lognormal"), ("alpha", "pareto")):
            if (getattr(self, name) is None) == (self.law == law):
                raise ValueError(f'law = "{law}" needs {name}, and no other law has it')
        if self.noise and self.draws < 2:
            raise ValueError(f'noise is added to "equal", "linear" and "sqrt"; "{self.law}" is random without it')

    @property
    def draws(self) -> int:
        """The random numbers that a task needs."""
        return {"lognormal": 2, "exponential": 1, "pareto": 1}.get(self.law, 2 * bool(self.noise))

    def mean(self, n: int) -> Vector:
        """The mean time (n,) of a task of each worker, up to a factor that all have."""
        i, z = np.arange(n) + 1.0, sqrt(2 / pi) * bool(self.noise)  # z: the mean of |z|
        units = {"linear": i + z * np.sqrt(i), "sqrt": (1 + z) * np.sqrt(i)}.get(self.law, np.ones(n))
        return units + self._offset / float(self.unit)

    def seconds(self, t: Rounds) -> Vector:
        """The time (m,) of each worker's task of round t.k."""
        i, u = t.who + 1.0, t.random(np.full(len(t), self.draws)).reshape(len(t), self.draws).tolist()
        match self.law:  # math has the same bits on any processor
            case "lognormal":
                factor = np.array([exp((self.sigma or 0.0) * _normal(*each)) for each in u])
            case "exponential":
                factor = np.array([-log1p(-each) for (each,) in u])
            case "pareto":
                factor = np.array([(1 - each) ** (-1 / (self.alpha or 1.0)) for (each,) in u])
            case _:
                factor = {"linear": i, "sqrt": np.sqrt(i)}.get(self.law, np.ones(len(t)))
                if self.noise:
                    factor = factor + (1.0 if self.law == "equal" else np.sqrt(i)) * np.array([abs(_normal(*each)) for each in u])
        return float(self.unit) * factor + self._offset

    @property
    def _offset(self) -> float:
        return float(self.offset or 0.0)


def _normal(u: float, v: float) -> float:
    return sqrt(-2 * log1p(-u)) * cos(2 * pi * v)


@dataclass(frozen=True)
class MeasuredTimes:
    """Times that were measured: each worker has its own one after another, and again from the first."""

    times: Sequence[Sequence[float]]  # worker i has those at i mod their number
    draws = 0

    def mean(self, n: int) -> Vector:
        """The mean time (n,) of a task of each worker."""
        return np.array([sum(each) / len(each) for each in (self.times[i % len(self.times)] for i in range(n))])

    def seconds(self, t: Rounds) -> Vector:
        """The time (m,) of each worker's task of round t.k."""
        own = [self.times[i % len(self.times)] for i in t.who.tolist()]
        return np.array([each[t.k % len(each)] for each in own])


@dataclass(frozen=True)
class Computing:
    """How long each worker computes what it sends: `law` says it of a task, or of one sample or nonzero of it."""

    law: Law | MeasuredTimes
    per: Per = "gradient"

    def units(self, fs: Shards, samples: Places) -> Vector:
        """What is timed (m,) in a task in which each of fs computes so many samples (m,). A sample has the mean number of nonzeros
        of its worker's rows."""
        if self.per == "gradient":
            return np.ones(len(fs))
        return samples * np.array([t.rows.nonzeros / max(1, len(t.rows)) if self.per == "nonzero" else 1.0 for t in fs.terms])

    def shares(self, n: int) -> Vector:
        """The mean time (n,) of a task of each worker, over the harmonic mean of all."""
        each = self.law.mean(n)
        return each * np.sum(1 / each) / n

    def of_gradients(self, fs: Shards, t: Rounds) -> Vector:
        """The seconds (m,) in which each worker of fs computes its whole gradient in round t.k."""
        return np.array(self.nanoseconds(t.of_times, self.units(fs, fs.sizes))) / NS

    def nanoseconds(self, t: Rounds, units: Vector) -> list[int]:
        """How long each worker computes its task of round t.k."""
        return [int(each) for each in np.rint(NS * (self.law.seconds(t) * units)).tolist()]
