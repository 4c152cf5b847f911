"""Between hosts that share nothing but their network: emulated ones, with a delay and a rate."""

import os
import re
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from helpers.layouts import assert_equal
from helpers.running import BIN, SMALL_JOB

import mpi_compress as mc
from benchmarks import _hosts as hosts
from benchmarks import links

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(hosts.missing()), reason=hosts.missing())]


def there(mpiexec: list[str], ranks: int, *line: str | Path, folder: Path) -> subprocess.CompletedProcess:
    command = [*mpiexec, str(ranks), BIN / "mpi-compress", *line]
    variables = {**os.environ, "MPI_COMPRESS_CROWDED": "1"}
    return subprocess.run([str(c) for c in command], cwd=folder, env=variables, capture_output=True, text=True, timeout=300)


def test_results_are_those_of_one_process(tmp_path):
    job = tmp_path / "small.toml"
    job.write_text(SMALL_JOB)
    whole = mc.run(mc.load_job(job), out=tmp_path / "one")
    with hosts.emulated(3, delay_ms=5, rate_mbit=1000) as mpiexec:
        for ranks in (3, 5):
            done = there(mpiexec, ranks, "run", job, "--out", f"out{ranks}", "--quiet", folder=tmp_path)
            assert done.returncode == 0, done.stderr
            for run in whole:
                other = mc.read(tmp_path / f"out{ranks}" / "small" / run.file.name)
                assert_equal(run.file, other.file)
                assert other.timing["seconds"][-1] > 12 * 0.010  # 12 rounds, each there and back


def test_calibration_finds_delay_and_rate(tmp_path):
    """5 ms at 1 Gbit/s, 50 ms at 10 Mbit/s, and the milliseconds that this machine's programs take to see a message."""
    for delay, rate in ((5.0, 1000.0), (50.0, 10.0)):
        with hosts.emulated(2, delay, rate) as mpiexec:
            done = there(mpiexec, 2, "calibrate", "-o", "link.toml", "--repeats", "5", "--largest", "1 MB", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        cost = mc.costs.costs.build({"name": "table", "file": str(tmp_path / "link.toml")}, "cost")
        assert 0.95 * delay < 1e3 * cost.cost(0.0) < 1.1 * delay + 3
        if rate < 100:
            assert 0.8 / (rate * 1e6) < (cost.cost(8e6) - cost.cost(0.0)) / 8e6 < 2 / (rate * 1e6)


def test_the_benchmark_runs_a_job_on_emulated_hosts_and_says_its_seconds_beside_the_models(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL_JOB)
    assert links.main(["small.toml", "--link", "20 ms, 100 Mbit/s", "--only", "GD"]) == 0
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if re.match("GD +complete", line))
    measured, modelled = map(float, row[3:5])
    assert measured > 12 * 0.040  # 12 rounds, each there and back
    assert measured == pytest.approx(modelled, rel=0.25)
    (result,) = tmp_path.glob("results/small/20ms-100Mbit/small/*.h5")
    assert mc.read(result).attrs["n_ranks"] == 3


ONE_WORKER = """
data = { generator = "gspar", samples = 50, dim = 1500 }
algorithm.name = "gd"
stop.rounds = 30
log.every = 5
"""


@pytest.mark.parametrize(("delay", "rate"), [(5.0, 1000.0), (50.0, 10.0)])
def test_the_model_of_links_says_what_rounds_take(delay, rate, tmp_path):
    """A worker and a master on hosts of their own: the clock of "trace", with the calibrated link, is within 25 % of real time.

    Messages have 12 kB: a little more, and TCP's first window of 10 segments, which has not grown, would add a wait of its own.
    """
    (tmp_path / "job.toml").write_text(ONE_WORKER)
    with hosts.emulated(2, delay, rate) as mpiexec:
        for line in (["calibrate", "-o", "link.toml", "--repeats", "7", "--largest", "64 kB"], ["run", "job.toml", "--out", "out", "--quiet"]):
            done = there(mpiexec, 2, *line, folder=tmp_path)
            assert done.returncode == 0, done.stderr
    link = tomllib.loads((tmp_path / "link.toml").read_text())
    rows = [[0, link["affine"]["c0"], 1 / link["affine"]["c1"]]]
    model = {"model": "trace", "rows": rows, "compute": str(tmp_path / "link.toml")}
    (modelled,) = mc.run({**tomllib.loads(ONE_WORKER), "cost": model}, out=tmp_path / "one")
    (real,) = (mc.read(file) for file in (tmp_path / "out").rglob("*.h5"))
    took, said = (np.median(np.diff(seconds)) for seconds in (real.timing["seconds"], modelled.trace["model_seconds"]))
    print(f"{delay:g} ms, {rate:g} Mbit/s: five rounds took {1e3 * took:.3g} ms, the model says {1e3 * said:.3g} ms")
    assert took == pytest.approx(said, rel=0.25)


def test_no_host_reads_data_that_others_parsed_in_its_own_cache(tmp_path):
    """Nothing but results need be shared: with a cache folder for each host, all ranks still get their rows."""
    job = tmp_path / "small.toml"
    job.write_text(SMALL_JOB)
    (whole,) = mc.run(mc.load_job(job).only("CAT"), out=tmp_path / "one")
    with hosts.emulated(3, delay_ms=1, rate_mbit=1000) as mpiexec:
        own = f'MPI_COMPRESS_CACHE={tmp_path}/cache-$(hostname) exec "$0" "$@"'
        program = [*mpiexec, "3", "bash", "-c", own, BIN / "mpi-compress", "run", job, "--only", "CAT", "--out", "out", "--quiet"]
        done = subprocess.run([str(c) for c in program], cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
    assert_equal(whole.file, tmp_path / "out" / "small" / whole.file.name)


def test_nothing_is_left_of_hosts_whose_starter_was_killed(tmp_path):
    """Neither ranks, nor the switch, nor names of namespaces and interfaces, nor files in /etc."""
    def standing() -> list[str]:
        processes = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
        lines = []
        for file in processes:
            with suppress(OSError):
                lines.append(file.read_text())
        return [line for line in lines if str(tmp_path) in line or "benchmarks/_hosts.py" in line]

    named = [sorted(map(str, folder.iterdir())) if folder.is_dir() else [] for folder in (Path("/run/netns"), Path("/etc/netns"))]
    interfaces = os.listdir("/sys/class/net")
    text = "import subprocess\nfrom benchmarks import _hosts\nwith _hosts.emulated(2, 5, 100) as mpiexec:\n"
    text += f"    subprocess.run([*mpiexec, '2', 'sh', '-c', 'touch {tmp_path}/$(hostname); sleep 100'])\n"
    starter = subprocess.Popen([sys.executable, "-c", text], cwd=Path(__file__).parents[2])
    for _ in range(600):
        if all((tmp_path / host).exists() for host in ("h0", "h1")):
            break
        time.sleep(0.1)
    assert len(standing()) > 2
    starter.kill()
    starter.wait()
    for _ in range(100):
        if not standing():
            break
        time.sleep(0.1)
    assert not standing()
    assert os.listdir("/sys/class/net") == interfaces
    assert named == [sorted(map(str, f.iterdir())) if f.is_dir() else [] for f in (Path("/run/netns"), Path("/etc/netns"))]
