"""The clock that the algorithm's seconds are read from: it stands still while kernels are compiled."""

import time


class _Stillness:
    """How long the clock has stood still."""

    seconds = 0.0
    asked = 0  # how many ask for it now
    since = 0.0


_still = _Stillness()


def now() -> float:
    """Seconds since some moment, as `time.perf_counter` counts them, without those in which the clock stood still."""
    return (_still.since if _still.asked else time.perf_counter()) - _still.seconds


def stand_still() -> None:
    """Stop the clock, until `go_on` has been called as often as this."""
    if not _still.asked:
        _still.since = time.perf_counter()
    _still.asked += 1


def go_on() -> None:
    """Let the clock go on from where it stood still."""
    _still.asked -= 1
    if not _still.asked:
        _still.seconds += time.perf_counter() - _still.since


def stood_still() -> float:
    """Seconds in which the clock has stood still."""
    return _still.seconds
