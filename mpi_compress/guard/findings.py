"""What a check of a part found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
    loose: bool = False  # True: it holds by so much that a wrong part may hold, too

    def __str__(self) -> str:
        verdict = "loose" if self.loose else "holds" if self.holds else "WRONG"
        return f"{verdict}  {self.what}: {self.text}"


class NeedsAJob(UserError):
    """Made-up data do not suit a part."""

    def __init__(self, text: str):
        super().__init__(f"{text}; --job JOB checks it as a job has it")


def tried(what: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a check finds; an error in it is a finding, too."""
    try:
        yield from check()
    except NeedsAJob:
        raise
    except Exception as error:
        yield Finding(what, False, f"{type(error).__name__}: {' '.join(str(error).split())}{place_in_part(error)}")
