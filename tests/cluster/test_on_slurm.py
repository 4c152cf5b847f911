"""On a real SLURM: what `submit` hands in runs, is interrupted, is queued again, and ends in the bytes of one process."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from helpers import slurm_here
from helpers.layouts import assert_equal
from helpers.running import BIN, PATIENT, below_data, gone_on, nothing_left
from helpers.slurm_here import slow_part, wait_until

import mpi_compress as mc
from mpi_compress.core.blame import SWITCH
from mpi_compress.results.locks import is_being_written

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(slurm_here.missing()), reason=slurm_here.missing())]

JOB = """
title = "on a cluster"
plugins = ["slow_part"]
seed = 3
data = { generator = "gspar", samples = 80, dim = 40 }
objective.mu = "1e-3 L"
workers.count = 4
stop.rounds = 150
[[run]]
label = "ef, 1"
algorithm = { name = "ef", batch = 1 }
up = { compressor = { name = "slow" } }
[[run]]
label = "ef, 2"
seed = 4
algorithm = { name = "ef", batch = 1 }
up = { compressor = { name = "slow" } }
[[run]]
label = "GD"
algorithm = { name = "gd" }
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The variables under which commands talk to a SLURM of two nodes."""
    with slurm_here.cluster(tmp_path_factory.mktemp("slurm"), nodes=2, cpus=6) as variables:
        yield variables


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job file in the current folder; `write` changes its text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow_part.py").write_text(slow_part())
    file = Path("cluster.toml")
    file.write_text(JOB)
    return file


def reference(job, folder, **settings):
    """The same in one process, without waiting."""
    return {run.label: run for run in mc.run(mc.load_job(job, settings), out=folder)}


def said_by(slurm, *line) -> str:
    done = subprocess.run([str(BIN / "mpi-compress"), *map(str, line)], env=slurm, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def states(slurm, job, *options) -> list[str]:
    """The last column of the plan."""
    return [re.split(r"GiB  ", line)[-1] for line in below_data(said_by(slurm, "plan", job, *options)) if "GiB  " in line]


def went_on() -> int:
    """How often a task went on from a checkpoint, by the tasks' output."""
    return sum(len(gone_on(f.read_text())) for f in Path("results/cluster").glob("slurm-*.out"))


def queue_is_empty(slurm) -> bool:
    """Whether SLURM says so: a controller that is too busy to answer says nothing."""
    asked = subprocess.run(["squeue", "-h", "--me"], env=slurm, capture_output=True, text=True)
    return asked.returncode == 0 and not asked.stdout.strip()


@pytest.mark.parametrize("launcher", ["srun", "mpiexec"])
def test_three_runs_of_five_ranks(launcher, slurm, job, tmp_path):
    said = said_by(slurm, "submit", job, "--time", "10", "--launcher", launcher, "--max-running", "2")
    assert said.startswith("submitted 3 runs as job ")
    assert any("SLURM" in state for state in states(slurm, job))
    assert nothing_left(said_by(slurm, "submit", job))
    wait_until(lambda: queue_is_empty(slurm), PATIENT)
    assert states(slurm, job) == ["done"] * 3
    for label, run in reference(job, tmp_path / "one").items():
        (there,) = (r for r in map(mc.read, Path("results/cluster").glob("*.h5")) if r.label == label)
        assert there.attrs["n_ranks"] == 5
        assert_equal(run.file, there.file)
    assert nothing_left(said_by(slurm, "submit", job))


def test_runs_go_to_the_partitions_that_their_tables_name(slurm, job, tmp_path):
    text = JOB.replace('label = "GD"', 'label = "GD"\nslurm = { partition = "urgent", ntasks = 3 }')
    job.write_text(text.replace("workers.count = 4", 'workers.count = 4\nslurm = { partition = "main", time = "10 min" }'))
    said = said_by(slurm, "submit", job)
    first, last = re.findall(r"\d+", said.partition(" as jobs ")[2].partition(";")[0])
    show = lambda number: subprocess.check_output(["scontrol", "show", "job", number], env=slurm, text=True)  # noqa: E731
    assert [re.findall(r"Partition=(\w+)", show(number))[0] for number in (first, last)] == ["main", "urgent"]
    wait_until(lambda: queue_is_empty(slurm), PATIENT)
    assert states(slurm, job) == ["done"] * 3
    for label, run in reference(job, tmp_path / "one").items():
        (there,) = (r for r in map(mc.read, Path("results/cluster").glob("*.h5")) if r.label == label)
        assert there.attrs["n_ranks"] == (3 if label == "GD" else 5)
        assert_equal(run.file, there.file)


