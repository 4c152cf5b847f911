"""[time] with workers that do not begin together: the same eagerly and lazily; and where it is refused. That runs are the
same on any ranks, stopped or not, is in test_layouts.py."""

import json

import numpy as np
import pytest
from fixtures.runs import of
from helpers.refusals import naming
from helpers.timed import ALL_TAKEN, COST, RANDOM, RULES, SGD, SQRT, TOP, played

from mpi_compress.core.errors import UserError


@pytest.mark.parametrize("name", [*RULES, "ef21", "ef"])
def test_messages_that_are_computed_as_tasks_begin_are_those_that_are_computed_as_they_arrive(name, tmp_path):
    """All shards are equal, so the time of a sample orders workers as that of a gradient does."""
    times = "worker,second\n" + "".join(f"{i},{1 + (7 * i + 3 * j) % 11}\n" for i in range(5) for j in range(4))
    (tmp_path / "times.csv").write_text(times)
    method = {"ef21": of("ef21", TOP, step="0.1/L"), "ef": of("ef", TOP, batch=2, step="0.1/L")}.get(name, SGD)
    rule = {"ef": {"wait": 2, "stale": 1}, "ef21": ALL_TAKEN}.get(name) or RULES[name]
    eager, lazy = (played(tmp_path / per, method, time={"compute": str(tmp_path / "times.csv"), "per": per, **rule}) for per in ("sample", "gradient"))
    assert eager.x.tobytes() == lazy.x.tobytes()
    for column in ("epoch", "wire_bits_up", "wire_bits_down", "arrivals", "stopped", "ignored", "staleness"):
        assert np.array_equal(eager.trace[column], lazy.trace[column])
    assert lazy.trace["epoch"][-1] == pytest.approx(lazy.trace["gradients"][-1] * (18 if name == "ef21" else 2) / 90)


def test_with_equal_speeds_the_rules_are_what_their_papers_reduce_to(tmp_path):
    """Rennala with B = n is a round of all; ASGD is n steps a round at points that are n − 1 steps old; with R = 1 it is gradient
    descent in turns of which one is used."""
    gd = of("gd", step="0.2/L")
    together = played(tmp_path / "all", gd, time={"compute": "10 ms"})
    rennala = played(tmp_path / "rennala", gd, time={"compute": "10 ms", "rule": "rennala", "wait": 5})
    assert together.x.tobytes() == rennala.x.tobytes()
    assert np.array_equal(together.trace["model_seconds"], rennala.trace["model_seconds"])
    asgd = played(tmp_path / "asgd", gd, time={"compute": "10 ms", "rule": "asgd"})
    assert asgd.trace["model_seconds"] == pytest.approx([0, *np.repeat(0.01 * np.arange(1, 5), 5)])
    assert asgd.trace["staleness_max"].tolist() == [0, 0, 1, 2, 3, *[4] * 16]
    first, alone = (played(tmp_path / name, gd, time={"compute": "10 ms", **keys}) for name, keys in {
        "ringmaster": {"rule": "ringmaster", "stale": 0}, "first": {"wait": 1},
    }.items())  # fmt: skip
    assert first.x.tobytes() == alone.x.tobytes()


@pytest.mark.slow
def test_who_arrives_more_often_decides_where_x_goes_and_rescaled_steps_undo_it(tmp_path):
    """Of asynchronous gradient descent with a short step the limit is the minimiser of Σ f_i/τ_i, and of Rescaled ASGD that of Σ f_i.
    Ringleader is there with any step, as its table has the mean of all ∇f_i at points that come to be one."""
    tables = {**of("gd", step="0.005/L"), "objective": {"mu": "0.1 L"}, "stop": {"rounds": 30000}, "log": {"every": 30000}}
    law = {"law": "linear", "unit": "10 ms"}
    plain, rescaled = (played(tmp_path / rule, tables, time={"compute": law, "rule": rule}) for rule in ("asgd", "rescaled"))
    apart = plain.trace["grad_norm"][-1], rescaled.trace["grad_norm"][-1]
    assert apart[1] < 0.05 * apart[0]
    law["noise"], quick = "half-normal", {**of("gd", step="0.1/L"), "stop": {"rounds": 3000}, "log": {"every": 300}}
    ringleader = played(tmp_path / "ringleader", {**tables, **quick}, time={"compute": law, "rule": "ringleader"})
    assert ringleader.trace["grad_norm"][-1] < 1e-9 * ringleader.trace["grad_norm"][0]
    assert 5 <= ringleader.trace["staleness_max"][-1] <= 2 * 5 - 2
    shares = plain.workers["arrivals"][-1] / 30000
    assert shares == pytest.approx(1 / np.arange(1, 6) / np.sum(1 / np.arange(1, 6)), abs=1e-3)


