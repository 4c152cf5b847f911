"""The contract of a stop, and how a run asks its rules."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import Part, Registry


@dataclass(frozen=True)
class StopRule(Part, ABC):
    """Whether a run ends with a row that is logged. Its fields are the keys of its table in [stop]."""

    @abstractmethod
    def ends(self, row: Mapping[str, float], memory: dict[str, float]) -> bool | str:
        """True, or in words why, if the run is complete. Rank 0 asks at every row, off the clock.

        Args:
            row: the columns of the trace, those of [log] metrics among them; the first row is round 0's.
            memory: what this has noted at earlier rows of the run, empty at the first; it is in checkpoints.
        """


stops: Registry[StopRule] = Registry("stop", StopRule)


def why_it_ends(rules: tuple[StopRule, ...], row: Mapping[str, Any], memories: dict[str, dict[str, float]]) -> str:
    """The reason of the first rule that ends a run with this row; "" if none does. All of them see it. UserError if one answers, or
    remembers, something else than it may."""
    why = ""
    for rule in rules:
        memory = memories.setdefault(rule.name, {})
        answer = rule.ends(dict(row), memory)
        if not isinstance(answer, str) and answer not in (True, False):
            raise UserError(f"stop.{rule.name}: ends gives {answer!r:.60}; it should be True, False, or why in words")
        for key, value in memory.items():
            if not isinstance(key, str) or isinstance(value, bool) or not isinstance(value, int | float):
                raise UserError(f"stop.{rule.name}: memory[{key!r:.40}] = {value!r:.60}; it should be a number by a name")
            memory[key] = float(value)
        if answer and not why:
            why = f"{rule.name}: {answer}" if isinstance(answer, str) else rule.name
    return why
