"""[workers] byzantine and robust: who of the workers lies, and what the master takes in place of the mean."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.registry import checked
from mpi_compress.job.tables import WorkersTable
from mpi_compress.messages.attacks import Attack, Byzantine, attacks
from mpi_compress.messages.robust import RobustMean, robust_means


@dataclass(frozen=True)
class ByzantineTable:
    """A job's [workers] byzantine."""

    count: int  # f, how many workers lie: the last ones
    attack: str | dict[str, Any]  # what they send


@dataclass(frozen=True)
class Lies:
    """Who of the workers lies, and what the master takes in place of the mean of their messages; None: nobody, and the mean."""

    robust: RobustMean | None = None
    byzantine: Byzantine | None = None

    @property
    def parts(self) -> tuple[RobustMean | None, Attack | None]:
        """The parts that it names."""
        return self.robust, self.byzantine.attack if self.byzantine else None


def lies_of(workers: WorkersTable, where: str) -> Lies:
    """What [workers] says of lies, its parts built for so many workers."""
    byzantine = None if workers.byzantine is None else _byzantine(workers.byzantine, workers.count, f"{where}.byzantine")
    if workers.robust is None:
        return Lies(None, byzantine)
    mean = robust_means.build(workers.robust, f"{where}.robust")
    return Lies(
        checked_at(f"{where}.robust", partial(mean.among, workers.count, byzantine.count if byzantine else None)), byzantine
    )


def _byzantine(given: dict[str, Any], n: int, where: str) -> Byzantine:
    table = checked(ByzantineTable, given, where)
    if not 1 <= table.count < n:
        raise UserError(f"{where}: count = {table.count} should be from 1 to {n - 1}, so that one of the {n} workers does not lie")
    attack = attacks.build(table.attack, f"{where}.attack")
    checked_at(f"{where}.attack", partial(attack.check, n, table.count))
    return Byzantine(table.count, attack)
