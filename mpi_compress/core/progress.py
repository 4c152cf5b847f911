"""The progress of a run: a bar on a terminal, also on that of mpiexec, otherwise plain lines, at most one a minute."""

import math
import os
import re
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, Self

from mpi_compress.core.terminal import clear, coloured, columns, has_bar, is_watched, show, wrapped

_SECONDS_BETWEEN_LINES, _SECONDS_BETWEEN_BARS = 60.0, 0.1
_last_line = time.monotonic()  # when a line was printed, also by what was under way before


def turn_text(number: int = 1, of: int = 1, what: str = "") -> str:
    """Which of several runs is under way, or of `what` else, also where it is the only one."""
    return f" ({(what or 'run {} of {}').format(number, of)})" if of > 1 or what else ""


class _Reports:
    """What reports to standard error how far something is: by a bar on a terminal that is gone at its end, or by a line where
    none was printed for a minute, also of what went before."""

    def __init__(self, label: str, quiet: bool, turn: str = ""):
        self._label, self._turn = label, turn
        self._begun = self._reported = time.monotonic()
        self._pause = math.inf if quiet else _SECONDS_BETWEEN_BARS if has_bar() else _SECONDS_BETWEEN_LINES
        if not quiet and has_bar():
            show(label, turn=self._turn)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        clear()

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now - (self._reported if has_bar() else _last_line) <= self._pause:
            return False
        self._reported = now
        return True

    def _tell(self, share: float | None, parts: Sequence[str], line: Sequence[str]) -> None:
        if has_bar():
            show(self._label, share, parts, self._turn)
        else:
            print_line(f"{self._label}{self._turn}: {', '.join(line)}")


class Progress(_Reports):
    """Reports the rounds of one run. It is called after every round."""

    def __init__(self, label: str, rounds: int | None, quiet: bool, turn: str = ""):
        super().__init__(label, quiet, turn)
        self._rounds, self._loss, self._of = rounds, "", re.sub(r" \((\w+).*", r" of this \1", turn)
        self._calls = self._first = 0  # of this process, and the round from which on its pace is taken

    def __call__(self, k: int, loss: float | None, wire_bits_up: float) -> None:
        self._calls += 1
        if self._calls <= 2:  # what was compiled before, or in the first round, is no part of the pace
            self._first, self._begun = k, time.monotonic()
        self._loss = self._loss if loss is None else f"loss {loss:.6g}"
        if not self._is_due():
            return
        rounds, done, seconds = self._rounds, k - self._first, max(self._reported - self._begun, 1e-9)
        times = [f"{time_text(seconds * (rounds - k) / done)} left{self._of}"] if rounds and done else []
        at, pace = f"round {k:,}{f' of {rounds:,}' if rounds else ''}", [f"{done / seconds:.3g} rounds/s"] if done else []
        numbers = [*filter(None, [self._loss]), f"{bits_text(wire_bits_up)} up"]
        self._tell(min(k / rounds, 1.0) if rounds else None, [*times, *pace, at, *numbers], [at, *numbers, *times])


class Amount(_Reports):
    """Reports how much has come: of a file, or of `what` has a unit and its size."""

    def __init__(self, label: str, quiet: bool, what: tuple[str, float] = ("MB", 1e6)):
        super().__init__(label, quiet)
        self._unit, self._size = what

    def __call__(self, have: float, total: float | None) -> None:
        if self._is_due():
            seconds, size = self._reported - self._begun, self._size
            amount = f"{have / size:,.0f}{f' of {total / size:,.0f}' if total else ''} {self._unit}"
            left = [f"{time_text(seconds * (total - have) / have)} left"] if total and have else []
            pace = [f"{have / size / max(seconds, 1e-9):.3g} MB/s"] if self._unit == "MB" else []
            self._tell(have / total if total else None, [*left, amount, *pace], [amount, *pace, *left])


def time_text(seconds: float) -> str:
    """A time in a readable unit."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:{'.2g' if seconds < 100 * length else '.0f'}} {unit}"
    return f"{seconds:.0f} s"


def bits_text(bits: float, unit: str = "bit", digits: int = 4) -> str:
    """Bits, or what `unit` says, in a readable unit."""
    for prefix in ("", "k", "M", "G"):
        if float(text := f"{bits:.{digits}g}") < 1000:
            return f"{text} {prefix}{unit}"
        bits /= 1000
    return f"{bits:.{digits}g} T{unit}"


def count_text(n: int, what: str) -> str:
    """A count of things: "1 run", "2 runs"."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def ignore(*_: Any) -> None:
    """Takes whatever it is given, and does nothing."""


def print_line(text: str, colour: str = "") -> None:
    """Print a line to standard error, in a colour of `terminal`; a run does not end if that is closed or full."""
    global _last_line
    _last_line = time.monotonic()
    try:
        clear()
        letters = columns(sys.stderr) if is_watched(sys.stderr) else None  # $COLUMNS breaks no line of a file
        print(coloured(wrapped(text, letters), colour, sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


print_once = cache(print_line)
"""Print a line, unless this process has printed it before."""
