"""Whether a run ends, as what, and why."""

import math
import textwrap
from collections.abc import Mapping

from mpi_compress.core.errors import PrecisionExhausted
from mpi_compress.engine.counting import Counters
from mpi_compress.exchange import Exchange
from mpi_compress.job.stop import Stop, Verdict

Refusals = Mapping[str, OverflowError | None]
"""Who, on this rank, could not send in a round that is not finite, and why; None: it could."""

_LONGEST = 300  # letters of the reason that an error gives
_SMALLER = "a smaller step size may help"


def is_spent(stop: Stop, counters: Counters) -> bool:
    """Whether a run has sent or taken as much as it may; at rank 0."""
    return (stop.wire_bits_up is not None and sum(counters.wire_up) >= stop.wire_bits_up) or (
        stop.seconds is not None and counters.seconds >= stop.seconds
    )


def verdict_at(stop: Stop, loss: float, f_star: float, distance: float, start_distance: float) -> Verdict:
    """The verdict on a point."""
    if not math.isfinite(loss):
        return Verdict.DIVERGED
    return Verdict.COMPLETE if stop.is_met(loss, loss - f_star, distance, start_distance) else Verdict.GO_ON


def not_finite_after(k: int) -> str:
    """The reason where the loss is not finite after k rounds."""
    return f"the loss is not finite after {k} rounds" + f": {_SMALLER}" * (k > 0)


def verdict_without_update(k: int, exchange: Exchange, refusals: Refusals, counters: Counters) -> tuple[Verdict, str]:
    """Why nobody could finish round k: precision was exhausted on the way to the optimum, or the run has diverged.

    A run whose loss has risen has diverged, whatever its precision. All ranks call it together.
    """
    errors = {who: error for who, error in refusals.items() if error is not None}
    exhausted = any(isinstance(error, PrecisionExhausted) for error in errors.values())
    first, last = counters.first_loss, counters.last_loss
    if exchange.consult("exhausted" if exhausted else "", lambda wishes: any(wishes) and last <= first):
        return Verdict.COMPLETE, f"round {k} asks for a precision finer than floats: there is nothing more to gain"

    def reason(given: list[str]) -> str:
        refusal = next(filter(None, given), "")
        if last > first:
            return f"{refusal}; the loss had risen from {first:.3g} to {last:.3g}: {_SMALLER}"
        return refusal or f": {_SMALLER}"

    given = next((f": {who}: {_text(error)}" for who, error in errors.items()), "")
    return Verdict.DIVERGED, f"the update of round {k} is not finite{exchange.consult(given, reason)}"


def _text(error: Exception) -> str:
    """An error's text in one line that is not too long, and that HDF5 can hold."""
    text = str(error.args[-1]) if error.args else ""
    return textwrap.shorten(text.replace("\0", " "), _LONGEST) or f"{type(error).__name__} without a text"
