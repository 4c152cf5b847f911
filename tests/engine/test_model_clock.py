"""The clock of changing links: rounds that are added up by hand, and what a result, a table and a figure say of them."""

import numpy as np
import pytest
from fixtures.runs import COMPUTING, LINKS
from helpers.plays import play, problem

import mpi_compress as mc
from mpi_compress.evidence.method_status import endings
from mpi_compress.messages.costs import costs

CHANGING = {"name": "trace", **LINKS}
JOB = {
    "data": {"generator": "gspar", "samples": 41, "dim": 12},
    "objective": {"mu": 0.1},
    "workers": {"count": 3},
    "cost": {"model": "trace", **LINKS},
    "stop": {"rounds": 20},
}


def test_rounds_are_added_up_as_by_hand():
    """The slowest worker's gradient and message up, and then the slowest message down."""
    p, cost = problem(count=3, samples=41), costs.build(CHANGING, "cost")
    trace = play(p, {"name": "gd"}, {"name": "random-k", "k": 3}, 25, cost=CHANGING, time=COMPUTING).trace
    up, down = np.diff(trace["wire_bits_up"]) // 3, np.diff(trace["wire_bits_down"]) // 3  # equal messages
    now, fixed, bits = 0.0, 0.0, 0
    for k in range(25):
        computed = [2e-6 * len(f.rows) * 30 for f in p.fs]  # all 30 coordinates of each row
        ends = [cost.clock.arrival(up[k], now + computed[i], i) for i in range(3)]
        slowest = max(range(3), key=lambda i: ends[i][0])
        heard = [cost.clock.arrival(down[k], ends[slowest][0], i) for i in range(3)]
        last = max(range(3), key=lambda i: heard[i][0])
        now, fixed, bits = heard[last][0], fixed + computed[slowest] + ends[slowest][1] + heard[last][1], bits + up[k] + down[k]
        assert [trace[name][k + 1] for name in ("model_seconds", "model_fixed", "model_bits")] == pytest.approx([now, fixed, bits])
    assert trace["cost_up"][1] == pytest.approx(sum(cost.clock.at(0.0, i).cost(up[0]) for i in range(3)))
    assert trace["cost_down"][1] == pytest.approx(sum(cost.clock.at(0.0, i).cost(down[0]) for i in range(3)))


def test_minibatches_and_local_steps_compute_what_they_ask_for():
    p = problem(count=2, samples=40)
    fixed = {"name": "trace", "rows": [[0, 0, "1 Gbit/s"]]}
    time = {"compute": "1 ms", "per": "nonzero"}
    batches = play(p, {"name": "sgd", "batch": 3, "step": 0.1}, {"name": "identity"}, 4, cost=fixed, time=time).trace["model_fixed"]
    local = play(p, {"name": "local-sgd", "local_steps": 5, "batch": 3, "step": 0.1}, {"name": "identity"}, 4, cost=fixed, time=time).trace["model_fixed"]
    assert batches == pytest.approx(0.09 * np.arange(5))
    assert local == pytest.approx(5 * batches)


def test_a_run_without_a_trace_has_no_clock():
    trace = play(problem(), {"name": "gd"}, {"name": "identity"}, 2).trace
    assert not [name for name in trace if name.startswith("model")]


def test_methods_of_shared_memory_are_refused(tmp_path):
    job = {**JOB, "algorithm": {"name": "async-sgd", "step": "0.1/L"}, "up": {"compressor": {"name": "gspar", "kappa": 0.3}}}
    with pytest.raises(mc.UserError, match=r"cost.model = trace: async-sgd .*memory"):
        mc.run(job, out=tmp_path)


def test_a_summary_has_the_clock_s_seconds_beside_those_that_were_measured(tmp_path):
    run = mc.run({**JOB, "algorithm": {"name": "gd"}}, out=tmp_path, quiet=True)[0]
    heads, (cells,), _ = endings([run])
    row = dict(zip(heads, cells, strict=True))
    assert row["time, modelled"] == f"{run.trace['model_seconds'][-1]:.3g} s"
    assert row["time here"] == f"{run.timing['seconds'][-1]:.3g} s"
    plain = mc.run({**JOB, "cost": {"model": "payload"}, "algorithm": {"name": "gd"}}, out=tmp_path, quiet=True)[0]
    heads, _, _ = endings([plain])
    assert [head for head in heads if "time" in head] == ["time"]
