"""A result in one line, and as a table of HTML for notebooks."""

from collections.abc import Iterator, Sequence

from mpi_compress.core import tables
from mpi_compress.results.columns import LEVELS, Result

_SHOWN = ("loss", "suboptimality", "grad_norm", "wire_bits_up", "wire_bits_down", "cost_up")


def line(run: Result) -> str:
    """Its label, status, last record and file, in one line."""
    numbers = ", ".join(f"{name} {value}" for name, value in _last(run) if name in ("round", "loss")) or "no records"
    return f"Run({run.label!r}, {run.attrs['status']}, {numbers}, {run.file})"


def why_ended(run: Result) -> str:
    """Why a run ended, in a few words: the reason in its file, or which value of [stop] it reached; "" if that does not say."""
    if reason := str(run.attrs.get("reason", "")):
        return reason
    if run.attrs.get("status") != "complete" or not run.rows:
        return ""
    stop = run.written.get("stop", {})
    last = {name: float(values[-1]) for name, values in run.trace.items()}
    last["relative_distance"] = last.get("distance", 1.0) / (float(run.trace["distance"][0]) or 1.0) if "distance" in last else 1.0
    last["squared_grad_norm"] = last["grad_norm"] * last["grad_norm"] if "grad_norm" in last else 1.0
    for name in LEVELS:
        if name in stop and last.get(name, 1.0) <= stop[name]:
            return f"{name} ≤ {stop[name]:g}"
    if stop.get("rounds") == last["round"]:
        return f"{last['round']:,.0f} rounds"
    for name in ("wire_bits_up", "cost_up"):
        if name in stop and last[name] >= stop[name]:
            return f"{name} ≥ {stop[name]:g}"
    return f"{stop['seconds']:g} s" if isinstance(stop.get("seconds"), int | float) else str(stop.get("seconds", ""))


def html(run: Result) -> str:
    """A table of its setting and its last record."""
    reason, file = run.attrs.get("reason", ""), {"file": run.file}
    shown = {"status": f"{run.attrs['status']}{f': {reason}' if reason else ''}", "data": run.attrs.get("data", "")}
    shown |= {"workers, d": f"{run.attrs['n_workers']}, {run.attrs['dim']}"} if "dim" in run.attrs else {}
    shown |= {f"{name}, last of {run.rows} records" if name == "round" else name: value for name, value in _last(run)}
    return tables.html((), [[name, str(value)] for name, value in (shown | file).items()], run.label)


def html_of_many(runs: Sequence[Result]) -> str:
    """A table with a row for each result."""
    rows = []
    for run in runs:
        last = dict(_last(run))
        numbers = [last.get(name, "–") for name in ("round", *_SHOWN, "seconds")]
        rows.append([run.label, str(run.attrs["status"]), *numbers, str(run.file)])
    return tables.html(("label", "status", "round", *_SHOWN, "seconds", "file"), rows)


def _last(run: Result) -> Iterator[tuple[str, str]]:
    if run.rows:
        for name in ("round", *_SHOWN):
            if name in run.trace:
                yield name, f"{run.trace[name][-1]:,d}" if run.trace[name].dtype.kind == "i" else f"{run.trace[name][-1]:.6g}"
        yield "seconds", f"{run.timing['seconds'][-1]:.3g}"