def test_a_run_on_two_nodes_has_the_numbers_of_one_process(slurm, job, tmp_path):
    said_by(slurm, "submit", job, "--nodes", 2, "--launcher", "srun", "--only", "GD", "--sbatch=--ntasks-per-node=3")
    wait_until(lambda: queue_is_empty(slurm), PATIENT)
    (there,) = map(mc.read, Path("results/cluster").glob("*.h5"))
    assert_equal(reference(job, tmp_path / "one")["GD"].file, there.file)


def test_a_time_limit_interrupts_and_the_task_queued_again_ends_in_the_same_bytes(slurm, job, tmp_path):
    whole = reference(job, tmp_path / "one")["ef, 1"]
    (tmp_path / "slow_part.py").write_text(slow_part(0.9))
    said_by(slurm, "submit", job, "--only", "ef, 1", "--time", "00:02:00", "--warn", "30 s")
    wait_until(lambda: any(state.startswith("running") and "loss" in state for state in states(slurm, job)), PATIENT)
    wait_until(lambda: queue_is_empty(slurm), 3 * PATIENT)
    (there,) = map(mc.read, Path("results/cluster").glob("*.h5"))
    assert_equal(whole.file, there.file)
    (log,) = Path("results/cluster").glob("slurm-*.out")
    assert log.read_text().count("stopped by SIGUSR1, and saved") >= 1
    assert gone_on(log.read_text())


def test_what_is_cancelled_is_saved_and_can_be_submitted_again(slurm, job, tmp_path):
    """Under srun. Under mpiexec the end reaches its helpers as well, which end the ranks: there the last checkpoint is left."""
    job.write_text(job.read_text() + "[checkpoint]\nevery = 5\n")
    whole = reference(job, tmp_path / "one")["ef, 2"]
    (tmp_path / "slow_part.py").write_text(slow_part(0.3))
    for times, launcher in enumerate(("srun", "mpiexec")):
        said_by(slurm, "submit", job, "--only", "ef, 2", "--launcher", launcher)
        wait_until(lambda times=times: went_on() == times, PATIENT)
        wait_until(lambda: any(state.startswith("running") and "loss" in state for state in states(slurm, job)), PATIENT)
        wait_until(lambda: is_being_written(next(Path("results").rglob("*.part"))), PATIENT)
        subprocess.run(["scancel", "--me"], env=slurm, check=True)
        wait_until(lambda: queue_is_empty(slurm), 30)
        saved = "stopped: by SIGTERM (round "
        assert states(slurm, job)[1].startswith(saved if launcher == "srun" else (saved, "failed: "))
    said_by(slurm, "submit", job, "--only", "ef, 2")
    wait_until(lambda: queue_is_empty(slurm), PATIENT)
    (there,) = map(mc.read, Path("results/cluster").glob("*.h5"))
    assert_equal(whole.file, there.file)
    assert went_on() == 2


def test_what_is_preempted_is_saved_and_goes_on_to_the_same_bytes(slurm, job, tmp_path):
    """Under the name that SLURM would take for patterns, and with the job file gone meanwhile."""
    job = job.rename("50%u, it's.toml")
    whole = reference(job, tmp_path / "one")["ef, 1"]
    (tmp_path / "slow_part.py").write_text(slow_part(0.2))
    said_by(slurm, "submit", job, "--only", "ef, 1", "--launcher", "srun", "--time", "10", "--sbatch=--exclusive")
    (tmp_path / "slow_part.py").unlink()
    job.unlink()
    wait_until(lambda: any(is_being_written(part) for part in Path("results").rglob("*.part")), PATIENT)
    time.sleep(5)
    urgent = ["sbatch", "-p", "urgent", "--nodes=2", "--exclusive", "-o", os.devnull, "--wrap", "sleep 2"]
    subprocess.run(urgent, env=slurm, check=True, capture_output=True)
    wait_until(lambda: queue_is_empty(slurm), PATIENT)
    (there,) = map(mc.read, Path("results").rglob("*.h5"))
    assert there.trace["loss"].tobytes() == whole.trace["loss"].tobytes()
    (log,) = Path("results").rglob("slurm-*.out")
    text = log.read_text()
    assert text.count("stopped by SIGTERM, and saved") == 1
    assert len(gone_on(text)) == 1
    assert text.count(" task begins") == 2


