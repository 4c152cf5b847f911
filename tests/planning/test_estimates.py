"""What jobs will take, by the rounds that were measured."""

import json
import math
import re

import h5py
import pytest
from helpers.running import After

import mpi_compress as mc
from mpi_compress.core.progress import time_text
from mpi_compress.planning.estimates import _rounds_left, _trials_left, estimates, suggestion, text

JOB = """
data = { generator = "gspar", samples = 64, dim = 32 }
algorithm = { name = "gd" }
stop = { rounds = 50 }
[full]
data.samples = 640
stop.rounds = 200
[[run]]
label = "one"
[[run]]
label = "two"
algorithm = { name = "gd", step = "0.5/L" }
"""


def test_time_is_that_of_rounds_seen_on_the_same_data_and_what_is_done_takes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    (unknown,) = estimates([file], tmp_path, True)
    assert (unknown.runs, unknown.rounds) == (2, 400)
    assert math.isnan(unknown.seconds)
    assert unknown.disk >= 640 * 32 * 8
    assert "not measured" in next(text([unknown]))
    mc.run(mc.load_job(file), out=tmp_path, quiet=True)
    (other,) = estimates([file], tmp_path, True)
    assert math.isnan(other.seconds), "other data were seen"
    assert other.memory > 2**27
    seen = mc.run(mc.load_job(file, {"stop.rounds": 20}, full=True), out=tmp_path, quiet=True)
    (known,) = estimates([file], tmp_path, True)
    each = [run.column("seconds")[-1] / 20 for run in seen]
    assert known.seconds == pytest.approx(200 * sum(each))
    mc.run(mc.load_job(file, full=True), out=tmp_path, quiet=True)
    assert [*text([*estimates([file], tmp_path, True)])] == [f"{file}: done", "all is done"]


def test_an_estimate_is_a_line_a_job_and_one_for_all(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    first, last = text([*estimates([file], tmp_path, True)])
    assert re.fullmatch(r".*job.toml: 2 runs, at most 400 rounds, a time not measured yet, 0\.\d+ GiB of memory, \S+ GiB of disk", first)
    assert last.startswith("together 1 job whose rounds were not measured")


def test_disk_is_for_the_parsed_data_once_and_for_each_row_of_each_result(tmp_path, monkeypatch):
    """40 numbers a row: rows 0, 7, …, 49 of 50 rounds are 8, of two runs; 64 samples of 32 floats, shared by both."""
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace("stop = {", "log.every = 7\nstop = {"))
    (found,) = estimates([file], tmp_path, False)
    (more,) = estimates([_with(file, "rounds = 50", "rounds = 57")], tmp_path, False)
    assert more.disk - found.disk == 2 * 8 * 40
    assert found.disk - 2 * 8 * 8 * 40 == pytest.approx(64 * (32 + 1) * 8, rel=0.1)
    assert found.rounds == 100


def _with(file, old, new):
    file.write_text(file.read_text().replace(old, new))
    return file


def test_the_trials_of_a_tuned_run_are_estimated_before_and_after_they_ran(tmp_path):
    """Five values over two seeds: 5 trials of half the run's length, then 3 that go on to all of it, each with both seeds."""
    file = tmp_path / "tuned.toml"
    tune = 'tune = { parameter = "algorithm.step", values = "2^-3..2^1 theory", to = { grad_norm = 1e-9 }, seeds = [0, 1] }\n'
    file.write_text(JOB.partition("[full]")[0] + tune + '[[run]]\nlabel = "one"\n')
    mc.run(mc.load_job(file), out=tmp_path, quiet=True)
    longer = mc.load_job(file, {"stop.rounds": 1_000_000})
    (spec,) = longer.runs
    said = suggestion(longer, longer.runs, tmp_path, True)
    assert re.search(r"it takes about .*, after about .* of trials of \[tune\]$", said), said
    assert _trials_left(spec, longer, tmp_path) == (2 * (5 + 3), 2_000_000 * (5 * 0.5 + 3 * 0.5))
    same = mc.load_job(file)
    assert _trials_left(same.runs[0], same, tmp_path) == (0, 0)
    for result in tmp_path.joinpath("tuned").glob("*.h5"):
        result.unlink()
    assert "of trials" not in suggestion(same, same.runs, tmp_path, True)
    assert "it takes about" in suggestion(same, same.runs, tmp_path, True), "by the rounds of its trials"


def test_short_trials_take_what_finished_ones_took_besides_their_rounds(tmp_path):
    """21 s, as all of them say but the first one, for which kernels were compiled. The runs take no minute, but their trials do."""
    file = tmp_path / "tuned.toml"
    tune = 'tune = { parameter = "algorithm.step", values = "2^-3..2^1 theory", to = { grad_norm = 1e-9 } }\n'
    file.write_text(JOB.partition("[full]")[0] + tune + '[[run]]\nlabel = "one"\n')
    mc.run(mc.load_job(file, {"stop.rounds": 2}), out=tmp_path, quiet=True)
    longer = mc.load_job(file, {"stop.rounds": 4})
    each = [*tmp_path.joinpath("tuned", "tuning").glob("*.h5")]
    for result, start in zip(each, [1000.0, *[20.0] * len(each)], strict=False):
        with h5py.File(result, "r+") as h5:
            h5.attrs["wall"] = json.dumps({"start": start, "rounds": 1e6, "file": 1.0})
            del h5.attrs["checksums"]
    count, _ = _trials_left(longer.runs[0], longer, tmp_path)
    assert count > 3
    assert suggestion(longer, longer.runs, tmp_path, False).endswith(f", after about {time_text(21 * count)} of trials of [tune]")
    for result in each:
        result.unlink()
    said = suggestion(longer, longer.runs, tmp_path, True)
    assert re.search(r", after about \d s of trials of \[tune\], with a guess of 0\.3 s beside the rounds of each$", said), "8 trials"


