"""Requests to end: a signal, or the time limit. A run in its rounds is saved first; anything else ends at once."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

BEGUN = time.monotonic()
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP") if hasattr(signal, name))
_HANGUP = getattr(signal, "SIGHUP", None)
_AGAIN_SECONDS = 1.0  # one Ctrl-C may arrive twice, from the terminal and from mpiexec; a later one ends the process at once
EXIT_STOPPED = 75  # EX_TEMPFAIL: try the same command again


class Stopped(Exception):
    """All ranks have saved the run and end (exit 75)."""


class Interrupted(BaseException):
    """A signal came where there was nothing to save (exit 75); `when` says where."""

    when = "while it was being prepared"


class Interrupts:
    """Notes the requests to end that this process gets; a `limit`, in seconds from the start of this program, is one."""

    def __init__(self, limit: float | None = None):
        self._end = None if limit is None else BEGUN + limit
        self._limit = limit
        self._signal, self._noted = "", 0.0
        self._in_rounds = False

    @contextmanager
    def caught(self, signals: Sequence[signal.Signals] = SIGNALS) -> Iterator["Interrupts"]:
        """Take SIGINT, SIGTERM, SIGUSR1 and SIGHUP as requests to end; SIGHUP, of a terminal that closes, not under nohup. After a
        request SIGTERM stays ignored: srun sends it to the ranks that end last, and a saved run must not end by a signal. In a
        thread that is not the main one there are no signals to take."""
        if threading.current_thread() is not threading.main_thread():
            signals = ()
        wanted = [number for number in signals if number != _HANGUP or signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._note) for number in wanted}
        try:
            yield self
        except Stopped:
            raise
        except Exception:  # a compiler has taken the interruption for an error of its own
            if self._signal and not self._in_rounds:
                raise Interrupted(self._signal) from None
            raise
        finally:
            for number, handler in before.items():
                ends = number == signal.SIGTERM and handler is signal.SIG_DFL
                signal.signal(number, signal.SIG_IGN if ends and self.wish() else handler)

    @contextmanager
    def in_rounds(self) -> Iterator[None]:
        """Only note signals, for `wish`; interrupt nothing."""
        self._in_rounds = True
        try:
            yield
        finally:
            self._in_rounds = False

    def wish(self) -> str:
        """Why this process should end now; "" if it should not."""
        if not self._signal and self._end is not None and time.monotonic() >= self._end:
            return f"the time limit of {self._limit:g} s"
        return self._signal

    def _note(self, number: int, frame: FrameType | None) -> None:
        now, first = time.monotonic(), not self._signal
        if first:
            self._signal, self._noted = signal.Signals(number).name, now
        if number == signal.SIGINT and now > self._noted + _AGAIN_SECONDS:
            raise KeyboardInterrupt
        if first and not self._in_rounds:
            raise Interrupted(self._signal)