@pytest.mark.parametrize("launcher", ["srun", "mpiexec"])
def test_a_task_that_fails_leaves_the_others_alone(launcher, slurm, job):
    job.write_text(job.read_text().replace('name = "slow"', 'name = "slow", fails_in = 20', 1))
    said_by(slurm, "submit", job, "--time", "5", "--launcher", launcher)
    wait_until(lambda: queue_is_empty(slurm), PATIENT)
    first, *others = states(slurm, job)
    error, switch = r"RuntimeError: broken on purpose \(.*slow_part.*\)", f"(; {SWITCH}=1[^)]*)?"
    assert re.match(rf"failed: (rank \d: )?{error}{switch} .*/slurm-\d+_0\.out\)", first)
    assert others == ["done", "done"]


def test_tasks_that_do_not_know_of_each_other_stop_with_one_line(slurm, job):
    line = ["srun", "--mpi=none", "-n", "3", BIN / "mpi-compress", "run", job]
    done = subprocess.run([str(part) for part in line], env=slurm, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    (complaint,) = (text for text in done.stderr.splitlines() if "mpi-compress" in text)
    assert "3 tasks" in complaint
    assert "srun --mpi=pmi2" in complaint
    assert not list(Path("results").rglob("*.h5"))


@pytest.mark.parametrize("script", ["one-node.slurm", "several-nodes.slurm"])
def test_ready_scripts(script, slurm, job, tmp_path):
    text = (Path(__file__).parents[2] / "jobs" / "slurm" / script).read_text()
    text = text.replace("jobs/demo.toml", str(job)).replace(".venv/bin/activate", str(BIN / "activate"))
    text = text.replace("--ntasks-per-node=20", "--ntasks-per-node=3")
    Path(script).write_text(text)
    subprocess.run(["sbatch", script], env={**slurm, "OUT": os.devnull}, check=True, capture_output=True)
    wait_until(lambda: queue_is_empty(slurm), PATIENT)
    for label, run in reference(job, tmp_path / "one").items():
        (there,) = (r for r in map(mc.read, Path("results/cluster").glob("*.h5")) if r.label == label)
        assert there.attrs["n_ranks"] > 1
        assert_equal(run.file, there.file)


def test_a_site_that_passes_no_environment_on_runs_the_ranks(slurm, job, tmp_path):
    """`--export=NONE`, as some sites have it for all; sets are found where they were when the job was submitted."""
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "tiny").write_text("".join(f"{(-1) ** i} {i % 7 + 1}:1\n" for i in range(40)))
    asked = {**slurm, "MPI_COMPRESS_DATA": str(tmp_path / "sets")}
    said_by(asked, "submit", job, "--only", "GD", "--set", 'data={ name = "tiny" }', "--sbatch=--export=NONE", "--ntasks", 3)
    wait_until(lambda: queue_is_empty(slurm))
    assert states(asked, job, "--only", "GD", "--set", 'data={ name = "tiny" }') == ["done"]


def test_only_so_many_tasks_of_a_job_run_in_all_its_arrays(slurm, job, tmp_path):
    """Two submissions of `--max-running 1`: the second array waits for the first one."""
    (tmp_path / "slow_part.py").write_text(slow_part(0.1))
    numbers = []
    for label in ("ef, 1", "ef, 2"):
        said = said_by(slurm, "submit", job, "--only", label, "--ntasks", 2, "--max-running", 1)
        numbers.append(re.search(r"as job (\d+)", said)[1])
    asked = subprocess.run(["squeue", "-h", "-j", numbers[1], "-o", "%E"], env=slurm, capture_output=True, text=True).stdout
    assert f"afterany:{numbers[0]}" in asked
    wait_until(lambda: states(slurm, job, "--only", "ef*") == ["done"] * 2)


def test_what_is_cancelled_in_the_queue_is_said_and_submitted_again(slurm, job):
    said_by(slurm, "submit", job, "--only", "GD", "--ntasks", 2, "--sbatch=--begin=now+1hour")
    assert "queued" in said_by(slurm, "watch", job, "--only", "GD", "--once")
    subprocess.run(["scancel", "--me"], env=slurm, check=True)
    wait_until(lambda: "cancelled in the queue" in states(slurm, job, "--only", "GD")[0])
    assert "cancelled in the queue" in said_by(slurm, "watch", job, "--only", "GD", "--once")
    said_by(slurm, "submit", job, "--only", "GD", "--ntasks", 2)
    wait_until(lambda: states(slurm, job, "--only", "GD") == ["done"])
