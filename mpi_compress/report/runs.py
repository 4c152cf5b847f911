"""The rows of a job's tables: how each run ended, where its time went, and its bits."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from mpi_compress.core.progress import bits_text
from mpi_compress.evidence.lines import name_of
from mpi_compress.results.reader import Run
from mpi_compress.results.summary import why_ended
from mpi_compress.results.units import unit_of

WORK = ("compute", "pack", "exchange", "update")
"""What a run's seconds are spent on."""


def row(r: Run) -> dict[str, Any]:
    """A run as the page's tables show it."""
    last = {name: values[-1] for name, values in r.trace.items() if len(values)}
    seconds = {name: float(values[-1]) for name, values in r.timing.items()}
    total = max(seconds["seconds"], 1e-12)
    shares = {name: seconds[name] / total for name in WORK}
    rounds = max(int(last["round"]), 1)
    each = rounds * r.attrs["n_workers"]
    more = {name: f"{last[name]:.4g}" for name in ("error_norm", "distance", "test_accuracy") if name in last}
    cost = unit_of("cost_up", [r])
    return {
        "label": name_of(r), "seed": r.written.get("seed", 0), "status": r.status,
        "reason": why_ended(r), "round": f"{last['round']:,}", "loss": f"{last['loss']:.7g}",
        "suboptimality": f"{last['suboptimality']:.4g}", "grad_norm": f"{last['grad_norm']:.4g}", "more": more,
        "seconds": f"{total:.3g}", "shares": {n: f"{100 * s:.0f}" for n, s in shares.items()},
        "widths": {n: f"{100 * min(s, 1):.2f}" for n, s in shares.items()}, "each_ms": f"{1e3 * total / rounds:.3g}",
        "cost": bits_text(float(last["cost_up"])) if cost == "bit" else f"{last['cost_up']:.4g} {cost}".strip(),
        "evaluate": f"{seconds['evaluate']:.3g}", "ways": [_way(last, way) for way in ("up", "down")],
        "elements": f"{last['elements_up'] / each:.4g}" if "elements_up" in last else "–",
    }  # fmt: skip


def _way(last: Mapping[str, Any], way: str) -> dict[str, str]:
    wire, paper = float(last[f"wire_bits_{way}"]), float(last[f"paper_bits_{way}"])
    ratio = f"{wire / paper:.3g}" if paper > 0 and np.isfinite(paper) else "–"
    return {"wire": bits_text(wire), "paper": bits_text(paper), "ratio": ratio}


def made(r: Run) -> str:
    """What a run was made by: versions, ranks, host and commit."""
    versions = ", ".join(f"{k} {v}" for k, v in json.loads(r.attrs["versions"]).items())
    ranks = f"{r.attrs['n_ranks']} ranks, {r.attrs['mpi_library']}" if r.attrs["n_ranks"] > 1 else "one process"
    return f"{versions}; {ranks}; on {r.attrs['host']}" + (f", commit {r.attrs['commit']}" if r.attrs.get("commit") else "")
