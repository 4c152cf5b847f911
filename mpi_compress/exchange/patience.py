"""For how long ranks wait for each other.

A rank that has waited for too long calls the roll. Ranks that wait, for whatever, answer within a second; one that hangs, is
stopped, or computes does not. A rank counts only the time in which it runs itself: a job that SLURM suspends as a whole goes on
when it is resumed.
"""

import time
from datetime import datetime

import numpy as np
from mpi4py import MPI

from mpi_compress.core.errors import NotAnswering

_CALL, _PRESENT = 101, 102  # tags
_ROLL_SECONDS = (3.0, 10.0)  # for answers to a roll call: at least, and at most; else as long as the patience
_LOOK_SECONDS = 1.0  # between two looks whether another rank calls the roll
_LONGEST_STEP = 5.0  # between two looks at the clock: longer means that this process itself was stopped


class Patience:
    """Ends waits of a communicator's ranks for each other that are longer than so many seconds; tags 101 and 102 are used here
    alone."""

    def __init__(self, comm: MPI.Comm, seconds: float):
        self._comm, self.seconds = comm, seconds
        self._others = [rank for rank in range(comm.size) if rank != comm.rank]
        self._calls = 0  # roll calls of this rank
        self._sent: list[MPI.Request] = []

    def _arrived(self, tag: int) -> tuple[int, int] | None:
        """The sender of a number that has arrived, and the number; None if there is none."""
        status, number = MPI.Status(), np.empty(1, dtype=np.int64)
        if not self._comm.Iprobe(source=MPI.ANY_SOURCE, tag=tag, status=status):
            return None
        self._comm.Recv(number, source=status.Get_source(), tag=tag)
        return status.Get_source(), int(number[0])

    def _send(self, number: int, to: int, tag: int) -> None:
        self._sent.append(self._comm.Isend(np.array([number], dtype=np.int64), dest=to, tag=tag))

    def answer(self) -> None:
        """Answer the roll calls of other ranks."""
        while call := self._arrived(_CALL):
            self._send(call[1], call[0], _PRESENT)

    def absent(self) -> list[int]:
        """Call the roll; the ranks that do not answer."""
        self._calls += 1
        for rank in self._others:
            self._send(self._calls, rank, _CALL)
        present: set[int] = set()
        least, most = _ROLL_SECONDS
        end = time.monotonic() + min(max(least, self.seconds), most)
        while len(present) < len(self._others) and time.monotonic() < end:
            self.answer()
            if found := self._arrived(_PRESENT):
                present |= {found[0]} if found[1] == self._calls else set()
            else:
                time.sleep(0.01)
        return sorted(set(self._others) - present)


class Wait:
    """One wait, which is looked at again and again."""

    def __init__(self, patience: Patience):
        self._patience = patience
        self._seen = time.monotonic()
        self._since = time.time()
        self._waited = self._looked = 0.0

    def look(self) -> bool:
        """True if the wait is long already, so that a nap costs nothing; NotAnswering if it is too long, and some ranks do not
        answer."""
        now = time.monotonic()
        self._waited += min(now - self._seen, _LONGEST_STEP)
        self._seen = now
        if self._waited - self._looked >= _LOOK_SECONDS:
            self._looked = self._waited
            self._patience.answer()
            if self._waited >= self._patience.seconds and (absent := self._patience.absent()):
                raise NotAnswering(_text(absent, self._since, self._waited))
        return self._looked > 0


def _text(ranks: list[int], since: float, waited: float) -> str:
    which = f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
    long = f"{waited:.0f} s" if waited < 100 else f"{waited / 60:.0f} min"
    when = datetime.fromtimestamp(since).isoformat(" ", "seconds")
    return f"{which} not answered since {when}, for {long}; the last checkpoint is kept ([workers] patience says how long to wait)"
