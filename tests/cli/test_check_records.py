"""`check` compares the bits that runs took with those that a job's records claim."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.refusals import naming
from helpers.running import command

import mpi_compress as mc
from mpi_compress.evidence.verdicts import check_records
from mpi_compress.job.claims import Record
from mpi_compress.job.loading import Job
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.reader import Run

JOB = """
title = "Two runs"
seed = 1
data = { generator = "gspar", samples = 60, dim = 12 }
objective = { mu = "1e-2 L", f_star = "solve" }
workers = { count = 3 }
stop = { rounds = 60 }
[[run]]
label = "GD"
algorithm = { name = "gd" }
down = { codec = "dense" }
[[run]]
label = "top-4"
algorithm = { name = "ef21" }
up = { compressor = { name = "top-k", k = 4 } }
"""


def record(run, level, **claimed):
    text = "".join(f"{column} = {bits}\n" for column, bits in claimed.items())
    return f'[[record]]\nrun = "{run}"\nto = {{ suboptimality = {level} }}\n{text}'


@pytest.fixture(scope="module")
def bits(tmp_path_factory):
    """What GD takes to a gap of 0.02: 64 bits a coordinate, and each message's length."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "two.toml").write_text(JOB)
    run = mc.run(mc.load_job(folder / "two.toml", only="GD"), out=folder, quiet=True)[0]
    rounds = int((run.column("suboptimality") <= 2e-2).argmax())
    assert 0 < rounds < 60
    return rounds * 3 * 8 * (4 + 8 * 12)


def checked(folder, *records, options=("--only", "GD")):
    """The records of the job, of which GD has run."""
    (folder / "two.toml").write_text(JOB + "\n".join(records))
    command("run", folder / "two.toml", "--only", "GD", "--out", folder, "--quiet")
    return command("check", folder / "two.toml", "--out", folder, *options)


def test_a_record_that_is_right_is_equal_by_any_budget_and_one_without_results_is_not_run(bits, tmp_path):
    rounds, others = bits // (3 * 8 * (4 + 8 * 12)), record("top-4", 2e-2, wire_bits=1)
    done = checked(tmp_path, record("GD", 2e-2, wire_bits_up=bits, wire_bits=2 * bits, round=rounds), others, options=())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        f"GD, suboptimality ≤ 0.02: {bits:,} wire_bits_up claimed, {bits:,} found: equal",
        f"GD, suboptimality ≤ 0.02: {2 * bits:,} wire_bits claimed, {2 * bits:,} found: equal",
        f"GD, suboptimality ≤ 0.02: {rounds} round claimed, {rounds} found: equal",
        "top-4, suboptimality ≤ 0.02: 1 wire_bits claimed; not run",
    ]


def test_a_claim_of_too_few_bits_or_of_a_level_that_is_not_reached_does_not_hold(bits, tmp_path):
    done = checked(
        tmp_path, record("GD", 2e-2, wire_bits_up=bits - 1), record("GD", 2e-2, wire_bits_up=bits + 1),
        record("GD", 1e-15, wire_bits=10**9),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()[1:]] == ["does not hold", "fewer", "does not hold"]
    assert "more: does not hold" in done.stdout
    assert "not reached: does not hold" in done.stdout


def test_a_record_that_some_seeds_miss_says_how_many_reach_it():
    """Of five seeds one reaches the target in 1 round, then 2, then 3; two never do. In the end three miss it."""
    label = "EF21"
    losses = [[1.0, *[1.0] * n, 0.0, 0.0, 0.0][:5] for n in range(3)] + [[1.0] * 5] * 2
    trace = [{"round": np.arange(5), "loss": np.array(values)} for values in losses]
    runs = [Run(Path("a.h5"), {"label": label}, each, {}, {}, None, {}) for each in trace]

    def said(claimed, runs):
        return [*check_records(Job("a", "a", "", [], FigureTable(), [], [Record(label, {"loss": 0.5}, {"round": claimed})]), runs)]

    assert said(3, runs) == [(True, "EF21, loss ≤ 0.5: 3 round claimed, 3 found: equal (3 of 5 seeds reach it)")]
    assert said(4, runs) == [(True, "EF21, loss ≤ 0.5: 4 round claimed, 3 found: fewer (3 of 5 seeds reach it)")]
    assert said(2, runs) == [(False, "EF21, loss ≤ 0.5: 2 round claimed, 3 found: more: does not hold (3 of 5 seeds reach it)")]
    assert said(3, runs[1:]) == [(False, "EF21, loss ≤ 0.5: 3 round claimed; not reached: does not hold (2 of 4 seeds reach it)")]
    assert said(3, runs[:3]) == [(True, "EF21, loss ≤ 0.5: 3 round claimed, 2 found: fewer")]


@pytest.mark.parametrize(("records", "said"), [
    ([], "makes no claims; [[claim]] states one, and [[record]] a record"), ([record("top-4", 2e-2, wire_bits=1)], "GD alone"),
    ([record("gd", 1e-2, wire_bits=1)], "1.run gd GD"),
    ([record("GD", 2e-2)], "wire_bits or another budget is required"),
    ([record("GD", 2e-2, bits=3)], "1 bits"),
    ([record("GD", 2e-2, wire_bits=1).replace("suboptimality", "round")], "to round"),
])  # fmt: skip
def test_what_cannot_be_checked_is_one_line(records, said, tmp_path):
    done = checked(tmp_path, *records)
    assert done.returncode == 2
    assert re.search(naming(said), done.stderr.strip())
