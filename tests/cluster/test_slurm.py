"""Scripts for SLURM, as far as they can be judged without one; and what `plan` tells of tasks: with stub commands in place of SLURM's."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from helpers.refusals import naming, refused
from helpers.running import BIN, SMALL_JOB, After, nothing_left
from helpers.slurm_stub import in_front, option, planned

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.cluster.batch import Array, Options, arrays
from mpi_compress.cluster.notes import key_of, new_note
from mpi_compress.cluster.slurm import Task
from mpi_compress.core.signals import Stopped
from mpi_compress.job.loading import load_job
from mpi_compress.results.writer import Recorder


def printed(capsys, *line) -> str:
    assert main(["submit", *map(str, line), "--dry-run"]) == 0
    return capsys.readouterr().out


def test_full_size_is_what_the_tasks_run(small_job, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_job.write_text(small_job.read_text() + "\n[full]\nstop.rounds = 60\n")
    assert f" run {small_job} --full --out results --index" in printed(capsys, small_job, "--full")
    assert "--full" not in printed(capsys, small_job)


def test_the_script_says_what_was_asked_for(small_job, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["--ntasks", 3, "--nodes", 2, "--time", "90", "--partition", "short", "--account", "me", "--max-running", 2]
    text = printed(
        capsys, small_job, *asked, "--launcher", "mpiexec", "--module", "gcc/12", "--sbatch=--mem=8G", "--set", "stop.rounds=7"
    )
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    lines = text.splitlines()
    for wanted in (
        "job-name=mpi-compress-small", "array=0-4%2", "ntasks=3", "nodes=2", "time=01:30:00", "partition=short", "account=me",
        "signal=B:USR1@120", "open-mode=append", "requeue", "mem=8G", f"output={tmp_path}/results/small/slurm-%A_%a.out",
    ):  # fmt: skip
        assert f"#SBATCH --{wanted}" in lines
    assert "module load gcc/12" in lines
    assert f"source {BIN / 'activate'}" in lines
    assert f"cd {tmp_path}" in lines
    assert f'mpiexec -n 3 mpi-compress run {small_job} --out results --set stop.rounds=7 --index "$index" &' in lines
    assert not list(tmp_path.rglob("submit*"))


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("90", "01:30:00"), ("30:00", "00:30:00"), ("120:30", "02:00:30"), ("1:02:03", "01:02:03"), ("1-12", "36:00:00"),
        ("1-12:30", "36:30:00"), ("1-00:00:30", "24:00:30"), ("2 h", "02:00:00"),
    ],
)
def test_a_limit_may_have_all_forms_of_slurm(given, asked, small_job, capsys):
    assert f"#SBATCH --time={asked}\n" in printed(capsys, small_job, "--time", given)


def test_a_rank_for_each_worker_and_the_master_unless_asked_otherwise_and_only_what_is_asked(small_job, tmp_path, capsys):
    text = printed(capsys, small_job, "--only", "CAT", "--launcher", "srun", "--mpi", "pmix", "--out", tmp_path)
    assert "#SBATCH --ntasks=8\n" in text
    assert "#SBATCH --array=4\n" in text
    assert "srun --mpi=pmix --kill-on-bad-exit=1 mpi-compress run" in text


def test_a_run_asks_for_what_its_own_table_says_and_its_id_stays(small_job, tmp_path, capsys):
    ids = {spec.index: spec.run_id for spec in load_job(small_job).runs}
    text = small_job.read_text().replace('label = "top-3"', 'label = "top-3"\nslurm = { partition = "long", time = "2 h" }')
    small_job.write_text(text.replace("workers.count", 'slurm = { partition = "short", ntasks = 3 }\nworkers.count', 1))
    assert {spec.index: spec.run_id for spec in load_job(small_job).runs} == ids
    short, long = printed(capsys, small_job, "--out", tmp_path, "--account", "me").split("#!/bin/bash")[1:]
    for line in ("array=0-1,3-4", "partition=short", "ntasks=3", "account=me"):
        assert f"#SBATCH --{line}\n" in short
    for line in ("array=2", "partition=long", "ntasks=8", "time=02:00:00", "account=me"):
        assert f"#SBATCH --{line}\n" in long
    assert "partition=other" in printed(capsys, small_job, "--partition", "other").split("array=2")[1]
    small_job.write_text(text.replace("partition", "partitoin"))
    refused(["submit", small_job, "--dry-run"], capsys, "top-3 slurm partitoin partition")
    small_job.write_text(text.replace('{ partition = "long", time = "2 h" }', "3"))
    refused(["plan", small_job], capsys, "top-3 slurm 3 [slurm]")


def test_what_is_done_is_not_submitted(small_job, tmp_path, capsys):
    out = ("--out", str(tmp_path))
    for only in ("GD", "top-3"):
        assert main(["run", str(small_job), "--only", only, *out, "--quiet"]) == 0
    assert "#SBATCH --array=1,3-4\n" in printed(capsys, small_job, *out)
    assert main(["submit", str(small_job), "--only", "GD", *out]) == 0
    assert nothing_left(capsys.readouterr().out)


@pytest.mark.parametrize(("options", "complaint"), [
    (["--time", "soon"], "--time: 'soon' is no time"),
    (["--warn", "x min"], "--warn: 'x min' is no time"),
    (["--time", "00:03:00"], "--time 00:03:00: is too short for a warning 2 min ahead"),
    (["--nodes", "-1"], "--nodes -1"),
    (["--nodes", "9", "--ntasks", "2"], "--nodes 9: is more than the 2 ranks of --ntasks"),
    (["--ntasks", "9"], "--ntasks 9: at most 8 ranks have work, one a worker, and the master"),
    (["--sbatch=--array=0-3"], "--sbatch '--array=0-3': `submit` sets it itself"),
    (["--sbatch=-n 4"], "--sbatch '-n 4': `submit` sets it itself, one array task a run; it takes --ntasks"),
    (["--sbatch=--output=mine.log"], "`submit` sets it itself"),
    ([], "there is no sbatch here; --dry-run prints the script"),
])  # fmt: skip
def test_what_cannot_be_submitted_is_refused(options, complaint, small_job, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(["submit", small_job, "--out", tmp_path, *options], capfd, complaint)
    assert not list(tmp_path.rglob("submit*"))


@pytest.mark.parametrize(("log", "words"), [
    (
        "GD: goes on from round 3\nmpi-compress: a9a: no such set\nsrun: error: node1: task 0: Exited with exit code 2\n",
        "a9a: no such set",
    ),
    (
        "mpi-compress: rank 2: Traceback (most recent call last):\n  File x\n    y\nValueError: wrong\n\nmore\n",
        "ValueError: wrong",
    ),
    ("YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\nPlease see the FAQ\n", "Killed (signal 9)"),
    ("slurmstepd: error: *** JOB 1 CANCELLED DUE TO TIME LIMIT ***\n", "*** JOB 1 CANCELLED DUE TO TIME LIMIT ***"),
    ("bash: line 9: module: command not found\n", "bash: line 9: module: command not found"),
    ("earlier: not this one\nmpi-compress: the run failed:\n  File x, line 1\nValueError: no more\nafterwards\n", "ValueError: no more"),
    ("earlier\nmpi-compress: it is full\nafterwards\n", "it is full"),
    ("", ""),
])  # fmt: skip
def test_the_last_words_of_a_task_say_why_it_ended(log, words, tmp_path):
    file = tmp_path / "slurm-1_0.out"
    file.write_text(log)
    assert Task("1_0", "", "", file).last_try().last_words == words
    assert Task("1_0", "", "", Path("nowhere")).last_try().last_words == ""


def test_a_queue_that_does_not_answer_is_not_an_empty_one(small_job, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = load_job(small_job)
    note = new_note(tmp_path / "results" / job.name, [Array(0, {key_of(job.runs[0]): 0})])
    note.arrays[0].job = "17"
    note.write()
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2\nexit 1\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert main(["plan", str(small_job)]) == 0
    assert "not known (slurm_load_jobs error: Unable to contact slurm controller), SLURM 17_0" in capsys.readouterr().out
    refused(["submit", small_job], capsys, "not known: slurm_load_jobs error: Unable to contact")
    assert "#SBATCH --array=0" in printed(capsys, small_job)
    assert main(["run", str(small_job), "--index", "0", "--quiet"]) == 0
    assert main(["submit", str(small_job), "--only", job.runs[0].label]) == 0
    assert nothing_left(capsys.readouterr().out)


@pytest.mark.parametrize("script", ["one-node", "several-nodes"])
def test_ready_scripts_are_bash(script):
    file = Path(__file__).parents[2] / "jobs" / "slurm" / f"{script}.slurm"
    assert subprocess.run(["bash", "-n", file]).returncode == 0


NAMES = [
    "two words", "it's", 'say "so"', "a,b", "50%u", "%A_%a", "tür", "$(touch made)", "`touch made`", "x" * 200,
    "-n", "#", "{braces}", "a;b&c|d", "*",
]  # fmt: skip
GRID = SMALL_JOB.partition("[[run]]")[0] + '[grid]\nseed = SEEDS\n[[run]]\nlabel = "GD"\nalgorithm = { name = "gd" }\n'


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    return in_front(tmp_path / "work", monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_job_is_queued_found_and_logged(name, slurm, tmp_path, capsys):
    job = Path("jobs", f"{name}.toml")
    job.parent.mkdir()
    job.write_text(SMALL_JOB)
    assert main(["submit", str(job), "--launcher", "srun"]) == 0
    folder = tmp_path / "work" / "results" / name
    script = (folder / "submitted" / "1" / "submit.sh").read_text()
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0
    (head,) = [line for line in script.splitlines() if line.startswith("#SBATCH --output=")] or [""]
    assert (f"{folder}/".replace("%", "%%") + "slurm-%A_%a.out") in head.replace("'\"'\"'", "'")
    slurm.queue(*(f"1001_{i}|PENDING|Priority|" for i in range(5)), f"9_0|RUNNING|None|{name}")
    capsys.readouterr()
    assert main(["plan", str(job)]) == 0
    assert capsys.readouterr().out.count("queued (Priority), SLURM 1001_") == 5
    assert main(["submit", str(job)]) == 0
    assert nothing_left(capsys.readouterr().out)
    if name in ("it's", "50%u", "$(touch made)"):
        assert slurm.task("1001", 0).returncode == 0
        assert len(list(folder.glob("*.h5"))) == 1
    assert not Path("made").exists()


@pytest.mark.parametrize("name", ["line\nline", "back\\slash"])
def test_a_folder_that_slurm_does_not_write_into_is_refused(name, slurm, capsys):
    job = Path(f"{name}.toml")
    job.write_text(SMALL_JOB)
    assert main(["submit", str(job)]) == 2
    assert "SLURM writes its output into no folder with a backslash or an unprintable letter" in capsys.readouterr().err
    assert not slurm.submitted


def test_tasks_are_written_as_the_ranges_that_sbatch_takes():
    assert Array(0, {str(run): run for run in (0, 1, 2, 4, 7, 8)}).text() == "0-2,4,7-8"
    assert Array(0, {"d": 3}).text(2) == "3%2"
    assert arrays({0: "a", 1: "b", 5: "c", 12: "d"}, 5) == [Array(0, {"a": 0, "b": 1}), Array(5, {"c": 0}), Array(10, {"d": 2})]
    many = {run: str(run) for run in range(10_000)}
    assert [sum(len(a.tasks) for a in arrays(many, most)) for most in (1, 1001, 10_000)] == [10_000] * 3


@pytest.mark.slow
def test_more_runs_than_the_site_has_in_an_array_are_submitted_in_parts_one_after_the_other(slurm, capsys):
    (slurm.folder / "most").write_text("400")
    drawn = 'up.compressor = { name = "random-k", k = 2 }\n'  # else the seeds are copies of the first
    Path("many.toml").write_text(GRID.replace("SEEDS", str([*range(1000)])) + drawn)
    assert main(["submit", "many.toml", "--max-running", "4", "--launcher", "srun"]) == 0
    assert "submitted 1000 runs as jobs 1001, 1002, 1003;" in capsys.readouterr().out
    parts = [(option(a, "array"), option(a, "dependency"), a[-1]) for a in slurm.submitted.values()]
    assert parts == [("0-399%4", "", "0"), ("0-399%4", "afterany:1001", "400"), ("0-199%4", "afterany:1002", "800")]
    assert slurm.task("1003", 7).returncode == 0
    (played,) = map(mc.read, Path("results/many").glob("*.h5"))
    assert played.attrs["run_id"] == load_job("many.toml", index=807).runs[0].run_id
    slurm.queue(*(f"{job}_{i}|PENDING|Priority|" for job, n in ((1001, 400), (1002, 400), (1003, 200)) for i in range(n)))
    begun = time.process_time()
    assert main(["plan", "many.toml"]) == 0
    assert time.process_time() - begun < 6  # a quarter of it where nothing else runs; it was 500 s, most of them asleep
    assert capsys.readouterr().out.count("queued (Priority), SLURM 100") == 999


def test_parts_that_slurm_refuses_are_submitted_by_the_same_command_later(slurm, capsys):
    (slurm.folder / "most").write_text("2")
    (slurm.folder / "refuse").write_text("1003")
    Path("small.toml").write_text(SMALL_JOB)
    said = "4 of 5 runs are submitted, and the same command submits the others: sbatch refuses"
    assert said in refused(["submit", "small.toml"], capsys)
    slurm.queue(*(f"{job}_{i}|PENDING|Priority|" for job in (1001, 1002) for i in (0, 1)))
    (slurm.folder / "refuse").unlink()
    assert main(["submit", "small.toml"]) == 0
    assert "submitted 1 run as job 1003" in capsys.readouterr().out
    assert slurm.submitted["1003"][-1] == "4"


def test_a_dry_run_says_how_each_part_is_submitted(slurm, capsys):
    (slurm.folder / "most").write_text("3")
    Path("small.toml").write_text(SMALL_JOB)
    assert main(["submit", "small.toml", "--dry-run", "--max-running", "2"]) == 0
    said = capsys.readouterr().out
    assert (
        "# sbatch --array=0-2%2 submit.sh 0\n# sbatch --array=0-1%2 '--dependency=afterany:<the job before>' submit.sh 3\n" in said
    )
    assert "#SBATCH --array" not in said


@pytest.fixture
def stopped(slurm, monkeypatch):
    """A run that was submitted as task 1001_0 and has been stopped and saved; and its `.part`."""
    Path("small.toml").write_text(SMALL_JOB)
    assert main(["submit", "small.toml", "--only", "GD"]) == 0
    slurm.queue()
    with pytest.raises(Stopped):
        mc.run(load_job("small.toml", only="GD"), interrupts=After(1))
    return next(Path("results/small").glob("*.part"))


FIRST = "mpi-compress task begins: run 0, 2026-11-22 10:00:00\nmpi-compress: GD: stopped by SIGUSR1, and saved\nmpi-compress task ends with status 75\n"
AGAIN = "mpi-compress task begins: run 0, 2026-11-22 11:00:00\n"


def test_a_plan_tells_how_the_last_try_ended(stopped, slurm, capsys):
    log = Path("results/small/slurm-1001_0.out")
    reached = planned(capsys).removeprefix("stopped: by the test")
    assert reached.startswith(" (round ")
    log.write_text(FIRST)
    assert planned(capsys) == f"stopped: by the test{reached}"
    log.write_text(FIRST + AGAIN + "Fatal error in internal_Init: Other MPI error\nmpi-compress task ends with status 15\n")
    assert re.search(naming(f"failed: Fatal error in internal_Init: Other MPI error{reached} {log}"), planned(capsys))
    killed = "*** JOB 1001 ON node1 CANCELLED AT 2026-11-22T12:00:00 DUE TO TIME LIMIT ***"
    log.write_text(FIRST + AGAIN + f"slurmstepd-node1: error: {killed}\n")
    assert re.search(naming(f"failed: limit: {killed}{reached} {log}"), planned(capsys))
    log.write_text(FIRST + AGAIN)
    slurm.queue("1001_0|OUT_OF_MEMORY|OutOfMemory|")
    assert re.search(naming(f"failed: memory: without a word{reached} {log}"), planned(capsys))
    slurm.queue("1001_0|PENDING|BeginTime|")
    assert planned(capsys) == f"queued (BeginTime), SLURM 1001_0{reached}"


def test_what_was_played_by_hand_after_a_task_is_newer(stopped, slurm, capsys):
    log = Path("results/small/slurm-1001_0.out")
    log.write_text(AGAIN + "mpi-compress: out of memory: none\nmpi-compress task ends with status 3\n")
    assert re.search(naming("failed: none (round "), planned(capsys))
    os.utime(log, (time.time() - 100, time.time() - 100))
    assert planned(capsys).startswith("stopped: by the test (round ")


def test_a_plan_tells_since_when_a_running_task_has_written_no_row(stopped, slurm, capsys):
    slurm.queue("1001_0|RUNNING|None|")
    assert "no row" not in planned(capsys)
    os.utime(stopped, (time.time() - 250, time.time() - 250))
    assert planned(capsys).endswith(" 4 min")
    slurm.queue("1001_0|PENDING|Priority|")
    assert "no row" not in planned(capsys)
    recorder = Recorder(Path(str(stopped).removesuffix(".part")), {"label": "GD", "reason": ""})
    os.utime(stopped, (time.time() - 7000, time.time() - 7000))
    assert re.search(naming("running SLURM 1001_0 117 min"), planned(capsys))
    recorder.abandon("stopped", "by the test")


BAD_WORDS = [
    ("mpi", "pmi2; touch X;"), ("partition", "a\n#SBATCH --uid=0"), ("partition", "a b"), ("account", "$(id)"), ("account", ""),
    ("modules", ["gcc`id`"]), ("modules", "gcc/12"), ("sbatch", ["--comment=x\ntouch X"]), ("sbatch", ["touch X"]), ("sbatch", ["--x=a;b"]),
    ("sbatch", ["--x='a"]), ("launcher", "x; touch X"), ("launcher", "mpirun"), ("venv", "/a\x1b[2J"), ("venv", "a\nb"), ("time", "1\n2"),
    ("warn", "2 min; touch X"), ("ntasks", "4; touch X"), ("partition", "\u202ex"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), BAD_WORDS)
def test_an_option_that_is_no_word_is_refused_in_a_table_and_on_the_command_line(key, value, small_job, capsys):
    text = small_job.read_text()
    small_job.write_text(f"{text}\n[slurm]\n{key} = {json.dumps(value)}\n")
    line = refused(["submit", small_job, "--dry-run"], capsys)
    assert re.search(rf"--{key.removesuffix('s')}|slurm", line)
    small_job.write_text(text)
    words = {"modules": "module"}.get(key, key)
    if value != "gcc/12":  # one module is no list in a table alone
        refused(["submit", small_job, "--dry-run", f"--{words}={value[0] if isinstance(value, list) else value}"], capsys)


@pytest.mark.parametrize("option", [
    "--mem=8G", "--mem 8G", "--exclude=n[1-4],m2", "--dependency=afterok:1:2?afternotok:3", "--mail-user=a@b.org", "-C fast",
    "--constraint=[rack1|rack2]&(fast*2)", "--gres=gpu:2", "--exclusive", "--comment=two words", "--begin=2026-12-01T10:00:00",
])  # fmt: skip
def test_options_that_sbatch_knows_are_words(option):
    assert option in Options(sbatch=[option]).sbatch


def test_a_script_sets_what_a_site_may_not_pass_on_and_asks_for_what_the_plan_says(small_job, capsys, monkeypatch):
    monkeypatch.setenv("MPI_COMPRESS_DATA", "/data of/all")
    lines = printed(capsys, small_job).splitlines()
    assert "#SBATCH --cpus-per-task=1" in lines
    assert "#SBATCH --mem-per-cpu=1024M" in lines
    assert {"export OMP_NUM_THREADS=1", "export MPI_COMPRESS_DATA='/data of/all'"} <= {*lines}
    assert any(line.startswith("unset SLURM_EXPORT_ENV ") for line in lines)
    for own in ("--mem=3G", "--mem-per-cpu=3G", "--mem 3G"):
        text = printed(capsys, small_job, f"--sbatch={own}")
        assert re.findall("#SBATCH --mem.*", text) == [f"#SBATCH {own}"]
    assert printed(capsys, small_job, "--sbatch=--cpus-per-task=4").count("cpus-per-task") == 1
    text = printed(capsys, small_job, "--set", 'data={ generator = "gspar", samples = 10, dim = 30000000 }')
    assert int(re.search("--mem-per-cpu=(.*)M", text)[1]) > 10_000


def test_a_site_that_gives_cores_alone_is_not_asked_for_memory(slurm, capsys):
    Path("small.toml").write_text(SMALL_JOB)
    slurm.command("scontrol", 'echo "SelectTypeParameters = CR_CPU"')
    assert "--mem" not in printed(capsys, "small.toml")
    slurm.command("scontrol", 'echo "SelectTypeParameters = CR_CORE_MEMORY"')
    assert "--mem-per-cpu=1024M" in printed(capsys, "small.toml")


def test_max_running_holds_for_all_arrays_of_a_job(slurm, capsys):
    Path("small.toml").write_text(SMALL_JOB)
    assert main(["submit", "small.toml", "--only", "GD", "--max-running", "1"]) == 0
    assert main(["submit", "small.toml", "--only", "CAT", "--max-running", "1"]) == 0
    assert [option(line, "dependency") for line in slurm.submitted.values()] == ["", "afterany:1001"]
    slurm.queue()  # both have ended
    assert main(["submit", "small.toml", "--only", "GD", "--max-running", "1", "--sbatch=--dependency=afterok:7"]) == 0
    assert main(["submit", "small.toml", "--only", "CAT", "--max-running", "1", "--sbatch=--dependency=afterok:7"]) == 0
    assert option(slurm.submitted["1004"], "dependency") == "afterok:7,afterany:1003"


@pytest.mark.parametrize(("row", "state"), [
    ("PENDING|Resources", "queued"), ("RUNNING|None", "running"), ("CANCELLED|None", "cancelled in the queue"),
])  # fmt: skip
def test_watch_and_plan_say_the_same_of_a_task(row, state, slurm, capsys):
    Path("small.toml").write_text(SMALL_JOB)
    assert main(["submit", "small.toml", "--only", "GD"]) == 0
    slurm.queue(f"1001|{row}|" if row.startswith("CANCELLED") else f"1001_0|{row}|")
    assert planned(capsys).startswith(state if state != "running" else "starting")
    assert main(["watch", "small.toml", "--only", "GD", "--once"]) == 0
    assert re.search(rf"GD +{state if state != 'running' else 'starting'}", capsys.readouterr().out)
    assert main(["submit", "small.toml", "--only", "GD", "--dry-run"]) == 0
    assert ("nothing to submit" in capsys.readouterr().out) == (state != "cancelled in the queue")
