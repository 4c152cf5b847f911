"""[protocol]: on what the settings of a job's methods are chosen, and by how many trials, said before anything is scored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from mpi_compress.core.errors import UserError
from mpi_compress.core.patterns import is_chosen
from mpi_compress.job.dotted import leaves
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import Tables
from mpi_compress.job.tuning import Settings, combinations

OF_DATA = "name", "path", "generator"
"""The keys of [data] that say which set it is."""


@dataclass(frozen=True)
class Protocol:
    """A job's [protocol]: each method's [tune] has its problems, seeds and target, and as many candidates as every other's. The
    data on which settings are chosen, and their seeds, are in none of the runs that are scored."""

    on: Settings  # the problems: tables of what trials set, or lists by dotted key of which all combinations are taken
    candidates: int  # of every method
    to: dict[str, float] | str  # the target that the candidates race to
    by: str = "wire_bits"  # the column in which it is paid
    seeds: list[int] = field(default_factory=lambda: [0, 1, 2, 3, 4])  # of the trials
    untuned: list[str] = field(default_factory=list)  # labels, or patterns, of the runs that have no settings to choose

    def __post_init__(self) -> None:
        if not self.sets:
            raise ValueError("on names no data: give each table a data.name, or a data.path")

    @cached_property
    def sets(self) -> list[str]:
        """The sets, files and generators on which settings are chosen."""
        named = {f"data.{key}" for key in OF_DATA}
        values = (each for table in combinations(self.on, "on") for each in leaves(table))
        return [*dict.fromkeys(str(value) for key, value in values if key in named)]

    def of_run(self, run: Tables) -> Tables:
        """A run's tables, its [tune] with what the protocol says of all."""
        if not run.get("tune"):
            return run
        return {**run, "tune": {"on": self.on, "to": self.to, "by": self.by, "seeds": self.seeds, **run["tune"]}}

    def check(self, runs: Sequence[RunSpec]) -> None:
        """UserError where a run does not keep to the protocol."""
        for problem in chain.from_iterable(map(self._against, runs)):
            raise UserError(f"protocol: {problem}")

    def _against(self, spec: RunSpec) -> Iterator[str]:
        """What a run does that the protocol rules out."""
        said = f'run "{spec.label}"'
        for name in (spec.written["data"].get(key) for key in OF_DATA):
            if str(name) in self.sets:
                yield f"{said} is scored on {name}, on which its settings are chosen; take it out of on, or of [data]"
        if spec.seed in self.seeds:
            yield f"{said} is scored with seed {spec.seed}, with which its settings are chosen; seed = 10 or more would do"
        if spec.tune is None:
            if not any(is_chosen(spec.label, pattern) for pattern in self.untuned):
                yield f"{said} has no [tune]: give it {self.candidates} candidates, or name it among untuned"
        elif (given := len(spec.tune.grid)) != self.candidates:
            yield f"{said} has {given} candidates, and candidates = {self.candidates} says how many each method has"
        else:
            for key in ("on", "seeds", "to", "by"):
                if getattr(spec.tune, key) != getattr(self, key):
                    yield f"{said}: tune.{key} is not the protocol's; leave it out there"

    def __str__(self) -> str:
        on, seeds = ", ".join(self.sets), ", ".join(map(str, self.seeds))
        return f"protocol: settings chosen on {on} with seeds {seeds}, {self.candidates} candidates a method"
