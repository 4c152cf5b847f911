"""Jobs as dicts, and what a caller in Python gets of runs while they run."""

import signal
import subprocess
import sys
import tomllib

import h5py
import numpy as np
import pytest
from helpers.layouts import assert_equal
from helpers.refusals import naming
from helpers.running import BIN, SMALL_JOB, After

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.signals import Stopped

JOB = {
    "title": "Small job: from Python",
    "data": {"generator": "gspar", "samples": 60, "dim": 20},
    "objective": {"mu": "1e-2 L"},
    "workers": {"count": 3},
    "algorithm": {"name": "gd"},
    "stop": {"rounds": 12},
    "log": {"every": 2},
}


class Seen(list):
    """Keeps rows."""

    def __call__(self, row):
        self.append(row)


def test_a_dict_is_the_job_of_the_file_with_the_same_tables(small_job):
    file, tables = mc.load_job(small_job), tomllib.loads(SMALL_JOB)
    job = mc.load_job(tables)
    assert [(r.label, r.run_id) for r in job.runs] == [(r.label, r.run_id) for r in file.runs]
    assert job.name == "small"
    assert tables == tomllib.loads(SMALL_JOB), "the caller's own dict is left alone"


def test_numbers_of_numpy_tuples_and_paths_mean_what_toml_has(tmp_path):
    plain = {**JOB, "algorithm": {"name": "gd", "step": [[0, 0.5], [5, 0.25]]}, "seed": 3}
    other = {**JOB, "algorithm": {"name": "gd", "step": ((0, np.float32(0.5)), (np.int64(5), 0.25))}, "seed": np.uint8(3)}
    assert mc.load_job(plain).runs[0].run_id == mc.load_job(other).runs[0].run_id
    assert mc.load_job({**JOB, "start": {"at": tmp_path / "a.h5"}}).runs[0].start.at == str(tmp_path / "a.h5")
    assert mc.load_job(JOB, {"algorithm.step": np.float64(0.5)}).runs[0].algorithm.step == 0.5


def test_the_name_is_given_or_follows_from_the_title():
    assert mc.load_job(JOB).name == "small-job-from-python"
    assert mc.load_job({**JOB, "name": "a/b"}).name == "a/b"
    assert mc.load_job({**JOB, "name": "a/b"}, name="c").name == "c"
    assert mc.load_job({k: v for k, v in JOB.items() if k != "title"}).name == "job"


@pytest.mark.parametrize(("change", "said"), [
    ({"stop": {"rounds": None}}, "stop.rounds: None was given; leave the key out"),
    ({"algorithm": {"name": "gd", "step": len}}, "algorithm.step: <built-in function len> was given; a job holds text, numbers"),
    ({"stop": {3: 4}}, "stop: 3 is no key; keys are text"),
    ({"stop": 3}, "stop 3 [stop]"),
    ({"run": {"label": "a"}}, "run"),
    ({"name": "../a"}, r"name: '../a' was given; it should name a folder"),
    ({"name": "/a"}, "name: '/a'"), ({"name": 3}, "name: 3"),
    ({"log": {"metrics": ["acuracy"]}}, "log.metrics acuracy accuracy"),
    ({"log": {"metrics": ["nonzeros", "nonzeros"]}}, "log.metrics nonzeros"),
    ({"log": {"metrics": "nonzeros"}}, "log.metrics nonzeros"),
])  # fmt: skip
def test_a_wrong_dict_is_refused_in_one_line_with_its_key(change, said):
    with pytest.raises(mc.UserError, match=naming(said)):
        mc.load_job({**JOB, **change})


def test_what_is_no_job_is_refused():
    with pytest.raises(mc.UserError, match="load_job: 3 was given; it should be a job file or a dict"):
        mc.run(3)


def test_every_row_is_passed_on_as_it_is_kept(tmp_path):
    rows = Seen()
    (run,) = mc.run({**JOB, "name": "a", "log": {"every": 2, "metrics": ["nonzeros"]}}, out=tmp_path, on_row=rows)
    assert run.file.parent == tmp_path / "a"
    assert [row["round"] for row in rows] == [0, 2, 4, 6, 8, 10, 12]
    for name, column in run.trace.items():
        assert [row[name] for row in rows] == column.tolist(), name
    assert {type(value) for row in rows for value in row.values()} == {str, int, float}
    assert {row["label"] for row in rows} == {run.label}
    assert rows[-1]["seconds"] == run.timing["seconds"][-1]
    assert run.trace["nonzeros"][-1] == np.count_nonzero(run.x)


def test_on_row_changes_no_number(tmp_path):
    (plain,), (run,) = (mc.run(JOB, out=tmp_path / name, on_row=on_row) for name, on_row in (("plain", None), ("seen", Seen())))
    assert_equal(run.file, plain.file)


@pytest.mark.parametrize(("arguments", "said"), [
    ({"on_row": 3}, "on_row: 3 a function of a record"),
    ({"until": lambda row: True}, "mc.run.until: was removed; register a stop, mc.stops, and name it in [stop]"),
    ({"metrics": {}}, "mc.run.metrics: was removed; register a metric, mc.metrics, and name it in [log] metrics"),
    ({"on_rows": print}, "mc.run: no key called 'on_rows'; did you mean 'on_row'"),
])  # fmt: skip
def test_wrong_arguments_are_refused_in_one_line(tmp_path, arguments, said):
    with pytest.raises(mc.UserError, match=naming(said)):
        mc.run(JOB, out=tmp_path, **arguments)


def test_what_on_row_raises_ends_the_call(tmp_path):
    class Pruned(Exception):
        pass

    def prune(row):
        raise Pruned

    with pytest.raises(Pruned):
        mc.run(JOB, out=tmp_path, on_row=prune)
    assert not [*tmp_path.rglob("*.h5")]
    assert mc.run(JOB, out=tmp_path)[0].status == "complete"


