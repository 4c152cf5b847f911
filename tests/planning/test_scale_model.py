"""The model of scale: numbers by hand, the command on a tiny job, and rounds that are really played."""

import csv
import os
import re
import subprocess
import tomllib

import numpy as np
import pytest
from helpers.refusals import naming
from helpers.running import BIN, command

import mpi_compress as mc
from benchmarks import _hosts as hosts
from benchmarks import scale
from benchmarks._parts import Curve, LinkCosts, PartCosts, PartTimer
from benchmarks.scale import Scale
from mpi_compress.core.errors import UserError

COSTS = PartCosts(
    nonzero=2e-9, worker=1e-6, samples=Curve.line(0.0, 1.0), packing=Curve.line(1e-5, 4e-5), fold=Curve.line(1e-4, 1e-5), bits_up=1000.0,
    bits_down=Curve([(1, 1000.0), (4, 2000.0)], True, 6464.0), n_samples=10_000, nonzeros=100.0, dim=100,
)  # fmt: skip
LINK = LinkCosts(c0=1e-3, c1=1e-8, message=1e-5)
TABLE = """
affine = { c0 = 1e-3, c1 = 1e-8 }
packet = { c0 = 0, c1 = 1, pmax = 1 }
points = { bits = [1], seconds = [1] }
"""


def test_a_round_by_a_star_takes_what_it_takes_by_hand():
    r = Scale(COSTS, LINK).round("star", 100)
    assert (r.bits_up, r.bits_down, r.largest) == (1e5, 646_400.0, "exchange")
    assert r.gradient == pytest.approx(2e-9 * 100 * 100 + 1e-6)  # 100 rows of 100 nonzeros
    assert (r.packing, r.fold) == (pytest.approx(5e-5), pytest.approx(1.1e-3))
    assert r.exchange == pytest.approx(2e-3 + 1e-8 * (1e5 + 646_400) + 2 * 99 * 1e-5)
    assert r.seconds == pytest.approx(2.1e-5 + 5e-5 + 1.1e-3 + 11.444e-3)
    few = Scale(COSTS, LINK).round("star", 4)
    assert few.bits_down == pytest.approx(4 * 2000.0)  # 1000·√4 for each


def test_fewer_ranks_play_their_workers_one_after_another():
    r = Scale(COSTS, LINK, ranks=3).round("star", 101)  # the master's rank, and one with 51 workers
    assert r.gradient == pytest.approx(51 * (2e-9 * 100 * 10_000 / 101 + 1e-6))
    assert r.packing == pytest.approx(1e-5 + 51 * 4e-5)
    assert r.exchange == pytest.approx(2e-3 + 1e-8 * (101_000 + 2 * 6464) + 2e-5)
    beside = Scale(COSTS, LINK, ranks=2, master_hosts=True).round("star", 100)  # one of two hosting ranks is the master's
    assert beside.exchange == pytest.approx(2e-3 + 1e-8 * (50_000 + 6464))
    alone = Scale(COSTS, LINK, ranks=1, shard=7).round("star", 100)
    assert (alone.exchange, alone.gradient) == (0.0, pytest.approx(100 * (2e-9 * 700 + 1e-6)))


def test_a_round_by_allgather_takes_what_it_takes_by_hand():
    r = Scale(COSTS, LINK, master_hosts=True).round("allgather", 100)
    assert (r.bits_down, r.fold) == (0.0, pytest.approx(1.1e-3))
    assert r.exchange == pytest.approx(2 * 7 * 1e-3 + 1e-8 * 99_000)
    few = Scale(COSTS, LINK, ranks=5).round("allgather", 100)  # each rank hosts 20 workers, the master's too
    assert few.packing == pytest.approx(1e-5 + 20 * 4e-5)
    assert few.exchange == pytest.approx(2 * 3 * 1e-3 + 1e-8 * 80_000)


def test_workers_that_sleep_send_their_length_alone():
    some = PartCosts(**{**vars(COSTS), "share": 0.1})
    r = Scale(some, LINK).round("star", 100)
    assert (r.bits_up, r.fold) == (pytest.approx(10 * 1000 + 90 * 32), pytest.approx(1e-4 + 10 * 1e-5))


