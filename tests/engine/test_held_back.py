"""The protocol of [tune] on sets that no page shows: its winners beside those of whole runs at every step of the grid."""

import math
import os

import pytest

import mpi_compress as mc
from mpi_compress.job.loading import parse_job

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("MPI_COMPRESS_DATA" not in os.environ, reason="needs the real data sets"),
]
TARGET = {"squared_grad_norm": 1e-4}
METHODS = {
    "EF21": {"algorithm": {"name": "ef21"}},
    "EF": {"algorithm": {"name": "ef"}},
    "GD": {"algorithm": {"name": "gd"}, "up": {"codec": {"name": "dense", "float": 32}}},
}
STEPS = [f"{2**j} theory" if j > 0 else "theory" for j in range(12)]


def played(folder, name, **tables):
    common = {
        "data": {"name": name},
        "objective": {"loss": "logistic", "penalty": {"name": "ratio", "weight": 0.1}, "f_star": "skip"},
        "workers": {"count": 10},
        "start": {"at": "random"},
        "up": {"compressor": {"name": "top-k", "k": 1}, "codec": {"name": "auto", "search": "quick", "float": 32}},
        "stop": {"rounds": 800},
        "log": {"every": 5},
    }
    return {run.label: run for run in mc.run(parse_job({**common, **tables}, "held-back", folder, {}), out=folder)}


def bits(run):
    """Bits up to the target; infinite where it is missed, or the run ends above the loss that it starts with."""
    row = run.to("squared_grad_norm", 1e-4)
    risen = run.status != "complete" or run.trace["loss"][-1] > run.trace["loss"][0]
    return math.inf if row is None or risen else float(row["wire_bits_up"])


@pytest.mark.parametrize("name", ["splice", "german.numer_scale"])
def test_the_winner_is_that_of_twelve_whole_runs_within_a_fifth_of_its_bits(tmp_path, name):
    tune = {"parameter": "algorithm.step", "values": "2^0..2^11 theory", "to": TARGET}
    tuned = played(tmp_path, name, run=[{"label": label, **tables, "tune": tune} for label, tables in METHODS.items()])
    grid = {"algorithm.step": STEPS}
    whole = played(tmp_path, name, run=[{"label": label, **tables, "grid": grid} for label, tables in METHODS.items()])
    exhaustive = {label: min(bits(run) for known, run in whole.items() if known.startswith(f"{label}, ")) for label in METHODS}
    found = {label: bits(run) for label, run in tuned.items()}
    print(name, found, exhaustive)
    assert min(found, key=found.__getitem__) == min(exhaustive, key=exhaustive.__getitem__)
    for label in METHODS:
        assert found[label] <= 1.2 * exhaustive[label]
