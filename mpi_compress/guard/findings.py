"""What a check of a part found."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.core.blame import place_in_part
from mpi_compress.core.errors import UserError

SEED = 20261124  # of everything that checks draw


@dataclass(frozen=True)
class Finding:
    """One property of a part: what it states, and what was found."""

    what: str
    holds: bool
    text: str
    by: str = ""  # the check that found it
    doubt: str = ""  # why it does not say that it holds: "loose", or "not judged"
    ratio: float = 0.0  # of a bound: what was found over what is stated; 1: it is tight

    def __str__(self) -> str:
        verdict = self.doubt or "holds"
        return f"{verdict if self.holds else 'WRONG'}  {self.what}: {self.text}"


def either(what: str, holds: object, yes: str, no: str) -> Finding:
    """A property that has one text where it holds, and another where it does not."""
    return Finding(what, bool(holds), yes if holds else no)


def seeded() -> np.random.Generator:
    """The random numbers of a check, the same each time."""
    return np.random.default_rng(SEED)


Findings = Iterator[Finding]


class NeedsAJob(UserError):
    """Made-up data do not suit a part."""

    def __init__(self, text: str):
        super().__init__(f"{text}; --job JOB checks it as a job has it")


def tried(what: str, check: Callable[..., Findings], *arguments: Any, **named: Any) -> Findings:
    """What a check finds of the arguments; an error in it is a finding, too."""
    try:
        yield from check(*arguments, **named)
    except NeedsAJob:
        raise
    except Exception as error:
        yield Finding(what, False, f"{type(error).__name__}: {' '.join(str(error).split())}{place_in_part(error)}")


def worst(found: Iterable[Finding]) -> list[Finding]:
    """Of each property what is the worst of it; of equal ones that hold the last."""
    by_property: dict[str, Finding] = {}
    for each in found:
        before = by_property.setdefault(each.what, each)
        if (not each.holds, each.ratio, each.holds) >= (not before.holds, before.ratio, True):
            by_property[each.what] = each
    return [*by_property.values()]