def test_where_a_part_begins_to_take_more_than_the_workers_is_found_to_the_worker():
    costs = PartCosts(**{**vars(COSTS), "fold": Curve.line(0.0, 1e-5)})
    found = Scale(costs, LinkCosts(), shard=100).statements("star", scale.workers_of("2:1000"))
    assert found[0] == "exchange above gradient and packing: never"
    assert re.search(naming("fold 8 workers"), found[1])  # 80 µs above 71
    assert found[2] == "quickest round: 2 workers, 91 µs"
    assert "at 10 workers already" in Scale(costs, LINK, shard=100).statements("star", [10, 20])[0]


def test_what_was_measured_goes_on_as_it_ends():
    seconds = Curve([(1, 5.0), (8, 12.0), (32, 36.0)])
    assert [seconds(m) for m in (1, 4.5, 8, 20, 32, 132)] == pytest.approx([5, 8.5, 12, 24, 36, 136])
    bits = Curve([(1, 10.0), (4, 10.0), (16, 40.0)], True, 1000.0)
    assert [bits(m) for m in (1, 2, 8, 16, 100, 1e6)] == pytest.approx([10, 10, 20, 40, 250, 1000])
    assert Curve([(1, 7.0)], True, 99.0)(50) == pytest.approx(7.0)


def test_the_table_of_a_model_has_80_columns():
    assert scale.workers_of("10:1000") == [10, 20, 50, 100, 200, 500, 1000]
    assert scale.workers_of("7:60") == [7, 10, 20, 50, 60]
    assert scale.workers_of("1000") == [1000]
    for wrong in ("0:3", "9:3", "few", "-1", "1:2:3", "1:2000000", "1:" + 5000 * "9"):
        with pytest.raises(UserError, match="numbers of workers"):
            scale.workers_of(wrong)
    lines = scale.table([Scale(COSTS, LINK).round("star", n) for n in (1, 100, 1_000_000)])
    assert {len(line) for line in lines} == {80}
    assert "at 1 worker already" in Scale(COSTS, LINK, shard=1).statements("star", [1])[0]
    assert " ".join(lines[2].split()) == "100 21 µs 50 µs 1.1 ms 11.4 ms 12.6 ms exchange 100 k 646 k"
    assert [scale.time_text(s) for s in (0.0, 1e-7, 9.9951e-4, 0.99949, 12.0)] == ["0", "0.1 µs", "1 ms", "999 ms", "12 s"]


JOB = """
data = { generator = "gspar", samples = 400, dim = 40 }
objective = { mu = 0.01 }
workers = { count = 4 }
stop = { rounds = 8 }
[[run]]
label = "top-3"
algorithm = { name = "ef", step = 0.01 }
up = { compressor = { name = "top-k", k = 3 } }
[[run]]
label = "GD"
algorithm = { name = "gd" }
[grid]
seed = [1, 2]
"""


def test_all_numbers_of_workers_are_written_whole():
    found = {"GD": {way: [Scale(COSTS, LINK).round(way, 999_999)] for way in scale.WAYS}}
    rows = list(csv.DictReader(scale.csv_text(found).splitlines()))
    assert [row["workers"] for row in rows] == 2 * ["999999"]


@pytest.mark.parametrize("compute", ["3", "{ message = 'quick' }", "{ message = nan }", "{ message = -1 }", "{ message = true }"])
def test_a_link_with_a_processor_time_that_is_none_is_refused(tmp_path, compute):
    file = tmp_path / "link.toml"
    file.write_text(TABLE + f"compute = {compute}\n")
    with pytest.raises(UserError, match=r"compute\.message should be a time in seconds"):
        LinkCosts.of(file)


