"""The records that a job claims in its [[record]] tables; `evidence.records` compares them with what their runs take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.registry import checked
from mpi_compress.results.targets import Target


@dataclass(frozen=True)
class Record:
    """What a run is said to need up to a level: bits on the wire over all workers."""

    run: str  # its label
    to: dict[str, float]  # { suboptimality = 1e-9 }
    wire_bits: int | None = None  # up and down; a message down counts once a worker
    wire_bits_up: int | None = None

    def __post_init__(self) -> None:
        if len(self.to) != 1:
            raise ValueError(f"to = {self.to} should be one column and its level, such as {{ suboptimality = 1e-9 }}")
        if not self.claimed:
            raise ValueError("wire_bits or wire_bits_up is wanted, the number that is claimed")

    @property
    def target(self) -> Target:
        """The level of `to`; UserError where it is none."""
        return Target.of(*next(iter(self.to.items())))

    @property
    def claimed(self) -> dict[str, int]:
        """The bits that are claimed, by column."""
        bits = {"wire_bits": self.wire_bits, "wire_bits_up": self.wire_bits_up}
        return {column: number for column, number in bits.items() if number is not None}


def of_job(tables: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[Record]:
    """The records of a job's [[record]] tables, each of which names a run by its label; UserError where one is wrong."""
    records = [checked(Record, table, f"record {i + 1}") for i, table in enumerate(tables)]
    for i, record in enumerate(records):
        if record.run not in labels:
            raise UserError(f"record {i + 1}.run: {nearest(record.run, labels, 'run')}")
        try:
            str(record.target)
        except UserError as error:
            raise UserError(f"record {i + 1}.to: {error}") from None
    return records