def test_trials_of_methods_that_were_not_tried_take_the_mean_of_those_that_were_and_those_of_seeds_count_once(tmp_path):
    """Two methods of two seeds; one run of 20 rounds at 1 s each. Runs of 50 rounds take 50 s; the trials of a method take
    6 times as long, three values whole with two seeds."""
    file = tmp_path / "job.toml"
    tune = 'tune = { parameter = "algorithm.step", values = "2^-1..2^1 theory", to = { grad_norm = 1e-9 }, seeds = [0, 1] }'
    methods = "".join(f'[[run]]\nlabel = "{name}"\nalgorithm.name = "{name}"\n' for name in ("gd", "cat"))
    data = 'data = { generator = "gspar", samples = 64, dim = 32 }\n'
    file.write_text(f"{data}stop.rounds = 50\ngrid.seed = [0, 1]\n{tune}\n{methods}")
    (run,) = mc.run(mc.load_job(file, {"stop.rounds": 20}, index=0), out=tmp_path, quiet=True)
    with h5py.File(run.file, "r+") as h5:
        h5["timing"]["seconds"][-1] = run.column("round")[-1]
        del h5.attrs["checksums"]
    job = mc.load_job(file)
    said = suggestion(job, job.runs, tmp_path, True)
    assert said.startswith("2 of the 4 runs to do are of methods tried before; ")
    assert said.endswith(f"all 4, one after another, take about {time_text(4 * 50)}, after about {time_text(2 * 6 * 50)} of trials of [tune]")
    assert "; by what that took, its mean for the 2 not tried, `submit" in said


def test_methods_that_were_not_tried_take_the_mean_of_those_that_were_those_that_are_done_too_and_that_is_said(tmp_path):
    """Rounds of 1 s of gd, which is done. 80 rounds of cat take 80 s, and that is said to be no time of its own."""
    file = tmp_path / "job.toml"
    methods = "".join(f'[[run]]\nlabel = "{name}"\nalgorithm.name = "{name}"\n' for name in ("gd", "cat"))
    file.write_text(f'data = {{ generator = "gspar", samples = 64, dim = 32 }}\nstop.rounds = 80\n{methods}')
    job = mc.load_job(file)
    (run,) = mc.run(mc.load_job(file, index=0), out=tmp_path, quiet=True)
    with h5py.File(run.file, "r+") as h5:
        h5["timing"]["seconds"][-1] = run.column("round")[-1]
        del h5.attrs["checksums"]
    said = suggestion(job, job.runs[1:], tmp_path, True)
    assert said.startswith("the run to do was not tried before; by the mean of what was, `submit --ntasks 1 ")
    assert said.endswith(f"it takes about {time_text(80)}")
    target = mc.load_job(file, {"stop.loss": 0.1})
    assert suggestion(target, target.runs[1:], tmp_path, True).endswith(f"it takes at most about {time_text(80)}"), "it may end before"
    with pytest.raises(mc.Stopped):
        mc.run(mc.load_job(file, {"checkpoint.every": 5}, index=1), out=tmp_path, quiet=True, interrupts=After(4))
    (part,) = tmp_path.rglob("*.part")
    left = 80 - mc.read(part).trace["round"][-1]
    assert 0 < left < 80
    assert _rounds_left(job.runs[1], job, tmp_path) == left
    assert suggestion(job, job.runs[1:], tmp_path, True).startswith("the run to do was tried before; by what that took, ")


def test_an_estimate_counts_trials_by_the_numbers_of_the_plan(tmp_path):
    """A run of 200 rounds at 1 s each takes 200 s; its trials, 3 values and 2 seeds, six times that, and half a second each beside."""
    file = tmp_path / "tuned.toml"
    tune = 'tune = { parameter = "algorithm.step", values = "2^-1..2^1 theory", to = { grad_norm = 1e-9 }, seeds = [0, 1] }\n'
    file.write_text(JOB.partition("[full]")[0].replace("50", "200") + "grid.seed = [0, 1]\n" + tune + '[[run]]\nlabel = "one"\n')
    (run, *_) = mc.run(mc.load_job(file, {"stop.rounds": 20}), out=tmp_path, quiet=True)
    for result in [run.file, *tmp_path.joinpath("tuned", "tuning").glob("*.h5")]:
        with h5py.File(result, "r+") as h5:
            h5["timing"]["seconds"][-1] = h5["trace"]["round"][-1]
            h5.attrs["wall"] = json.dumps({"start": 0.5, "rounds": 20.0})
            del h5.attrs["checksums"]
    (found,) = estimates([file], tmp_path, False)
    assert (found.runs, found.rounds, found.trials, found.rounds_of_trials) == (2, 400, 6, 1200)
    assert found.seconds == pytest.approx(400 + 1200 + 6 * 0.5)
    assert ": 2 runs, at most 400 rounds, after 6 trials of 1,200 rounds, about " in found.line
    job = mc.load_job(file)
    assert f", after about {time_text(1200 + 6 * 0.5)} of trials of [tune]" in suggestion(job, job.runs, tmp_path, True)
    rows = (found.disk - next(estimates([_with(file, tune, "")], tmp_path, False)).disk) / (8 * 40)
    assert rows == 6 * 201
