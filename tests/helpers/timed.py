"""Jobs with [time]: workers that begin together and are waited for, all or the first; and workers that do not begin together."""

from pathlib import Path
from typing import Any

from fixtures.runs import of

import mpi_compress as mc
from mpi_compress.job.loading import parse_job

DATA = {"generator": "gspar", "samples": 90, "dim": 40, "seed": 1}
TOP, RANDOM = {"name": "top-k", "k": 3}, {"name": "random-k", "k": 4}
SQRT = {"law": "sqrt", "unit": "10 ms"}
RANDOM_TIMES = {"law": "lognormal", "unit": "10 ms", "sigma": 1.0}
COST = {"model": "trace", "of_workers": [[[0, "1 ms", "200 kbit/s"]], [[0, "4 ms", "50 kbit/s"], ["0.3 s", "1 ms", "1 Mbit/s"]]]}
THREE_IN_TURN = """
import numpy as np
import mpi_compress as mc

@mc.compressors.register("three-in-turn")
class ThreeInTurn(mc.Compressor):
    def start(self, dim):
        return {"next": 0}

    def compress(self, v, t, state):
        i = (state["next"] + np.arange(3)) % v.size
        state["next"] += 3
        return mc.Sparse(v.size, i, v[i])
"""
SOME: dict[str, dict[str, Any]] = {  # methods that some workers are enough for
    "gd": of("gd", RANDOM, step="0.1/L"),
    "sgd": of("sgd", batch=2, step=0.1),
    "local-sgd": of("local-sgd", batch=2, local_steps=3, step=0.1),
    "sparse-loco": of("sparse-loco", TOP, local_steps=3, batch=2, step=0.1),
    "cafe": of("cafe", TOP, batch=2, step=0.1),
    "ef": of("ef", TOP, batch=2, step=0.1),
    "ef, a compressor with a state": {**of("ef", "three-in-turn", step=0.1), "plugins": ["three_in_turn"]},
    "ef21": of("ef21", TOP, step=0.1, first="gradient"),
    "ef21-w": of("ef21-w", TOP, step=0.1),
    "ef21-norm": of("ef21-norm", TOP, step=0.1),
    "diana": of("diana", RANDOM, step=0.1),
    "marina-pp": of("marina-pp", RANDOM, step=0.1),
    "dasha-pp": of("dasha-pp", RANDOM, step=0.1),
    "fednl-pp": of("fednl-pp", hessian={"compressor": {"name": "random-k", "k": "20%"}}),
}

ARRIVALS = {
    "seed": 4, "plugins": ["three_in_turn"], "data": DATA, "objective": {"mu": "1e-2 L"}, "workers": {"count": 5}, "stop": {"rounds": 25}, "log": {"every": 2},
    "run": [
        {"label": label, **{key: table for key, table in tables.items() if key != "plugins"}}
        for label, tables in {
            "gd, first 3": {**SOME["gd"], "time": {"compute": SQRT, "wait": 3}},
            "ef21, first 3, links": {**SOME["ef21"], "time": {"compute": RANDOM_TIMES, "wait": 0.6}, "cost": COST},
            "diana, first 2, links": {**SOME["diana"], "time": {"compute": "1 us", "per": "nonzero", "wait": 2}, "cost": COST},
            "ef, links alone": {**SOME["ef, a compressor with a state"], "time": {"wait": 2}, "cost": COST},
            "ef21, all": {**SOME["ef21"], "time": {"compute": RANDOM_TIMES}},
            "kimad": {**of("kimad", "top-k", "fixed", deadline="0.1 s"), "time": {"compute": RANDOM_TIMES}, "cost": COST},
            "rows by time": {**SOME["gd"], "time": {"compute": SQRT, "wait": 3}, "log": {"every": "70 ms"}},
        }.items()
    ],
}  # fmt: skip

SGD = of("sgd", RANDOM, batch=2, step="0.1/L")
RULES = {
    "rennala": {"rule": "rennala", "wait": 7},
    "malenia": {"rule": "malenia"},
    "ringleader": {"rule": "ringleader"},
    "ringmaster": {"rule": "ringmaster", "stale": 2},
    "ringmaster 4": {"rule": "ringmaster", "stale": 2, "late": "ignore"},
    "fedbuff": {"rule": "fedbuff", "wait": 3},
    "delay-adaptive": {"rule": "delay-adaptive"},
    "not again": {"wait": 2, "stale": 1},
}
ALL_TAKEN = {"wait": 2, "again": True, "stale": float("inf")}
_QUEUED = {
    **{f"sgd, {name}": {**SGD, "time": {"compute": RANDOM_TIMES, **keys}} for name, keys in RULES.items()},
    **{f"sgd, {name}, links": {**SGD, "time": {"compute": SQRT, **keys}, "cost": COST} for name, keys in RULES.items()},
    "ef21": {**of("ef21", TOP, step="0.1/L"), "time": {"compute": RANDOM_TIMES, **ALL_TAKEN}},
    "ef21, links": {**of("ef21", TOP, step="0.1/L"), "time": {"compute": RANDOM_TIMES, **ALL_TAKEN}, "cost": COST},
    "diana, links alone": {**of("diana", RANDOM, step="0.1/L"), "time": {"wait": 1, "again": True, "stale": float("inf")}, "cost": COST},
    "ef, stopped before it has computed": {**of("ef", TOP, batch=2, step="0.1/L"), "time": {"compute": SQRT, "wait": 2, "stale": 1}},
    "local-sgd, a time a sample": {
        **of("local-sgd", batch=2, local_steps=3, step=0.1), "time": {"compute": "1 ms", "per": "sample", "rule": "fedbuff", "wait": 2}, "cost": COST,
    },
    "qafel": {
        **of("gd", RANDOM, step="0.1/L", down={"compressor": TOP, "by": "ef21-p"}),
        "time": {"compute": SQRT, "rule": "fedbuff", "wait": 3}, "cost": COST, "log": {"every": "70 ms"},
    },
}  # fmt: skip
QUEUE = {
    "seed": 4, "data": DATA, "objective": {"mu": "1e-2 L"}, "workers": {"count": 5}, "stop": {"rounds": 25}, "log": {"every": 2},
    "run": [{"label": label, **tables} for label, tables in _QUEUED.items()],
}  # fmt: skip


def played(folder: Path, tables: dict[str, Any], own: Path | None = None, **more: Any) -> mc.Run:
    """One run of these tables; its own parts are in the folder `own`."""
    job = {"data": DATA, "objective": {"mu": "1e-2 L"}, "workers": {"count": 5}, "stop": {"rounds": 20}, **tables, **more}
    return mc.run(parse_job(job, "test", own or folder, {}), out=folder, fresh=True)[0]
