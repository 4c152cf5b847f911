"""The attributes of a result: where it comes from."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from mpi_compress.engine.preparing import Prepared
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks


def attributes_of(p: Prepared, exchange: Exchange, ranks: Ranks) -> Mapping[str, Any]:
    """Attributes from the job, the problem and the machine; `reason` is written when the run ends."""
    packages = ("mpi-compress", "numpy", "scipy", "numba", "h5py", "mpi4py")
    return {
        "job": p.spec.toml(),
        "label": p.spec.label,
        "run_id": p.run_id,
        "reason": "",
        "data": p.spec.data.shown,
        "n_workers": exchange.n,
        "n_ranks": ranks.size,
        "n_samples": p.problem.data.n_samples,
        "dim": p.problem.data.dim,
        "L": p.problem.L,
        **({} if p.problem.L_max is None else {"L_max": p.problem.L_max}),
        "mu": p.problem.mu,
        "f_star": p.problem.f_star,
        "f_star_accuracy": p.problem.f_star_accuracy,
        "settled": json.dumps({k: v for k in p.algorithm.formulas() if isinstance(v := getattr(p.algorithm, k), float)}),
        "versions": json.dumps({"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}),
        "mpi_library": ranks.library,
        "host": f"{platform.node()} ({platform.machine()}, {os.cpu_count()} cores)",
        "commit": _commit(),
    }


def _commit() -> str:
    """The commit of this package's own checkout; "" where it is installed from elsewhere."""
    here = Path(__file__).parent
    try:
        out = subprocess.run(
            ["git", "-C", here, "describe", "--always", "--dirty"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return out.stdout.strip() if (here.parent / ".git").exists() else ""
