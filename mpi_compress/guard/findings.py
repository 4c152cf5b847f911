"""What a check of a part found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mpi_compress.core.blame import place_in_part

SEED = 20261124  # of everything that checks draw
IN_A_JOB = "--job JOB checks it as a job has it"  # what to do where made-up data do not suit a part


@dataclass(frozen=True)
class Finding:
    """One property of a part: what it states, and what was found."""

    what: str
    holds: bool
    text: str

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'WRONG'}  {self.what}: {self.text}"


Check = Callable[[], Iterator[Finding]]


def tried(what: str, check: Check) -> Iterator[Finding]:
    """What a check finds; an error in it is a finding, too."""
    try:
        yield from check()
    except Exception as error:
        yield Finding(what, False, f"{type(error).__name__}: {' '.join(str(error).split())}{place_in_part(error)}")
