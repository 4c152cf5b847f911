"""The progress of a run: a bar on a terminal, also on that of mpiexec, otherwise plain lines, at most one a minute."""

import os
import stat
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

_LAUNCHERS = ("mpiexec", "mpirun", "prterun", "prted", "orted", "hydra_pmi_proxy")  # with their helpers, by their first letters
_PROCESSES = Path("/proc")
_USUAL = os.terminal_size((80, 24))


def has_bar() -> bool:
    """True if progress is a bar rather than lines."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules or launchers_terminal() is not None


def bar(**settings: Any) -> Any:
    """A bar of tqdm that is gone when it is closed, as wide as the terminal."""
    from tqdm import tqdm  # takes 0.05 s to import

    columns, lines = _size()
    return tqdm(leave=False, ncols=columns, nrows=lines, **settings)


@cache
def launchers_terminal() -> Path | None:
    """The terminal of the mpiexec that started this process, if mpiexec passes standard error on to it.

    It is found on Linux alone, and on mpiexec's own host.
    """
    try:
        if not stat.S_ISFIFO(os.fstat(sys.stderr.fileno()).st_mode):
            return None
        launcher, parent = 0, os.getppid()
        while (_PROCESSES / str(parent) / "comm").read_text().startswith(_LAUNCHERS):
            behind_name = (_PROCESSES / str(parent) / "stat").read_text().rpartition(")")[2]
            launcher, parent = parent, int(behind_name.split()[1])
        shown_on = Path(os.readlink(_PROCESSES / str(launcher) / "fd" / "2")) if launcher else None
    except (OSError, ValueError):
        return None
    return shown_on if shown_on is not None and shown_on.as_posix().startswith(("/dev/pts/", "/dev/tty")) else None


def _size() -> tuple[int, int]:
    """Columns and lines of the terminal; usual ones where it does not say."""
    terminal = None if sys.stderr.isatty() else launchers_terminal()
    try:
        opened = sys.stderr.fileno() if terminal is None else os.open(terminal, os.O_RDONLY | os.O_NOCTTY)
        try:
            found = os.get_terminal_size(opened)
            return found.columns or _USUAL.columns, found.lines or _USUAL.lines
        finally:
            if terminal is not None:
                os.close(opened)
    except (OSError, ValueError):
        return _USUAL


_SECONDS_BETWEEN_LINES = 60.0


@dataclass(frozen=True)
class Turn:
    """Which of several runs is played."""

    number: int = 1  # from 1 on
    of: int = 1

    def __str__(self) -> str:
        return f" (run {self.number} of {self.of})" if self.of > 1 else ""


class _Shown:
    """What closes its bar, if it has one."""

    _bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


class Progress(_Shown):
    """Reports the rounds of one run to standard error. It is called after every round."""

    def __init__(self, label: str, rounds: int | None, quiet: bool, turn: Turn = Turn()):
        self._label, self._rounds, self._quiet, self._turn = f"{label}{turn}", rounds, quiet, turn
        self._begun = self._reported = time.monotonic()
        self._first: int | None = None  # round of this process, which may go on with a run
        self._loss = float("nan")
        if not quiet and has_bar():
            self._bar = bar(total=rounds, desc=self._label, unit="round")

    def __call__(self, k: int, loss: float | None, wire_bits_up: float) -> None:
        if self._first is None:
            self._first, self._begun = k, time.monotonic()  # what was compiled before is no part of the pace
            if self._bar is not None:  # rounds of an earlier process are none of this one's
                self._bar.initial = self._bar.n = self._bar.last_print_n = k
        self._loss = self._loss if loss is None else loss
        if self._bar is not None:
            if loss is not None:
                self._bar.set_postfix_str(f"{self._numbers(wire_bits_up)}{self._left_for_all(k)}", refresh=False)
            self._bar.update(k - self._bar.n)
        elif not self._quiet and time.monotonic() - self._reported > _SECONDS_BETWEEN_LINES:
            self._reported = time.monotonic()
            of = f" of {self._rounds}" if self._rounds is not None else ""
            left = self._left(k)
            in_words = "" if left is None else f", {time_text(left)} left"
            print_line(f"{self._label}: round {k}{of}, {self._numbers(wire_bits_up)}{in_words}{self._left_for_all(k)}")

    def _numbers(self, wire_bits_up: float) -> str:
        return f"loss {self._loss:.6g}, {bits_text(wire_bits_up)} up"

    def _left(self, k: int) -> float | None:
        """Seconds that the rest of this run takes at the pace so far, if it ends after a number of rounds."""
        if self._rounds is None or self._first is None or k <= self._first:
            return None
        return (time.monotonic() - self._begun) * (self._rounds - k) / (k - self._first)

    def _left_for_all(self, k: int) -> str:
        """How long this run and the later ones take, if those take as long as this one."""
        if (left := self._left(k)) is None or self._turn.number == self._turn.of:
            return ""
        whole = left * self._rounds / (self._rounds - k) if self._rounds is not None and k < self._rounds else 0.0
        return f", about {time_text(left + whole * (self._turn.of - self._turn.number))} for all" if whole else ""


class Digits(_Shown):
    """Reports how far a computation is whose result gains digits: a bar, or lines, each with the time that may be left."""

    def __init__(self, label: str, quiet: bool):
        self._label, self._quiet = label, quiet
        self._begun = self._reported = time.monotonic()

    def __call__(self, share: float) -> None:
        """So much of the digits is there, from 0 to 1."""
        if self._quiet or share <= 0:
            return
        if has_bar():
            form = "{desc}: {percentage:.0f} %|{bar}| {elapsed}<{remaining}"
            self._bar = self._bar or bar(total=100, desc=self._label, bar_format=form)
            self._bar.update(max(0.0, 100 * min(share, 1.0) - self._bar.n))
        elif time.monotonic() - self._reported > _SECONDS_BETWEEN_LINES:
            self._reported = time.monotonic()
            left = (self._reported - self._begun) * (1 / share - 1)
            print_line(f"{self._label}: {share:.0%} of the digits, about {time_text(left)} left")


def time_text(seconds: float) -> str:
    """A time in a readable unit."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:{'.2g' if seconds < 100 * length else '.0f'}} {unit}"
    return f"{seconds:.0f} s"


def bits_text(bits: float) -> str:
    """Bits in a readable unit."""
    for unit in ("bit", "kbit", "Mbit", "Gbit"):
        if bits < 1000:
            return f"{bits:.4g} {unit}"
        bits /= 1000
    return f"{bits:.4g} Tbit"


def count_text(n: int, what: str) -> str:
    """A count of things: "1 run", "2 runs"."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def ignore(*_: Any) -> None:
    """Takes whatever it is given, and does nothing."""


def print_line(text: str) -> None:
    """Print a line to standard error; a run does not end if that is closed or full."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
