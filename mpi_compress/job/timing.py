"""[time]: how long workers compute, and which of their messages the master waits for."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mpi_compress.algorithms.rules import Late, Name, Rule, keys_of
from mpi_compress.core.errors import checked_at
from mpi_compress.core.of_workers import rows_of_workers
from mpi_compress.core.registry import checked
from mpi_compress.job.tables import Tables, some_of
from mpi_compress.problem.computing import Computing, Law, MeasuredTimes, Per, positive_time


@dataclass(frozen=True)
class TimeTable:
    """A job's [time]."""

    compute: float | str | list[float | str] | Tables | None = None  # a time, one a worker, a law, or a file; None: no time
    per: Per | None = None  # what takes that time; None: "gradient", what a worker computes in a round
    wait: int | float | Literal["all", "each"] = "all"  # arrivals with which the master acts: a count, below 1 a share; one of each
    again: bool | None = None  # as in `Rule`, with the four below; None: as the rule says, or False
    stale: int | float | None = None
    late: Late | None = None
    weight: float | str | None = None
    rule: Name | None = None  # a name for such keys

    @property
    def file(self) -> str:
        """The file that `compute` names, if it does."""
        return self.compute if isinstance(self.compute, str) and self.compute.endswith((".csv", ".toml")) else ""

    def rule_of(self, n: int) -> Rule | None:
        """The rule of arrival of n workers; None: the master waits for all that take part. ValueError if that cannot be."""
        keys = {name: held for name in ("again", "stale", "late", "weight") if (held := getattr(self, name)) is not None}
        if self.wait != "all":
            keys["wait"] = self.wait
        if self.rule is not None:
            keys = keys_of(self.rule, keys)
        if not keys:
            return None
        if "wait" not in keys:
            raise ValueError(f"{next(iter(keys))} needs wait, the arrivals with which the master acts")
        each = keys.pop("each", False) or keys["wait"] == "each"
        if each and not keys.get("again"):
            raise ValueError('wait = "each" is of workers that arrive again: again = true, or wait = "all"')
        right = isinstance(keys["wait"], int) and keys["wait"] >= 1 and keys.get("again")  # a worker may arrive several times
        wait = n if keys["wait"] == "each" else keys["wait"] if right else some_of("wait", keys["wait"], n) or n
        keys |= {"wait": n, "each": wait} if each else {"wait": wait}
        rule = Rule(**{**keys, "weight": str(keys.get("weight", 1))})
        return None if rule == Rule(n) else rule

    def computing(self, n: int) -> Computing | None:
        """How long n workers compute; UserError if that is said wrongly."""
        if self.compute is None:
            return None
        law = checked_at("time.compute", self._law, n)
        per = self.per or ("nonzero" if self.file.endswith(".toml") else "gradient")
        return Computing(law, per)

    def _law(self, n: int) -> Law | MeasuredTimes:
        given = self.compute
        if isinstance(given, Mapping):
            return checked(Law, given, "time.compute")
        if isinstance(given, list):
            if len(given) != n:
                raise ValueError(f"{len(given)} times were given for {n} workers; it should be a time for each")
            return MeasuredTimes([[positive_time(each)] for each in given])
        if not self.file:
            return Law("equal", positive_time(given or 0.0))
        if self.file.endswith(".csv"):
            return MeasuredTimes([[positive_time(s) for (s,) in rows] for rows in rows_of_workers(self.file, ["second"], "times")])
        if self.per not in (None, "nonzero"):
            raise ValueError(f'{self.file} has the time of a nonzero: per = "nonzero"')
        return Law("equal", _calibrated(self.file))


def _calibrated(file: str) -> float:
    try:
        return positive_time(tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))["compute"]["nonzero"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{file} has no compute.nonzero; `mpi-compress calibrate -o {file}` measures it") from None
