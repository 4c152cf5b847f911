"""Results whose losses are given."""

import numpy as np

import mpi_compress as mc
from mpi_compress.results.writer import Recorder, Row

JOB = '[algorithm]\nname = "gd"\nstep = {step}\n[stop]\nrounds = 3\n{more}'


def written(folder, label, losses, seed=0, status="complete", step=1.0, reason="", gap=True, more=""):
    """A result of these losses, whose row k took 1000 k bits up and 2 k seconds."""
    run_id = f"{label}{seed}{step}"
    recorder = Recorder(folder / f"{label}-{run_id}.h5", {"label": label, "run_id": run_id, "job": f"seed = {seed}\n" + JOB.format(step=step, more=more), "data": "a"})  # fmt: skip
    for k, loss in enumerate(losses):
        trace = {"round": k, "loss": loss, "suboptimality": loss - 0.1 if gap else np.nan, "grad_norm": loss, "cost_up": 3.0 * k}
        trace |= {"wire_bits_up": 1000 * k, "wire_bits_down": 10 * k}
        recorder.append(Row(trace, {"wire_bits_up": [1000 * k]}, {"seconds": 2.0 * k}))
    return mc.read(recorder.finish(status, reason, np.zeros(1), {}))
