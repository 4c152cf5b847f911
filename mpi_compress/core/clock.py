"""The clock that the algorithm's seconds are read from, which stands still while kernels are compiled; and where wall time goes."""

import time
from dataclasses import dataclass, field


class _still:
    seconds = 0.0
    asked = 0  # how many ask for it now
    since = 0.0


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


@dataclass
class Stopwatch:
    """Divides the wall time since a moment, in `time.monotonic`'s seconds, among what was done in it."""

    since: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)

    def end(self, name: str) -> None:
        """What was done since the last such call has this name."""
        before, self.since = self.since, time.monotonic()
        self.seconds[name] = self.seconds.get(name, 0.0) + self.since - before

    def taken(self) -> dict[str, float]:
        """The seconds by name since this was last asked."""
        taken, self.seconds = self.seconds, {}
        return {name: round(seconds, 4) for name, seconds in taken.items()}
