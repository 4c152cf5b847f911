"""[time]: who is waited for and what it takes; what the others did is undone; and where it is refused. That runs are the same on
any ranks is in test_layouts.py."""

import json

import numpy as np
import pytest
from fixtures.runs import of
from helpers.refusals import naming
from helpers.running import run_of
from helpers.timed import COST, RANDOM_TIMES, SOME, SQRT, THREE_IN_TURN, TOP, played

from mpi_compress.algorithms import algorithms
from mpi_compress.cli.main import main
from mpi_compress.core.errors import UserError
from mpi_compress.evidence.method_status import endings
from mpi_compress.results.summary import never_taken


@pytest.fixture(autouse=True, scope="module")
def own_part(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "three_in_turn.py").write_text(THREE_IN_TURN)
    return folder


def test_every_method_that_some_workers_are_enough_for_is_here():
    assert {tables["algorithm"]["name"] for tables in SOME.values()} == {name for name in algorithms if algorithms[name].partial_mean}


@pytest.mark.parametrize("name", SOME)
def test_who_has_computed_in_vain_remembers_nothing_of_it(name, own_part, tmp_path):
    """All shards are equal, so the time of a sample orders workers as that of a gradient does. In the first case all workers compute
    before it is known whose messages are taken, and in the second those workers alone."""
    each = "worker,second\n" + "".join(f"{i},{1 + (7 * i + 3 * j) % 11}\n" for i in range(5) for j in range(4))
    (tmp_path / "times.csv").write_text(each)
    eager, lazy = (
        played(tmp_path / per, SOME[name], own_part, time={"compute": str(tmp_path / "times.csv"), "per": per, "wait": 2})
        for per in ("sample", "gradient")
    )
    assert eager.x.tobytes() == lazy.x.tobytes()
    assert np.array_equal(eager.workers["wire_bits_up"], lazy.workers["wire_bits_up"])
    assert np.array_equal(eager.trace["epoch"], lazy.trace["epoch"])
    assert len({tuple(row > 32) for row in np.diff(lazy.workers["wire_bits_up"], axis=0)}) > 1


def test_wait_all_is_a_run_without_time_but_for_its_clock(tmp_path):
    for name in ("ef21", "diana", "sgd"):
        plain, timed = played(tmp_path / "plain", SOME[name]), played(tmp_path / "timed", SOME[name], time={"compute": RANDOM_TIMES, "wait": "all"})
        assert plain.x.tobytes() == timed.x.tobytes()
        assert all(np.array_equal(plain.trace[c], timed.trace[c]) for c in plain.trace)
        assert timed.trace.keys() - plain.trace.keys() == {
            "model_seconds", "model_fixed", "model_bits", "arrivals", "gradients", "stopped", "busy",
        }  # fmt: skip


def test_a_round_waits_for_no_worker_that_does_not_take_part(tmp_path):
    fast, slow = [[0, "1 ms", "1 Mbit/s"]], [[0, "10 s", "1 Mbit/s"]]
    run = played(tmp_path, of("gd", step="0.1/L"), workers={"count": 4, "participate": 1}, cost={"model": "trace", "of_workers": [fast, fast, fast, slow]})
    took, speaks = np.diff(run.trace["model_seconds"]), np.diff(run.workers["wire_bits_up"], axis=0) > 32
    bits = 8 * (4 + 8 * 40) + 8 * (4 + 8 * 40 + 1)  # up, and down with a byte that says its form
    assert took[~speaks[:, 3]] == pytest.approx(2e-3 + bits / 1e6, abs=3e-9)
    assert took[speaks[:, 3]] == pytest.approx(20 + bits / 1e6, abs=3e-9)
    assert 0 < speaks[:, 3].sum() < 20


def test_workers_that_are_never_taken_are_named_with_what_the_loss_counts(tmp_path, capsys):
    """Five workers, in √i s each: the first three arrive before the others, in every round. Where all have all data, nothing is missed."""
    says = "after its first rounds the master never took workers 3, 4, and the loss counts their rows, which no later update saw"
    run = played(tmp_path / "wait", SOME["ef21"], time={"compute": SQRT, "wait": 3})
    assert main(["show", str(run.file)]) == 0
    said = capsys.readouterr().out
    assert f"({run.ended_by}); {says}\n" in said
    sent = run.trace["elements_up"][-1] / run.trace["arrivals"][-1]
    assert f"sent      {sent:.4g} coordinates a message that arrived\n" in said
    assert says in endings([run])[2][0]
    assert never_taken([run, played(tmp_path / "random", SOME["ef21"], time={"compute": RANDOM_TIMES, "wait": 3})]) == ""
    assert never_taken([played(tmp_path / "all", SOME["ef21"], time={"compute": SQRT})]) == never_taken([]) == ""
    assert never_taken([played(tmp_path / "plain", SOME["ef21"])]) == ""
    alike = {"count": 5, "partition": "everyone"}
    assert never_taken([played(tmp_path / "alike", SOME["ef21"], time={"compute": SQRT, "wait": 3}, workers=alike)]) == ""


def test_rows_and_ends_by_the_clock(tmp_path):
    tables = {**SOME["gd"], "time": {"compute": SQRT, "wait": 2}, "stop": {"model_seconds": "1 s"}}
    every, some = played(tmp_path / "every", tables), played(tmp_path / "some", tables, log={"every": "100 ms"})
    seconds = every.trace["model_seconds"]
    assert seconds[-2] < 1 <= seconds[-1]
    passed = np.flatnonzero(np.diff(np.floor(np.round(1e9 * seconds) / 1e8), prepend=-1))
    assert some.trace["round"].tolist() == sorted({*passed.tolist(), len(seconds) - 1})
    assert every.trace["busy"][-1] == pytest.approx((1 + np.sqrt(2)) / (5 * np.sqrt(2)), rel=1e-6)