def test_the_command_prints_draws_and_writes_the_model(tmp_path, capsys):
    job, link = tmp_path / "job.toml", tmp_path / "link.toml"
    job.write_text(JOB)
    link.write_text(TABLE + "compute = { message = 1e-5 }\n")
    line = [str(job), "4:1000", "--link", str(link), "-o"]
    scale.main([*line, str(tmp_path / "model.csv")])
    out, err = capsys.readouterr()
    assert all(len(text) <= 80 or str(tmp_path) in text for text in out.splitlines())
    assert "top-3\n  star, n ranks, N/n samples each; 1 ms a message, 80 ms a megabyte" in out
    assert err.count("400 samples are enough for 200 of these workers") == 2  # methods, not seeds
    with (tmp_path / "model.csv").open() as text:
        rows = [row for row in csv.DictReader(text) if row["workers"] == "4"]
    assert [(row["run"], row["way"]) for row in rows] == [(run, way) for run in ("top-3", "GD") for way in scale.WAYS]
    played = {run.label: run for run in mc.run(mc.load_job(job), out=tmp_path / "out")}
    for row in rows:
        assert float(row["seconds"]) == pytest.approx(sum(float(row[part]) for part in scale.PARTS), rel=1e-4)
        bits = {way: float(np.diff(played[row["run"]].trace[f"wire_bits_{way}"])[-1]) for way in ("up", "down")}
        assert float(row["bits_up"]) == pytest.approx(bits["up"], rel=1e-4)
        if row["run"] == "GD" and row["way"] == "star":
            assert float(row["bits_down"]) == pytest.approx(bits["down"], rel=1e-4)
            assert float(row["exchange"]) == pytest.approx(2e-3 + 0.75e-8 * (bits["up"] + bits["down"]) + 4e-5, rel=1e-4)  # rank 0 hosts one
    scale.main([*line, str(tmp_path / "model.png"), "--only", "GD", "--shard", "5", "--ranks", "3"])
    assert (tmp_path / "model.png").stat().st_size > 10_000
    assert capsys.readouterr().out.startswith("GD\n  star, 3 ranks, 5 samples each;")