def test_a_result_that_a_function_ended_in_an_earlier_version_is_run_again(tmp_path):
    (run,) = mc.run(JOB, out=tmp_path)
    with h5py.File(run.file, "r+") as h5:
        h5.attrs["until"] = "5a3c"
    rows = Seen()
    mc.run(JOB, out=tmp_path, on_row=rows)
    assert len(rows) == 7


def test_metrics_go_on_after_an_interruption(tmp_path):
    job, rows = {**JOB, "log": {"metrics": ["accuracy", "nonzeros"]}, "checkpoint": {"every": 2}}, Seen()
    (whole,) = mc.run(job, out=tmp_path / "whole")
    with pytest.raises(Stopped):
        mc.run(job, out=tmp_path / "parts", interrupts=After(5))
    (run,) = mc.run(job, out=tmp_path / "parts", on_row=rows)
    assert 0 < len(rows) < 13
    assert_equal(run.file, whole.file)


def test_rank_0_alone_gets_rows_and_the_bytes_are_those_of_one_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport mpi_compress as mc\nfrom mpi4py import MPI\n"
        f"job = {({**JOB, 'log': {'metrics': ['accuracy', 'nonzeros']}})!r}\n"
        "rows = []\n"
        "runs = mc.run(job, comm=MPI.COMM_WORLD if 'ranks' in sys.argv else None, out=sys.argv[1], on_row=rows.append)\n"
        "of_all = MPI.COMM_WORLD.gather((len(rows), len(runs)))\n"
        "if of_all:\n    print(sorted(of_all))\n"
    )

    def said(*launcher, out, further=()):
        done = subprocess.run(
            [*map(str, launcher), sys.executable, "-m", "mpi4py", script, tmp_path / out, *further], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said(out="one") == "[(13, 1)]\n"
    assert said(BIN / "mpiexec", "-n", "3", out="three", further=["ranks"]) == "[(0, 0), (0, 0), (13, 1)]\n"
    assert_equal(*(next((tmp_path / out).rglob("*.h5")) for out in ("one", "three")))


@pytest.fixture
def ctrl_c_is_heard():
    """As in a session at a terminal; programs that a shell starts in the background do not hear it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_ctrl_c_saves_and_raises_stopped_and_the_same_call_goes_on(tmp_path):
    def interrupt(row):
        if row["round"] == 4:
            signal.raise_signal(signal.SIGINT)

    job = {**JOB, "checkpoint": {"every": 1000}}
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(mc.Stopped, match=r"stopped by SIGINT, and saved; call mc\.run with the same job again to go on"):
        mc.run(job, out=tmp_path, on_row=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    rows = Seen()
    (stopped,) = mc.run(job, out=tmp_path, on_row=rows)
    assert rows[0]["round"] > 4, "it went on"
    (whole,) = mc.run(job, out=tmp_path / "whole")
    assert_equal(stopped.file, whole.file)


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_ctrl_c_before_the_rounds_is_stopped_too(tmp_path, monkeypatch):
    monkeypatch.setattr("mpi_compress.engine.runner.prepare", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(mc.Stopped, match=r"SIGINT while it was being prepared"):
        mc.run(JOB, out=tmp_path)


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_ctrl_c_between_two_runs_says_how_many_are_done(tmp_path, monkeypatch):
    from mpi_compress.engine.executing import Execution

    job, labels = {**JOB, "run": [{"label": "one"}, {"label": "two", "seed": 1, "algorithm": {"name": "gd", "step": 0.1}}]}, []

    class Interrupting(Execution):
        def __init__(self, p, *rest):
            labels.append(p.spec.label)
            if len(labels) == 2:
                signal.raise_signal(signal.SIGINT)
            super().__init__(p, *rest)

    monkeypatch.setattr("mpi_compress.engine.runner.Execution", Interrupting)
    with pytest.raises(mc.Stopped, match=r"SIGINT between runs, 1 of 2 done"):
        mc.run(job, out=tmp_path)


def test_runs_of_several_seeds_say_which_as_they_end_and_as_they_are_read(tmp_path, capfd):
    data = 'data = { generator = "gspar", samples = 20, dim = 4 }\nalgorithm = { name = "sgd", batch = 1 }\nstop.rounds = 3\n'
    (tmp_path / "one.toml").write_text(data)
    (tmp_path / "two.toml").write_text(f"{data}grid.seed = [0, 7]\n")
    for name, ended in (("one", ["one: complete"]), ("two", ["two, seed 0: complete", "two, seed 7: complete"])):
        assert main(["run", str(tmp_path / f"{name}.toml"), "--out", str(tmp_path)]) == 0
        assert [line.partition(", 864 bit")[0] for line in capfd.readouterr().err.splitlines() if ": complete" in line] == ended
    assert [run.seed for run in mc.run(str(tmp_path / "two.toml"), out=tmp_path)] == [0, 7]


def test_jobs_and_results_print_in_a_line_each(tmp_path):
    job = mc.load_job({**JOB, "run": [{"label": f"run {i}", "seed": i} for i in range(6)]})
    assert repr(job) == "Job('small-job-from-python', 6 runs: run 0, run 1, run 2, run 3, run 4, run 5)"
    assert repr(job.runs[1]) == "RunSpec('run 1', gd, identity, seed 1)"
    runs = mc.run(job.only(index=0), out=tmp_path)
    assert isinstance(runs, list)
    assert repr(runs) == repr(runs[0])
    assert repr([*runs]) == f"[{runs[0]!r}]"
    assert "run 0" in runs._repr_html_()
    assert repr(type(runs)()) == "no results"
