"""Which method is fastest to a target on links of a model with a clock, and at which bandwidth that changes.

A method whose messages do not depend on the link sends the same on every link. On steady, equal links of bandwidth B it takes
fixed + bits/B seconds: what it computes and the latency of the messages that are waited for, and their bits.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mpi_compress.core.expressions import rate_text
from mpi_compress.evidence.endings import comes_nearer
from mpi_compress.evidence.lines import by_seed, name_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target, grows
from mpi_compress.results.tuning import without_value
from mpi_compress.results.units import arrivals, counted_by


@dataclass(frozen=True)
class TimeToTarget:
    """What a method took to a target; over seeds the median."""

    label: str
    seconds: float  # on the links of its run, over seeds the median; infinite where it does not reach the target
    fixed: float  # seconds of computing and latency
    bits: float  # the messages that were waited for
    follows_link: bool  # True if its messages depend on the link
    cut_off: float = np.inf  # the seconds at which it ended before the target, on no plateau
    each: Sequence[float] = ()  # the seconds of each seed

    def on(self, bandwidth: float) -> float:
        """Seconds on steady, equal links, with the latency of its run [bit/s]."""
        return self.fixed + self.bits / bandwidth


def crossing(one: TimeToTarget, other: TimeToTarget) -> float | None:
    """The bandwidth at which two methods take the same time, in bits a second; None: the same one is faster at every bandwidth."""
    bits, fixed = one.bits - other.bits, other.fixed - one.fixed
    return bits / fixed if bits * fixed > 0 else None


def statements(runs: Sequence[Run], target: Target) -> Iterator[str]:
    """Say for runs on the same links which one is fastest to a target, and at which bandwidths another one would be. To spend a
    budget first is no merit."""
    on_links: dict[str, list[Run]] = {}
    for run in runs:
        if "links" in run.attrs and run.has(target.column) and not grows(target.column):
            on_links.setdefault(json.dumps([run.written.get(key) for key in ("cost", "time")], sort_keys=True), []).append(run)
    for group in on_links.values():
        needs = sorted((_need(each, target) for each in by_seed(group)), key=lambda need: need.seconds)
        reached = [need for need in needs if need.seconds < np.inf]
        if len(needs) < 2 or not reached:
            continue
        best = reached[0]
        on = ", ".join(filter(None, [counted_by("model_seconds", group[0]), arrivals(group[0]), "by the model"]))
        of_these = " of those that reach it" * any(need.cut_off < best.seconds for need in needs)
        median = " in the median" * (len(best.each) > 1)
        missed = without_value([each[0].tuned for each in by_seed(group)])
        yield f"{on}: {best.label} is fastest{of_these} to {target}, in {best.seconds:.4g} s{median}{missed}"
        are_alike = {"up", "down"}.isdisjoint(group[0].written.get("cost", ()))  # else one bandwidth says nothing of both
        steady = [need for need in reached if are_alike and not need.follows_link]
        for need in needs[1:]:
            overlap = "; their ranges overlap" * (min(need.each) < max(best.each) < np.inf)
            yield f"  {_compared(need, steady[0] if steady else None)}{overlap}"


def _compared(need: TimeToTarget, first: TimeToTarget | None) -> str:
    """What a method took, and where it is faster than the fastest of those whose messages do not depend on the link."""
    if need.seconds == np.inf:
        return f"{need.label} {'does not reach it' if need.cut_off == np.inf else f'was cut off at {need.cut_off:.4g} s'}"
    took = f"{need.label} takes {need.seconds:.4g} s"
    if need.follows_link:
        return f"{took}; its messages follow the link"
    if first is None or need is first or need.on(1.0) == first.on(1.0):
        return took
    where = crossing(first, need)
    if where is None:
        return f"{took}; {(need if need.on(1.0) < first.on(1.0) else first).label} is faster at every bandwidth"
    return f"{took}; it wins {'below' if need.bits < first.bits else 'above'} {rate_text(where)}, against {first.label}"


def _need(runs: Sequence[Run], target: Target) -> TimeToTarget:
    each, *others = [[target.took(run, name) for run in runs] for name in ("model_seconds", "model_fixed", "model_bits")]
    seconds, fixed, bits = map(float, np.median([each, *others], axis=1))
    missed = [run for run in runs if run.status == "complete" and target.row_of(run) is None] if seconds == np.inf else []
    is_cut = bool(missed) and comes_nearer(missed, target) is not False
    cut_off = float(np.median([run.column("model_seconds")[-1] for run in missed])) if is_cut else np.inf
    there = sum(target.row_of(run) is not None for run in runs)
    label = name_of(runs[0]) + f" ({there} of {len(runs)} seeds)" * (0 < there < len(runs))
    return TimeToTarget(label, seconds, fixed, bits, bool(runs[0].attrs["follows_link"]), cut_off, each)
