"""The wall time of a run is divided among what was done."""

import json
import time

import mpi_compress as mc
from mpi_compress.core.clock import Laps


def test_laps_of_one_name_add_up_and_are_told_once():
    laps = Laps(time.monotonic() - 100.0)
    laps.end("start")
    laps.end("rounds")
    laps.since -= 10.0
    laps.end("rounds")
    taken = laps.taken()
    assert [*taken] == ["start", "rounds"]
    assert 100.0 <= taken["start"] < 110.0
    assert 10.0 <= taken["rounds"] < 20.0
    assert laps.taken() == {}


def test_a_result_says_where_all_its_wall_time_went(tmp_path):
    job = {
        "data": {"generator": "gspar", "samples": 20, "dim": 4},
        "stop": {"rounds": 2},
        "run": [{"label": label, "algorithm": {"name": "gd", "step": 0.1 * step}} for step, label in enumerate("ab", 1)],
    }
    begun = time.monotonic()
    first, second = (json.loads(run.attrs["wall"]) for run in mc.run(job, out=tmp_path))
    took = time.monotonic() - begun
    assert [*first] == ["start", "prepare", "read", "file", "rehearse", "rounds"]
    assert [*second] == ["read", "file", "rehearse", "rounds"]
    assert 0.0 < sum(first.values()) + sum(second.values()) < took
