"""`watch` prints and draws what runs have come to while they are played."""

import os
import re
import shutil
import signal
import threading
import time

import pytest
from helpers.refusals import naming
from helpers.running import After

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.signals import Stopped

JOB = """
data = { generator = "gspar", samples = 40, dim = 8 }
objective.mu = "1e-2 L"
workers.count = 2
stop.rounds = 30
[[run]]
label = "done"
algorithm = { name = "gd" }
[[run]]
label = "stopped"
algorithm = { name = "gd", step = "0.5/L" }
[[run]]
label = "later"
algorithm = { name = "gd", step = "0.1/L" }
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A folder with a job of which one run is done, one is stopped, and one is to do."""
    folder = tmp_path_factory.mktemp("watched")
    file = folder / "job.toml"
    file.write_text(JOB)
    mc.run(mc.load_job(file, only="done"), out=folder / "results")
    with pytest.raises(Stopped):
        mc.run(mc.load_job(file, only="stopped"), out=folder / "results", interrupts=After(2))
    return folder


@pytest.fixture
def job(played, tmp_path, monkeypatch):
    """The same in a folder of the test's own, which is the current one."""
    shutil.copytree(played, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "job.toml"


def rows(text):
    """The cells of a printed table, by label."""
    return {line.split()[0]: line.split() for line in text.splitlines()[1:]}


def test_a_table_has_what_each_run_has_come_to(job, tmp_path, capsys):
    assert main(["watch", "job.toml", "--once"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split("  ")[0] == "label"
    found = rows(out)
    assert found["done"][1:5] == ["complete", "30", "of", "30"]
    assert found["stopped"][1] == "stopped"
    assert 0 < int(found["stopped"][2]) < 30
    assert found["done"][-1].endswith("bit")  # a second
    assert found["later"] == ["later", "to", "do"]
    assert out.splitlines()[-1].endswith("1 complete, 1 stopped, 1 to do")
    assert main(["watch", "results", "--once", "-o", "live.png"]) == 0  # what lies in a folder, and its figure
    assert set(rows(capsys.readouterr().out)) >= {"done", "stopped"}
    assert (tmp_path / "live.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.glob(".*")] == []
    assert main(["watch", "job.toml", "--once", "-o", "a.png", "--y", "lss"]) == 2
    assert re.fullmatch(naming("lss loss"), capsys.readouterr().err.strip())


def test_it_ends_with_the_last_run_and_prints_what_changes(job, capsys):
    def play():
        mc.run(job)

    player = threading.Thread(target=play)
    player.start()
    assert main(["watch", "job.toml", "--every", "0.1 s", "-o", "live.svg"]) == 0
    player.join()
    assert capsys.readouterr().out.splitlines()[-1].endswith("3 complete")


def test_runs_of_one_label_are_told_apart_by_their_seeds(job, capsys):
    job.write_text(JOB.replace("[[run]]", "grid.seed = [0, 7]\n[[run]]", 1))
    mc.run(mc.load_job(job, only="done"), out="results")
    for what in ("job.toml", "results/job"):
        assert main(["watch", what, "--once"]) == 0
        assert {*re.findall(r"\ndone, seed (\d)  ", capsys.readouterr().out)} == {"0", "7"}


def test_ctrl_c_ends_it_in_a_line(job, capsys):
    def press():
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    assert main(["watch", "job.toml", "--every", "1 h"]) == 0
    presser.join()
    told = capsys.readouterr()
    assert told.err == "mpi-compress: watch ends; the runs go on\n"
    assert told.out.count("label") == 1


def test_on_a_terminal_the_table_keeps_its_place(job, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["watch", "job.toml", "--once"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("\x1b[2J\x1b[H")
    assert max(len(line) for line in out.replace("\x1b[2J\x1b[H", "").replace("\x1b[K", "").splitlines()) <= 40
    assert "Ctrl-C ends this, and no run" in out


def test_rows_that_are_read_in_the_middle_of_a_flush_are_those_of_before(job, tmp_path):
    from mpi_compress.cli.watch import Live, results_in
    from mpi_compress.results.status import State

    (file,) = tmp_path.rglob("done*.h5")
    live = Live(lambda: results_in([str(file)]))
    (whole,) = live.look()
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert live.look() == [whole]
    (begun,) = Live(lambda: {tmp_path / "none.h5": "x"}).look()
    assert (begun.status.state, begun.run, begun.cells[1:]) == (State.TO_DO, None, ["to do", "", "", "", ""])


def test_a_trial_of_tune_says_which_of_them_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tuned = JOB + 'tune = { parameter = "algorithm.step", values = ["1/L", "2/L"], to = { loss = 1e-3 } }\n'
    (tmp_path / "job.toml").write_text(tuned)
    with pytest.raises(Stopped):
        mc.run(mc.load_job("job.toml", only="later"), interrupts=After(2))
    assert main(["watch", "job.toml", "--once"]) == 0
    assert "trial 1 of 2: later-algorithm.step=1-L" in capsys.readouterr().out
