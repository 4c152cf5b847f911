"""[cost] up and down: each direction has its own model; CAT plans with the uplink's, and the model's clock walks both."""

import numpy as np
import pytest
from helpers.layouts import assert_equal
from helpers.running import GSPAR, here, run_of

import mpi_compress as mc
from mpi_compress.results.units import model_of, unit_of

SLOW_UP = {"model": "packet", "c1": "576 B", "c0": "64 B", "pmax": "512 B"}
PLAIN = {"model": "payload"}
UP = {"model": "trace", "rows": [["0 s", "20 ms", "1 Mbit/s"]]}
DOWN = {"model": "trace", "rows": [["0 s", "5 ms", "40 Mbit/s"]]}
EF21 = {"algorithm": {"name": "ef21", "step": 0.1}, "up": {"compressor": {"name": "top-k", "k": 3}}}


def test_cat_plans_with_the_uplinks_costs_and_each_direction_is_counted_by_its_own(tmp_path):
    both, plain = (run_of(tmp_path, {"name": "cat"}, rounds=20, cost=cost) for cost in (SLOW_UP, PLAIN))
    each = run_of(tmp_path, {"name": "cat"}, rounds=20, cost={"up": SLOW_UP, "down": PLAIN})
    beside = run_of(tmp_path, {"name": "cat"}, rounds=20, cost={**SLOW_UP, "down": PLAIN})
    for run in (each, beside):
        for column in ("loss", "budget", "wire_bits_up", "cost_up", "wire_bits_down"):
            assert run.trace[column].tobytes() == both.trace[column].tobytes()
        assert run.trace["cost_down"].tobytes() != both.trace["cost_down"].tobytes()
        assert run.trace["cost_down"].tobytes() == run.trace["paper_bits_down"].tobytes()
        assert model_of(run) == "packet, c1 = 576 B, c0 = 64 B, pmax = 512 B up, payload down"
        assert (unit_of("cost_up", [run]), unit_of("cost_down", [run])) == ("bit", "bit")
    turned = run_of(tmp_path, {"name": "cat"}, rounds=20, cost={"up": PLAIN, "down": SLOW_UP})
    assert turned.trace["budget"].tobytes() == plain.trace["budget"].tobytes() != both.trace["budget"].tobytes()
    assert len({run.attrs["run_id"] for run in (both, plain, each, beside, turned)}) == 5


def test_a_round_takes_its_message_up_on_one_link_and_down_on_the_other(tmp_path):
    run = run_of(tmp_path, EF21["algorithm"], EF21["up"], rounds=6, count=3, cost={"up": UP, "down": DOWN})
    up, down = (run.trace[f"wire_bits_{way}"] for way in ("up", "down"))
    each_up = np.diff(run.workers["wire_bits_up"], axis=0).max(axis=1)
    took = 0.02 + each_up / 1e6 + 0.005 + np.diff(down) / 3 / 40e6
    assert np.diff(run.trace["model_seconds"]) == pytest.approx(took, abs=2e-9)
    assert run.trace["cost_up"][-1] == pytest.approx(6 * 3 * 0.02 + up[-1] / 1e6, rel=1e-12)
    assert run.trace["cost_down"][-1] == pytest.approx(6 * 3 * 0.005 + down[-1] / 40e6, rel=1e-12)
    assert run.attrs["links"] == "1 Mbit/s and 20 ms up and 40 Mbit/s and 5 ms down"


@pytest.mark.parametrize("time", [
    {}, {"compute": "10 ms", "wait": 2}, {"compute": "10 ms", "wait": 2, "again": True, "stale": float("inf")},
], ids=["all", "the first", "a queue"])  # fmt: skip
def test_equal_links_up_and_down_are_those_of_both_and_others_are_not(time, tmp_path):
    def of(cost):
        return run_of(tmp_path, EF21["algorithm"], EF21["up"], rounds=12, count=3, cost=cost, **({"time": time} if time else {}))

    assert_equal(of(UP).file, of({"up": UP, "down": UP}).file)
    assert of({"up": UP, "down": DOWN}).trace["model_seconds"][-1] < of(UP).trace["model_seconds"][-1]
    assert of({"up": UP, "down": DOWN}).trace["model_seconds"][-1] != of({"up": DOWN, "down": UP}).trace["model_seconds"][-1]


@pytest.mark.parametrize(("cost", "said"), [
    ({**SLOW_UP, "up": PLAIN, "down": PLAIN}, "cost: up and down are given, and model of both: leave that out, or one of them"),
    ({"up": PLAIN}, "cost.down: { model = … } is missing, or a model of both directions beside up"),
    ({"up": "payload", "down": PLAIN}, "cost.up: 'payload' was given; it should be a table, { model = … }"),
    ({"up": UP, "down": PLAIN}, "cost: trace up and payload down: both or none should be links that change with time"),
    ({"up": {"model": "packed"}, "down": PLAIN}, "cost.up: no cost model called 'packed'"),
    ({"up": {"c1": 1.0}, "down": PLAIN}, "cost.up: model = … is needed"),
    ({"up": {"model": "affine", "c0": "9 B"}, "down": {"model": "affine", "c0": "9 B", "c2": 1}}, "cost.down"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused_in_a_line(cost, said):
    with pytest.raises(mc.UserError) as refused:
        mc.load_job({"data": GSPAR, "algorithm": {"name": "gd"}, "stop": {"rounds": 3}, "cost": cost})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_plan_and_show_name_both(tmp_path):
    job = tmp_path / "ways.toml"
    job.write_text("""
        data = { generator = "gspar", samples = 100, dim = 40, seed = 2 }
        workers.count = 4
        algorithm.name = "cat"
        stop.rounds = 5
        [cost]
        up = { model = "affine", c0 = "200 B" }
        down = { model = "payload" }
    """)
    out = ("--out", tmp_path / "out")
    assert "cost: affine, c0 = 200 B up, payload down" in here("plan", job, *out).stdout.splitlines()
    assert here("run", job, *out).returncode == 0
    (file,) = (tmp_path / "out").rglob("*.h5")
    said = here("show", file).stdout
    assert "up = (affine, c0 = 200 B), down = payload" in " ".join(said.split()) or "up = (affine, c0 = 200 B), down = (payload)" in said
    assert "cost.down: payload" in said