def test_measured_times_come_in_turn_and_a_calibrated_one_is_that_of_a_nonzero(tmp_path):
    (tmp_path / "times.csv").write_text("worker, second\n0, 10 ms\n0, 0.03\n1, 20 ms\n")
    (tmp_path / "link.toml").write_text("[compute]\nnonzero = 2e-6\n")
    run = played(tmp_path / "csv", SOME["gd"], time={"compute": str(tmp_path / "times.csv")})
    assert np.diff(run.trace["model_seconds"]) == pytest.approx([0.02, 0.03] * 10)
    run = played(tmp_path / "toml", SOME["gd"], time={"compute": str(tmp_path / "link.toml")})
    assert np.diff(run.trace["model_seconds"]) == pytest.approx(2e-6 * 18 * 40)


def test_the_first_to_arrive_have_no_theorem_but_gd_s_step_may_be_its_own(tmp_path):
    run = played(tmp_path, of("gd"), time={"compute": SQRT, "wait": 3}, log={"theory": True})
    assert "mean of all workers" in run.attrs["lyapunov_unknown"]
    assert json.loads(run.attrs["settled"])["step"] > 0
    with pytest.raises(UserError, match=naming("time.wait = 3 no theorem ef21 first to arrive algorithm.step")):
        played(tmp_path, of("ef21", TOP), time={"compute": SQRT, "wait": 3})


@pytest.mark.parametrize(("time", "more", "words"), [
    ({"compute": {"law": "sqrt"}}, {}, "time.compute.unit: is missing"),
    ({"compute": {"law": "lognormal", "unit": "1 ms"}}, {}, "time.compute lognormal needs sigma"),
    ({"compute": {"law": "pareto", "unit": "1 ms"}}, {}, "time.compute pareto needs alpha"),
    ({"compute": {"law": "equal", "unit": "1 ms", "sigma": 1.0}}, {}, "time.compute lognormal needs sigma no other law"),
    ({"compute": {"law": "pareto", "unit": "1 ms", "alpha": 2.0, "noise": "half-normal"}}, {}, "time.compute noise pareto"),
    ({"compute": {"law": "root", "unit": "1 ms"}}, {}, "time.compute.law root lognormal"),
    ({"compute": {"law": "equal", "unit": "0 s"}}, {}, "time.compute.unit 0 s more than 0"),
    ({"compute": "0 s"}, {}, "time.compute a time of more than 0"),
    ({"compute": -1.0}, {}, "time.compute a time of more than 0"),
    ({"compute": ["1 ms", "2 ms"]}, {}, "time.compute 2 times 5 workers"),
    ({"compute": ["1 ms", "2 ms", "1 ms", 0, "1 ms"]}, {}, "time.compute more than 0"),
    ({"compute": "soon"}, {}, "time.compute more than 0"),
    ({"compute": "nowhere.csv"}, {}, "time.compute nowhere.csv"),
    ({"compute": "nowhere.toml"}, {}, "time.compute nowhere.toml calibrate"),
    ({"compute": "1 ms", "per": "row"}, {}, "time.per row"),
    ({"compute": "1 ms", "wait": 6}, {}, "time wait = 6 5 workers"),
    ({"compute": "1 ms", "wait": 0}, {}, "time wait = 0"),
    ({"compute": "1 ms", "wait": 1.5}, {}, "time wait = 1.5"),
    ({"compute": "1 ms", "wait": "some"}, {}, "time.wait some"),
    ({"wait": 2}, {}, "time.wait compute"),
    ({"compute": "1 ms", "wait": 2}, {"workers": {"count": 5, "participate": 2}}, "time.wait workers.participate"),
    ({"compute": "1 ms", "wait": 2}, {"workers": {"count": 5, "exchange": "allgather"}}, "time.wait allgather"),
    ({"compute": "1 ms", "wait": 2}, of("nesterov", "identity", step="0.1/L"), "time.wait = 2 nesterov needs all workers gd"),
    ({"compute": "1 ms", "waits": 2}, {}, "time waits wait"),
    ({"compute": "1 ms"}, {"log": {"every": "0 s"}}, "log every"),
    ({}, {"log": {"every": "1 s"}}, "log.every = 1 s model_seconds clock [time]"),
    ({}, {"stop": {"model_seconds": 3}}, "stop.model_seconds clock [time]"),
    ({}, {"cost": {**COST, "compute": "2 ns"}}, "cost.compute [time] compute"),
    ({"compute": "1 ms"}, of("async-sgd", {"name": "gspar", "kappa": 0.3}, step=0.1), "time async-sgd memory"),
])  # fmt: skip
def test_what_is_wrong_gets_one_line(time, more, words, tmp_path):
    with pytest.raises(UserError, match=naming(words)):
        played(tmp_path, {**SOME["gd"], **more}, time=time)


def test_a_file_of_times_is_part_of_the_run_id(tmp_path):
    ids = []
    for second in (1, 2):
        (tmp_path / "times.csv").write_text(f"worker,second\n0,{second}\n")
        ids.append(run_of(tmp_path, {"name": "gd"}, time={"compute": str(tmp_path / "times.csv")}, rounds=2).attrs["run_id"])
    assert ids[0] != ids[1]
