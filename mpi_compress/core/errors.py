"""Errors that are not bugs of this package."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_LISTED = 20  # names, in a line


class UserError(ValueError):
    """The user's input is wrong: one line that says what was given, where, and what would do (exit 2)."""


class NotMet(UserError):
    """What a method needs is not there."""


class CorruptMessage(ValueError):
    """Bytes that no codec wrote: truncated, extended, or out of range."""


class PrecisionExhausted(OverflowError):
    """The values to send are finer than floats can express: the run has reached its end."""


class AllSent(OverflowError):
    """A method has sent all that it has to send: the run has reached its end; the text says why."""


class NotAnswering(RuntimeError):
    """Other ranks have not answered for too long (exit 3): one line that names them."""


class NotAsAnnounced(RuntimeError):
    """A message that came over MPI has another length than its sender has announced (exit 3): one line."""


def nearest(given: str, known: Iterable[object], kind: str, quoted: bool = False, alike: float = 0.5) -> str:
    """The rest of an error line: the nearest right name, if it is `alike`, and all of them, in quotes where they are `quoted`; of
    many, the nearest ones."""
    names = sorted({str(k) for k in known})
    if not names:
        return f"no {kind} called '{given}', nor any other here"
    hint = f"; did you mean '{likely}'?" if (likely := likely_name(given, names, alike)) else "."
    some = names if len(names) <= _LISTED else get_close_matches(given, names, n=_LISTED // 2, cutoff=0.0)
    count = f" {len(names)}, such as" * (some is not names)
    return f"no {kind} called '{given}'{hint} there are{count}: {', '.join(map(repr, some) if quoted else some)}"


def likely_name(given: str, known: Iterable[str], alike: float = 0.5) -> str:
    """The right name that a wrong one resembles most, "" if none does; `alike` is 0 for any two names and 1 for equal ones."""
    names = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), names, n=1, cutoff=alike)
    return names[close[0]] if close else ""


def checked_at(where: str, build: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What `build` makes of the arguments; UserError with the place in the job if it refuses a value."""
    try:
        return build(*arguments, **named)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


@contextmanager
def placed(where: str) -> Iterator[None]:
    """A UserError of the block gets this place in front."""
    try:
        yield
    except UserError as error:
        error.args = (f"{where}{error}",)
        raise


def system_text(error: Exception) -> str:
    """An error in one line: of the system's what it says of its number, which HDF5 wraps in words of its own."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def writing(file: Path, option: str = "-o") -> Iterator[None]:
    """Make the folder of a file that the block writes; UserError, which names the option, if it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(f"{option} {file}: cannot be written: {error.strerror}") from None
