"""The progress of a run: a bar on a terminal, otherwise plain lines, at most one a minute."""

import os
import sys
import time
from types import TracebackType
from typing import Any

_SECONDS_BETWEEN_LINES = 60.0


class Progress:
    """Reports the rounds of one run to standard error. It is called after every round."""

    def __init__(self, label: str, rounds: int | None, quiet: bool):
        self._label, self._rounds, self._quiet = label, rounds, quiet
        self._bar: Any = None
        self._reported = time.monotonic()
        if sys.stderr.isatty():
            from tqdm import tqdm  # takes 0.05 s to import

            self._bar = tqdm(total=rounds, desc=label, unit="round", disable=quiet, leave=False)

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
        elif not self._quiet and loss is not None and time.monotonic() - self._reported > _SECONDS_BETWEEN_LINES:
            self._reported = time.monotonic()
            of = f" of {self._rounds}" if self._rounds is not None else ""
            print_line(f"{self._label}: round {k}{of}, loss {loss:.6g}, {bits_text(wire_bits_up)} up")


def bits_text(bits: float) -> str:
    """Bits in a readable unit."""
    for unit in ("bit", "kbit", "Mbit", "Gbit"):
        if bits < 1000:
            return f"{bits:.4g} {unit}"
        bits /= 1000
    return f"{bits:.4g} Tbit"


def print_line(text: str) -> None:
    """Print a line to standard error; a run does not end if that is closed or full."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