def test_wrong_models_are_refused_in_a_line(tmp_path, capsys):
    (tmp_path / "job.toml").write_text(JOB.replace('"gd"', '"async-sgd"'))
    job = tmp_path / "job.toml"
    for more, said in (
        (["5:x"], "it should be numbers of workers, such as 10:10000"),
        (["5", "-o", "x.txt"], "-o x.txt: a model is written as one of .csv"),
        (["500", "--only", "top-3"], "400 samples are too few; --shard ROWS"),
        (["5", "--link", "none.toml"], "--link: file = 'none.toml' cannot be read: No such file or directory"),
        (["5", "--only", "GD"], "async-sgd: it has no rounds"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            scale.main([str(job), *more])
    many = "".join(f"[[run]]\nlabel = 'GD {i}'\nalgorithm = {{ name = 'gd', step = 0.{i + 1} }}\n" for i in range(13))
    job.write_text(JOB.split("[[run]]")[0] + many)
    with pytest.raises(UserError, match="13 methods are too many for one figure"):
        scale.main([str(job), "5", "-o", str(tmp_path / "x.png")])


PLAYED = """
data = {{ generator = "gspar", samples = {samples}, dim = 2000 }}
objective = {{ mu = 0.01, f_star = "skip" }}
workers = {{ count = {count}, master = "dedicated" }}
stop = {{ rounds = {rounds} }}
log = {{ every = {every} }}
algorithm = {{ name = "ef", step = 0.01 }}
up = {{ compressor = {{ name = "top-k", k = 20 }} }}
"""


def seconds_of(run: mc.Run) -> float:
    """A round's: the lower quartile, as of the parts that are timed, since other programs can only slow it."""
    return float(np.quantile(np.diff(run.timing["seconds"]) / np.diff(run.trace["round"]), 0.25))


def told(name: str, r: scale.RoundTimes, real: float) -> float:
    """The ratio of a modelled round and a real one, which `pytest -s` shows."""
    parts = ", ".join(f"{part} {scale.time_text(getattr(r, part))}" for part in scale.PARTS)
    print(f"\n{name}, {r.n} workers: {scale.time_text(r.seconds)} modelled ({parts}), {scale.time_text(real)} played: {r.seconds / real:.2f}")
    return r.seconds / real


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_rounds_of_20_100_and_1000_workers_take_what_the_model_says(ranks, tmp_path):
    """In one process, and on a master's rank and one more; the machine must be quiet."""
    link, ratios = LinkCosts(), []
    if ranks == 2:
        done = command("calibrate", "-o", tmp_path / "link.toml", "--repeats", "9", ranks=2)
        assert done.returncode == 0, done.stderr
        link = LinkCosts.of(tmp_path / "link.toml")
    file = tmp_path / "job.toml"
    file.write_text(PLAYED.format(samples=4000, count=20, rounds=40, every=5))
    costs = PartTimer().of(mc.load_job(file).runs[0])
    for n in (20, 100, 1000):
        file.write_text(PLAYED.format(samples=4000, count=n, rounds=40, every=5))
        done = command("run", file, "--out", tmp_path / f"out{n}", "--quiet", ranks=ranks if ranks > 1 else None, timeout=300)
        assert done.returncode == 0, done.stderr
        run = mc.read(next((tmp_path / f"out{n}").rglob("*.h5")))
        ratios.append(told(f"{ranks} ranks", Scale(costs, link, ranks).round("star", n), seconds_of(run)))
    assert ratios == [pytest.approx(1.0, abs=0.25)] * 3


@pytest.mark.slow
@pytest.mark.skipif(bool(hosts.missing()), reason=hosts.missing())
@pytest.mark.parametrize(("delay", "rate"), [(5.0, 1000.0), (50.0, 10.0)])
def test_rounds_between_hosts_take_what_the_model_says(delay, rate, tmp_path):
    """A master and two hosts of workers; tables of a link are those of messages between two hosts."""
    file = tmp_path / "job.toml"
    file.write_text(PLAYED.format(samples=400, count=20, rounds=40, every=5))
    with hosts.emulated(3, delay, rate) as mpiexec:
        for ranks, line in (
            (2, ["calibrate", "-o", "link.toml", "--repeats", "7", "--largest", "64 kB"]),
            (3, ["run", "job.toml", "--out", "out", "--quiet"]),
        ):
            shown = [*mpiexec, str(ranks), str(BIN / "mpi-compress"), *line]
            done = subprocess.run(
                shown, cwd=tmp_path, env={**os.environ, "MPI_COMPRESS_CROWDED": "1"}, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, done.stderr
    assert tomllib.loads((tmp_path / "link.toml").read_text())["compute"]["message"] > 0
    costs = PartTimer().of(mc.load_job(file).runs[0])
    r = Scale(costs, LinkCosts.of(tmp_path / "link.toml"), 3).round("star", 20)
    (run,) = (mc.read(found) for found in (tmp_path / "out").rglob("*.h5"))
    assert told(f"{delay:g} ms, {rate:g} Mbit/s", r, seconds_of(run)) == pytest.approx(1.0, abs=0.25)


def timed(tmp_path, run, workers="count = 4", data='generator = "gspar"\nsamples = 400\ndim = 40'):
    file = tmp_path / "job.toml"
    file.write_text(f"[data]\n{data}\n[objective]\nmu = 0.01\n[workers]\n{workers}\n[stop]\nrounds = 2\n[[run]]\nlabel = 'it'\n{run}")
    return PartTimer().of(mc.load_job(file).runs[0])


def test_what_is_counted_of_a_round_is_that_of_its_messages(tmp_path):
    """GD sends 4 bytes of length and 40 floats up and down, and computes all rows of a shard."""
    costs = timed(tmp_path, 'algorithm = { name = "gd" }\nup = { codec = "dense" }\ndown = { codec = "dense" }')
    dense = 8 * (4 + 8 * 40)
    assert (costs.bits_up, costs.n_samples, costs.nonzeros, costs.dim, costs.share) == (dense, 400, 40, 40, 1.0)
    assert [costs.bits_down(m) for m in (1, 8, 32, 1000)] == pytest.approx([dense] * 4)
    assert [costs.samples(rows) for rows in (1, 100)] == pytest.approx([1, 100])
    parts = (costs.nonzero + costs.worker, costs.packing(4), costs.fold(4))
    assert 0 < min(parts) < max(parts) < 1, "seconds"


def test_a_minibatch_takes_as_many_samples_however_large_the_shard(tmp_path):
    few = 'algorithm = { name = "ef", step = 0.01, batch = 3 }\nup = { compressor = { name = "top-k", k = 3 }, codec = "fixed" }'
    costs = timed(tmp_path, few, "count = 8\nparticipate = 2")
    assert [costs.samples(rows) for rows in (10, 100)] == pytest.approx([3, 3])
    assert costs.share == 0.25
    assert costs.bits_up == 8 * (4 + 1 + 3 * 8 + -(-3 * 6 // 8))


def test_workers_that_are_played_are_no_more_than_rows_and_memory_allow(tmp_path):
    """Answers grow with the workers up to the largest play, of 32 workers, and are at most d floats and a length."""
    union = 'algorithm = { name = "ef", step = 0.01 }\nup = { compressor = { name = "top-k", k = 3 } }\ndown = { codec = "fixed" }'
    costs = timed(tmp_path, union)
    sizes = [costs.bits_down(m) for m in (1, 8, 32)]
    assert sizes == sorted(sizes)
    assert costs.bits_down(10**6) <= 64 * 40 + 64
    assert timed(tmp_path, union, "count = 2", 'generator = "gspar"\nsamples = 5\ndim = 40').n_samples == 5
