"""Performance profiles and the floor, on three methods whose bits are known by hand."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.running import command

import mpi_compress as mc
from mpi_compress.evidence.profile import profile
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target

GAPS = np.array([1.0, 1e-1, 1e-2, 1e-3])
TARGETS = [Target.of("suboptimality", level) for level in (1e-1, 1e-3)]


def made(label, bits, seed=0, data="a", gaps=GAPS):
    """A run of four rows whose messages up take so many bits a round, and those down none."""
    rounds = np.arange(4)
    trace = {"round": rounds, "suboptimality": gaps, "wire_bits_up": bits * rounds, "wire_bits_down": 0 * rounds}
    job = f'data = {{ name = "{data}" }}\nseed = {seed}'
    attrs = {"label": label, "run_id": f"{label}{data}{seed}", "job": job, "data": data, "n_workers": 2, "dim": 4}
    return Run(Path(), attrs, trace, {}, {}, None)


def test_a_share_counts_the_targets_within_a_factor_of_the_least_and_the_median_of_seeds():
    """On a: A needs 10 and 30 bits, B (median of 20, 40, 90 a round) 40 and 120; on b, where B has no run, A and C need the same."""
    runs = [
        made("A, mu = 1", 10), *(made("B, mu = 1", bits, seed) for seed, bits in enumerate((90, 20, 40))),
        made("A, mu = 2", 7, data="b"), made("C, mu = 2", 7, data="b", gaps=np.array([1.0, 1e-1, 1e-1, 1e-1])),
    ]  # fmt: skip
    found = profile(runs, TARGETS, "wire_bits_up")
    assert {name: each.tolist() for name, each in found.ratios.items()} == {
        "A": [1, 1, 1, 1], "B": [4, 4, math.inf, math.inf], "C": [math.inf, math.inf, 1, math.inf],
    }  # fmt: skip
    assert found.methods == ["A", "B", "C"]
    assert [found.share("B", τ) for τ in (1, 3.9, 4, 100)] == [0, 0, 0.5, 0.5]
    assert found.cells[0] == ["A", *["1.00"] * 6]


def test_a_target_that_nobody_reaches_is_counted_apart_and_none_at_all_is_an_error():
    beyond = [*TARGETS, Target.of("suboptimality", 1e-9)]
    found = profile([made("A", 10)], beyond, "wire_bits")
    assert (found.targets, found.missed) == (2, 1)
    with pytest.raises(mc.UserError, match="1e-09"):
        profile([made("A", 10)], beyond[2:], "wire_bits")


def test_costs_of_two_models_are_not_compared():
    """A has the least by its own model, and so does B, which costs three times as much by another one."""
    runs = [made("A", 10), made("B", 30)]
    runs[1].attrs["job"] += '\ncost = { model = "packet" }'
    runs = [replace(run, trace=run.trace | {"cost_up": run.trace["wire_bits_up"]}) for run in runs]
    found = profile(runs, TARGETS, "cost_up")
    assert {name: each.tolist() for name, each in found.ratios.items()} == {"A": [1, 1, math.inf, math.inf], "B": [math.inf, math.inf, 1, 1]}


def test_the_floor_halves_the_distance_for_each_bit_a_coordinate_and_direction():
    run = made("A", 2 * 4)  # a bit a coordinate up: ‖x − x*‖ halves, and the gap falls to a quarter
    np.testing.assert_allclose(run.column("floor_up"), [1, 1 / 4, 1 / 16, 1 / 64])
    np.testing.assert_allclose(run.column("floor"), [1, 1 / 2, 1 / 4, 1 / 8])


def test_the_command_prints_both_tables_and_draws_both_panels(tmp_path):
    job = """
    data = { generator = "gspar", samples = 40, dim = 8 }
    objective = { mu = "1e-1 L", f_star = "solve" }
    workers.count = 2
    stop.rounds = 40
    figure = { x = "wire_bits", y = "suboptimality", bounds = ["floor"] }
    run = [{ label = "GD", algorithm.name = "gd" }, { label = "bf16", algorithm.name = "gd", up = { codec = { name = "dense", float = "bf16" } } }]
    """
    (tmp_path / "job.toml").write_text(job)
    mc.run(mc.load_job(tmp_path / "job.toml"), out=tmp_path, quiet=True)
    done = command("plot", "--profile", tmp_path / "job.toml", "--to", "suboptimality=1e-2", "--out", tmp_path, "-o", tmp_path / "p.svg")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("bf16 ", "GD "))]
    assert rows[0] == ["bf16", *["1.00"] * 6]
    assert [row[0] for row in rows] == ["bf16", "GD"] * 2
    assert {">GD<", ">bf16<", ">τ, times the least<"} <= set(re.findall(r">[^<>\n]+<", (tmp_path / "p.svg").read_text()))
    assert command("plot", tmp_path / "job.toml", "--out", tmp_path, "-o", tmp_path / "q.svg").returncode == 0