@pytest.mark.parametrize(("keys", "r", "R"), [
    ({"rule": "ringmaster", "stale": 4}, 1, 4), ({"rule": "rennala", "wait": 8}, 8, 7), ({"wait": 2, "again": True, "stale": 2}, 2, 5),
    ({"rule": "ringmaster", "stale": 0}, 1, 1),
])  # fmt: skip
def test_the_step_theory_is_birch_sgd_s_where_its_theorem_holds(keys, r, R, tmp_path):
    σ, ε = 0.2, 0.01
    time = {"time": {"compute": SQRT, **keys}, "workers": {"count": 5, "partition": "everyone"}}
    noisy = {"objective": {"mu": "1e-2 L", "noise": σ}, "stop": {"rounds": 3, "squared_grad_norm": ε}}
    gd = of("gd", step="theory")
    exact, run = played(tmp_path / "exact", {**gd, **time}), played(tmp_path / "noisy", {**gd, **time, **noisy}, log={"theory": True})
    L = run.attrs["L"]
    assert json.loads(exact.attrs["settled"])["step"] == pytest.approx(r / (2 * R * L))
    assert json.loads(run.attrs["settled"])["step"] == pytest.approx(r * min(1 / (2 * R * L), ε / (4 * σ**2 * L)))
    assert "mean of all workers" in run.attrs["lyapunov_unknown"]
    for more in ({"stop": {"rounds": 3}}, {"workers": {"count": 5}}, {"up": {"compressor": RANDOM}}, of("gd", step="theory", batch=2)):
        with pytest.raises(UserError, match=naming("algorithm.step theory Birch SGD everyone stale squared_grad_norm")):
            played(tmp_path, {**gd, **time, **noisy, **more})


@pytest.mark.parametrize(("time", "more", "words"), [
    ({"rule": "ringmeister"}, {}, "time.rule ringmeister ringmaster"),
    ({"rule": "rennala"}, {}, "time rennala needs wait its B"),
    ({"rule": "fedbuff"}, {}, "time fedbuff needs wait its K"),
    ({"rule": "ringmaster"}, {}, "time ringmaster needs stale its R - 1"),
    ({"rule": "asgd", "compute": {"law": "sqrt", "unit": 1, "offset": 0}}, {}, "time.compute.offset 0 more than 0"),
    ({"rule": "asgd", "wait": 2}, {}, "time asgd sets wait = 1 leave wait out"),
    ({"rule": "ringleader", "wait": 2}, {}, "time ringleader sets wait = 'each' leave wait out"),
    ({"rule": "malenia", "wait": 0}, {}, "time wait = 0"),
    ({"rule": "ringleader"}, of("ef21", TOP, step=0.1), "time.rule ringleader gradients ef21 sgd"),
    ({"rule": "ringleader"}, of("ef", TOP, batch=2, step=0.1), "time.rule ringleader gradients ef sgd"),
    ({"rule": "ringleader"}, of("local-sgd", batch=2, local_steps=3, step=0.1), "time.rule ringleader gradients local-sgd sgd"),
    ({"rule": "rennala", "wait": 3, "again": False}, {}, "time rennala sets again = True"),
    ({"rule": "m-synchronous", "wait": 6}, {}, "time wait = 6 5 workers"),
    ({"rule": "rennala", "wait": 0}, {}, "time wait = 0"),
    ({"wait": 2, "stale": -1}, {}, "time stale = -1 whole number from 0 on inf"),
    ({"wait": 2, "stale": 1.5}, {}, "time stale = 1.5"),
    ({"wait": 2, "late": "drop"}, {}, "time.late drop ignore"),
    ({"again": True}, {}, "time again needs wait"),
    ({"wait": "each"}, {}, "time wait each again"),
    ({"wait": 2, "weight": "1/delta"}, {}, "time 1/delta divides by zero"),
    ({"wait": 2, "stale": 1, "weight": "1 - delta"}, {}, "time weight 1 - delta more than 0 delta = 1"),
    ({"wait": 2, "weight": "-1"}, {}, "time weight = '-1' more than 0"),
    ({"wait": 2, "weight": "R"}, {}, "time weight names R delta tau n"),
    ({"rule": "asgd"}, {"workers": {"count": 5, "exchange": "allgather"}}, "time.wait = 1 allgather"),
    ({"rule": "asgd"}, {"workers": {"count": 5, "participate": 2}}, "time.wait workers.participate"),
    ({"rule": "asgd"}, of("gd"), "time.wait = 1 no theorem gd algorithm.step a number"),
    ({"rule": "asgd"}, of("nesterov", step=0.1), "time.wait = 1 nesterov needs all workers"),
    ({"rule": "asgd"}, of("marina-pp", RANDOM, step=0.1), "time marina-pp coins"),
    ({"rule": "asgd"}, of("ef21", TOP, step=0.1, first="gradient"), "time ef21 take turns"),
    ({"rule": "asgd"}, of("fednl-pp", hessian={"compressor": {"name": "random-k", "k": "20%"}}), "time fednl-pp"),
    ({"rule": "asgd"}, of("gd", step=0.1, down={"by": "marina-p"}), "time gd"),
    ({"rule": "asgd"}, of("cafe", TOP, step=0.1), "time.stale cafe differences stale = 0"),
    ({"rule": "rennala", "wait": 6}, of("ef21", TOP, step=0.1), "time.wait = 6 ef21 remember wait for 5"),
    ({"rule": "rescaled"}, of("ef21", TOP, step=0.1), "time.weight = tau ef21 remember"),
    ({"rule": "ringmaster", "stale": 2, "late": "ignore"}, of("diana", RANDOM, step=0.1), "time.stale = 2 diana remember stale = inf"),
    ({"rule": "ringmaster", "stale": 2}, {**of("ef", TOP, step=0.1), "cost": COST}, "time.stale = 2 ef remember stale = inf"),
])  # fmt: skip
def test_what_is_wrong_gets_one_line(time, more, words, tmp_path):
    with pytest.raises(UserError, match=naming(words)):
        played(tmp_path, {**SGD, **more}, time={"compute": "1 ms", **time})
