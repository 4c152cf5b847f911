"""What is submitted is what is played, and is noted: with stub commands in place of SLURM's."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import h5py
import pytest
from helpers.refusals import refused
from helpers.running import SMALL_JOB, nothing_left
from helpers.slurm_stub import in_front, option

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core import seals
from mpi_compress.job.loading import freeze, load_job

PART = """
import mpi_compress as mc
from dataclasses import dataclass
from half_of import half

@mc.compressors.register("first-half")
@dataclass(frozen=True)
class FirstHalf(mc.Compressor):
    makes = mc.Dense

    def compress(self, v, t):
        return mc.Dense(half(v))
"""
HALF = "def half(v):\n    kept = v.copy()\n    kept[v.size // 2 :] = 0\n    return kept\n"
RUN = '[[run]]\nlabel = "{}"\nalgorithm = {{ name = "gd" }}\nup = {{ compressor = "first-half" }}\n'
JOB = (
    'plugins = ["part_of_mine"]\n[data]\ngenerator = "gspar"\nsamples = 60\ndim = 20\n[stop]\nrounds = 4\n'
    "[workers]\ncount = 3\n[objective]\nmu = 0.1\n" + RUN.format("one") + RUN.format("two")
)

pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")  # their plugins have one name


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    return in_front(tmp_path / "work", monkeypatch)


@pytest.fixture
def job(slurm):
    """A job with a plugin that uses a module beside it."""
    Path("part_of_mine.py").write_text(PART)
    Path("half_of.py").write_text(HALF)
    Path("mine.toml").write_text(JOB)
    return Path("mine.toml")


def noted(file: Path):
    """What a note says before its seal."""
    return json.JSONDecoder().raw_decode(file.read_text())[0]


def small(slurm) -> Path:
    Path("small.toml").write_text(SMALL_JOB)
    return Path("small.toml")


def test_tasks_play_what_was_submitted_whatever_the_job_and_its_plugin_become(job, slurm, capsys):
    wanted = {spec.label: spec.run_id for spec in load_job(job).runs}
    (whole,) = mc.run(load_job(job, only="two"), out="whole")
    assert main(["submit", str(job), "--launcher", "srun"]) == 0
    job.write_text(JOB.replace('[[run]]\nlabel = "one"', RUN.format("new") + '[[run]]\nlabel = "one"'))
    Path("part_of_mine.py").write_text("raise RuntimeError('in the middle of an edit')")
    Path("half_of.py").unlink()
    for task in (0, 1):
        assert slurm.task("1001", task).returncode == 0
    played = {run.label: run for run in map(mc.read, Path("results/mine").glob("*.h5"))}
    assert {label: run.attrs["run_id"] for label, run in played.items()} == wanted
    assert played["two"].trace["loss"].tobytes() == whole.trace["loss"].tobytes()


def test_a_task_whose_run_is_no_longer_what_was_submitted_refuses_in_one_line(slurm):
    Path("set.txt").write_text("".join(f"{(-1) ** i} {1 + i % 3}:1 {4 + i % 5}:{i}\n" for i in range(1, 30)))
    Path("file.toml").write_text('data = { path = "set.txt" }\nstop = { rounds = 3 }\nalgorithm = { name = "gd" }\n')
    assert main(["submit", "file.toml", "--launcher", "srun"]) == 0
    Path("set.txt").write_text("1 1:1\n-1 2:1\n")
    done = slurm.task("1001", 0)
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("mpi-compress: "))
    assert "was submitted: its data, or another file that it names, has changed since; submit it again" in line
    assert not list(Path("results").rglob("*.h5*"))


@pytest.mark.parametrize("what", ["job.toml", "part_of_mine.py"])
def test_a_frozen_file_that_was_changed_is_another_run(what, job, slurm):
    assert main(["submit", str(job), "--launcher", "srun"]) == 0
    (file,) = Path("results/mine/submitted/1").rglob(what)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"rounds = 4", b"rounds = 5").replace(b"mc.Dense(half(v))", b"mc.Dense(half(2 * v))"))
    assert file.read_bytes() != content
    done = slurm.task("1001", 0)
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("mpi-compress: "))
    assert "was submitted: " in line
    assert line.endswith("has changed since; submit it again")
    assert not list(Path("results").rglob("*.h5*"))


def test_a_damaged_note_is_refused_where_its_text_can_still_be_read(job, slurm, capsys):
    assert main(["submit", str(job), "--launcher", "srun"]) == 0
    note = Path("results/mine/submitted/1/note.json")
    note.write_bytes(note.read_bytes().replace(b'"job": "1001"', b'"job": "1003"'))
    said = refused(["plan", job], capsys)
    assert "note.json: this note of what was submitted cannot be read (it is not as it was written)" in said


def test_a_package_of_plugins_is_frozen_whole_and_files_beside_a_module_that_looks_for_them_are_linked(slurm, monkeypatch):
    package = Path("own_package")
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "later.py").write_text("share = 0.5\n")
    (package / "weights.txt").write_text("2")
    (package / "parts.py").write_text(
        PART.replace("from half_of import half", "from pathlib import Path\nw = float(Path(__file__).with_name('weights.txt').read_text())")
        .replace("        return mc.Dense(half(v))", "        from .inner.later import share\n        return mc.Dense(w * share * v)")
    )  # fmt: skip
    Path("mine.toml").write_text(JOB.replace("part_of_mine", "own_package.parts"))
    (whole,) = mc.run(load_job("mine.toml", only="one"), out="whole")
    freeze(Path("mine.toml"), load_job("mine.toml"), package)  # anywhere, even there
    assert main(["submit", "mine.toml", "--launcher", "srun"]) == 0
    (package / "inner" / "later.py").write_text("share = 0.1\n")
    assert slurm.task("1001", 0).returncode == 0
    (played,) = map(mc.read, Path("results").rglob("*.h5"))
    assert played.trace["loss"].tobytes() == whole.trace["loss"].tobytes()


def test_a_plan_beside_slurm_says_what_a_trial_says_to_ask_for(slurm, capsys):
    """A trial of 2 ms a round, and a job of 10^6 rounds: 33.3 min in one process."""
    job = small(slurm)
    assert main(["run", str(job), "--only", "CAT", "--set", "stop.rounds=4", "--quiet"]) == 0
    with h5py.File(next(Path("results/small").glob("CAT*.h5")), "r+") as h5:
        h5["timing"]["seconds"][-1] = 8e-3
        h5.attrs["status"] = "diverged"
        del h5.attrs["checksums"]
    for another in ("stop.rounds=4", "data.dim=99"):  # that run, which is done; or one on other data
        assert main(["plan", str(job), "--only", "CAT", "--set", another]) == 0
        assert "tried before" not in capsys.readouterr().out
    assert main(["plan", str(job), "--only", "CAT", "--set", "stop.rounds=1000000"]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert re.search(r"^the run to do was .* `submit --ntasks 1 --time 55 --sbatch=--mem=1G` would do, and it takes about 33 min$", said), said
    assert main(["plan", str(job), "--set", "stop.rounds=1000"]) == 0
    *_, said, count = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"0 of (.) runs done, \1 to do", count)
    assert re.search(r"^1 of the . runs to do .* `submit --pack .* all ., one after another, take about .* s$", said), said


def test_short_runs_are_submitted_with_a_proposal_to_pack_them_unless_it_is_said_what_a_task_is(slurm, capsys):
    job = small(slurm)
    assert main(["run", str(job), "--only", "CAT", "--set", "stop.rounds=4", "--quiet"]) == 0
    longer = [str(job), "--set", "stop.rounds=9"]
    capsys.readouterr()
    assert main(["plan", *longer]) == 0
    (proposed,) = [line for line in capsys.readouterr().out.splitlines() if "tried before" in line]
    assert re.search(r"`submit --pack \d+ .*` would do, and all \d, one after another, take about .* s$", proposed), proposed
    assert main(["submit", *longer, "--dry-run"]) == 0
    assert capsys.readouterr().err == f"mpi-compress: {proposed}\n"
    for word in ("--pack=2", "--ntasks=1"):
        assert main(["submit", *longer, word, "--dry-run"]) == 0
        assert not capsys.readouterr().err
    job.write_text(f"slurm.pack = 2\n{job.read_text()}")
    assert main(["submit", *longer, "--dry-run"]) == 0
    assert not capsys.readouterr().err


def test_a_dry_run_freezes_nothing(job, slurm, capsys):
    assert main(["submit", str(job), "--dry-run"]) == 0
    assert "--submitted" not in capsys.readouterr().out
    assert not Path("results").exists()


def test_what_is_not_there_any_more_is_named(job, slurm, capfd):
    refused(["run", job, "--index", "0", "--submitted", "nowhere", "--quiet"], capfd, "nowhere")


def test_a_note_is_there_before_sbatch_is_called(slurm):
    job = small(slurm)
    (slurm.folder / "after").write_text('cp results/small/submitted/1/note.json "$STUB/seen"\n')
    assert main(["submit", str(job)]) == 0
    (before,), (after,) = (
        noted(file) for file in (slurm.folder / "seen", Path("results/small/submitted/1/note.json"))
    )
    assert before == {**after, "job": None}
    assert after["job"] == "1001"
    assert after["tasks"] == {f"{spec.run_id} {spec.label}": spec.index for spec in load_job(job).runs}


def test_what_was_queued_while_the_disk_filled_is_found_and_not_queued_again(slurm, capsys, monkeypatch):
    """The folder of the submission cannot be written once sbatch has queued it; the queue still shows its mark."""
    job = small(slurm)
    (slurm.folder / "after").write_text(
        "mv results/small/submitted/1/note.json kept; rm -r results/small/submitted/1; touch results/small/submitted/1\n"
    )
    said = refused(["submit", job, "--only", "GD"], capsys)
    assert "job 1001 is submitted, but results/small/submitted/1/note.json cannot be written" in said
    place = Path("results/small/submitted/1")
    place.unlink()
    place.mkdir()
    Path("kept").rename(place / "note.json")
    assert main(["plan", str(job), "--only", "GD"]) == 0
    assert "queued (Resources), SLURM 1001_0" in capsys.readouterr().out
    assert main(["submit", str(job), "--only", "GD"]) == 0
    assert nothing_left(capsys.readouterr().out)
    assert noted(place / "note.json")[0]["job"] == "1001"
    assert len(slurm.submitted) == 1


def test_a_submission_that_was_killed_before_sbatch_keeps_nobody_from_submitting(slurm):
    job = small(slurm)
    assert main(["submit", str(job)]) == 0
    note = Path("results/small/submitted/1/note.json")
    (array,) = noted(note)
    note.write_text(json.dumps([{**array, "job": None, "mark": "of-nothing"}]))
    seals.seal(note)
    slurm.queue()
    assert main(["submit", str(job)]) == 0
    assert [file.name for file in sorted(Path("results/small/submitted").glob("[0-9]*"))] == ["1", "2"]


def test_an_answer_that_sbatch_gives_too_late_is_found_in_the_queue(slurm, capsys):
    job = small(slurm)
    (slurm.folder / "after").write_text("echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1\n")
    assert main(["submit", str(job)]) == 0
    assert "as job 1001;" in capsys.readouterr().out
    (slurm.folder / "after").write_text("touch $STUB/silent; exit 1\n")
    slurm.queue()
    refused(["submit", job], capsys, "sbatch not known")
    (slurm.folder / "silent").unlink()
    assert main(["submit", str(job)]) == 2 or not nothing_left(capsys.readouterr().out)


TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
FULL = "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"  # fmt: skip


def fails(slurm, said, times):
    """Let sbatch fail so many times, and then succeed."""
    script = (slurm.folder / "sbatch").read_text().removeprefix("#!/bin/bash\n")
    count = 'echo x >> "$STUB/tries"'
    slurm.command("sbatch", f'{count}\n[ $(wc -l < "$STUB/tries") -le {times} ] && {{ echo {shlex.quote(said)} >&2; exit 1; }}\n{script}')
    return lambda: len((slurm.folder / "tries").read_text().split())


@pytest.mark.parametrize("said", [TIMED_OUT, FULL], ids=["busy", "full"])
def test_a_busy_sbatch_is_tried_again_and_the_array_is_queued_once(said, slurm, capsys, monkeypatch):
    monkeypatch.setattr("mpi_compress.cluster.slurm._PAUSES", (0.01, 0.02, 0.03))
    job, tries = small(slurm), fails(slurm, said, 2)
    assert main(["submit", str(job)]) == 0
    told = capsys.readouterr()
    assert "as job 1001;" in told.out
    assert told.err.splitlines() == [f"mpi-compress: SLURM is busy ({said.splitlines()[-1]}); trying again in 0 s"] * 2
    assert (tries(), len(slurm.submitted), len(noted(Path("results/small/submitted/1/note.json")))) == (3, 1, 1)


def test_an_sbatch_that_stays_busy_is_one_line_that_says_what_would_do(slurm, capsys, monkeypatch):
    monkeypatch.setattr("mpi_compress.cluster.slurm._PAUSES", (0.01, 0.02, 0.03))
    job, tries = small(slurm), fails(slurm, FULL, 99)
    assert main(["submit", str(job)]) == 2
    told = capsys.readouterr().err.rstrip()
    assert told.endswith("time limits); the same command submits what is left, once fewer tasks are in the queue")
    assert (tries(), list(Path("results/small/submitted").glob("[0-9]*"))) == (4, [])


def test_what_sbatch_refuses_leaves_no_note(slurm, capsys):
    job = small(slurm)
    (slurm.folder / "refuse").write_text("0")
    assert refused(["submit", job], capsys).endswith("sbatch: error: refused on purpose")
    (slurm.folder / "silent").touch()
    fails(slurm, "sbatch: fatal: Could not establish a configuration source", 9)
    refused(["submit", job], capsys, "sbatch refuses Could not establish a configuration source")
    assert not list(Path("results/small/submitted").glob("[0-9]*"))


@pytest.mark.parametrize(
    "text", ["", "[{", '{"job": "17"}', '[{"job": "17"}]', '[{"job": 17, "tasks": {}}]', '[{"job": "1,2", "tasks": {"a": 0}}]', '[{"job": "17", "tasks": {"a": "0"}}]', "[null]", "\x00"]
)  # fmt: skip
@pytest.mark.parametrize("name", ["submitted/1/note.json", "submitted/3/note.json"])
def test_a_broken_note_is_an_error_that_names_it(name, text, slurm, capsys):
    job = small(slurm)
    note = Path("results/small") / name
    note.parent.mkdir(parents=True)
    note.write_text(text)
    for command in ("plan", "submit"):
        assert refused([command, job], capsys).startswith(f"mpi-compress: {note}: this note ")
    assert not slurm.submitted


def test_results_that_cannot_be_written_are_refused_in_one_line(slurm, tmp_path, capsys):
    job = small(slurm)
    (tmp_path / "file").write_text("")
    line = refused(["submit", job, "--out", tmp_path / "file" / "below"], capsys)
    assert line == f"mpi-compress: {tmp_path}/file/below/small: nothing can be written there: Not a directory"
    frozen = tmp_path / "frozen"
    frozen.mkdir()
    if subprocess.run(["mount", "--bind", "-o", "ro", frozen, frozen], capture_output=True).returncode:
        pytest.skip("only root may mount a folder read-only")
    try:
        refused(["submit", job, "--out", frozen], capsys, f"{frozen}/small: Read-only file system")
    finally:
        subprocess.run(["umount", frozen], check=True)
    assert not slurm.submitted


def test_two_submissions_at_once_queue_a_run_once(slurm, capsys):
    job = small(slurm)
    (slurm.folder / "after").write_text(
        '[ -e "$STUB/inner" ] || { touch "$STUB/inner"; PYTHON -m mpi_compress submit small.toml; } >"$STUB/inner.said" 2>&1\n'.replace(
            "PYTHON", sys.executable
        )
    )
    assert main(["submit", str(job)]) == 0
    assert "somebody else is submitting this job" in (slurm.folder / "inner.said").read_text()
    assert len(slurm.submitted) == 1


def test_frozen_places_are_those_that_were_frozen(slurm, tmp_path):
    """A plugin beside the job and one in the current folder keep their places to each other."""
    Path("jobs").mkdir()
    Path("jobs/mine.toml").write_text(JOB)
    Path("jobs/part_of_mine.py").write_text(PART)
    Path("half_of.py").write_text(HALF)
    (one, two) = (spec.run_id for spec in load_job("jobs/mine.toml").runs)
    kept = tmp_path / "kept"
    kept.mkdir()
    freeze(Path("jobs/mine.toml"), load_job("jobs/mine.toml"), kept)
    Path("jobs/part_of_mine.py").write_text("nothing = 0")
    code = f"from pathlib import Path; from mpi_compress.job.loading import load_job; print(*(spec.run_id for spec in load_job('jobs/mine.toml', frozen=Path('{kept}')).runs))"
    task = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # it runs in a process of its own
    assert task.stdout.split() == [one, two]


def test_options_of_the_users_own_are_kept_beside_ours(slurm):
    job = small(slurm)
    (slurm.folder / "most").write_text("3")
    further = ["--sbatch=--comment=for the paper", "--sbatch=--dependency=afterok:17"]
    assert main(["submit", str(job), *further, "--max-running", "1"]) == 0
    first, second = slurm.submitted.values()
    assert option(first, "comment").endswith(" for the paper")
    assert option(first, "dependency") == "afterok:17"
    assert option(second, "dependency") == "afterok:17,afterany:1001"
