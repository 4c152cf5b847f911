"""How far a run is: a bar on a terminal, otherwise plain lines, at most one a minute."""

import os
import sys
import time
from types import TracebackType

_SECONDS_BETWEEN_LINES = 60.0


class Progress:
    """Told of every round of a run."""

    def __init__(self, label: str, rounds: int | None, quiet: bool):
        self._label, self._rounds, self._quiet = label, rounds, quiet
        self._bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm  # only here: it takes 50 ms, and most commands draw no bar

            self._bar = tqdm(total=rounds, desc=label, unit="round", disable=quiet, leave=False)
        self._told = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, k: int, loss: float | None, wire_bits_up: float) -> None:
        if self._bar is not None:
            if loss is not None:
                self._bar.set_postfix_str(f"loss {loss:.6g}, {bits_text(wire_bits_up)} up", refresh=False)
            self._bar.update(k - self._bar.n)
        elif not self._quiet and loss is not None and time.monotonic() - self._told > _SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            of = f" of {self._rounds}" if self._rounds is not None else ""
            tell(f"{self._label}: round {k}{of}, loss {loss:.6g}, {bits_text(wire_bits_up)} up")


def bits_text(bits: float) -> str:
    """Bits with a readable unit."""
    for unit in ("bit", "kbit", "Mbit", "Gbit"):
        if bits < 1000:
            return f"{bits:.4g} {unit}"
        bits /= 1000
    return f"{bits:.4g} Tbit"


def tell(text: str) -> None:
    """A line to standard error; where that takes no more, to nobody: a run does not end for it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
