"""The commands that `run` proposes when it ends, and the targets that `table` does."""

from itertools import pairwise

import pytest

from mpi_compress.cli.main import main

JOB = """
data = { generator = "gspar", samples = 40, dim = 12 }
objective.mu = "1e-1 L"
workers.count = 2
algorithm.name = "gd"
stop.rounds = 30
"""
TUNE = 'tune = { parameter = "algorithm.step", values = ["theory", "2 theory"]'
STATED = {
    "of [stop]": ("stop.suboptimality = 0.003", "suboptimality=0.003"),
    "of [tune]": (TUNE + ", to = { grad_norm = 0.25 } }", "grad_norm=0.25"),
    "of [stop], which [tune] takes": (TUNE + " }\nstop.loss = 0.65", "loss=0.65"),
    "of [figure]": ("figure.to = { loss = 0.66 }\nstop.suboptimality = 0.003", "loss=0.66"),
}


def proposed(job, tmp_path, capsys):
    """The targets of the table that is proposed, by `run` and by `table` without a target."""
    (tmp_path / "a.toml").write_text(job)
    assert main(["run", str(tmp_path / "a.toml"), "--out", str(tmp_path)]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("next: mpi-compress table")]
    words = line.split()
    assert main(["table", str(tmp_path / "a.toml"), "--out", str(tmp_path)]) == 0
    *_, hint = capsys.readouterr().out.splitlines()
    assert hint == f"--to COLUMN=LEVEL compares what each method needed, such as {' '.join(words[words.index('--to') :])}"
    return [level for option, level in pairwise(words) if option == "--to"]


@pytest.mark.parametrize("where", STATED)
def test_the_target_that_a_job_states_is_the_one_to_compare_at(where, tmp_path, capsys):
    stated, target = STATED[where]
    assert proposed(JOB + stated, tmp_path, capsys) == [target]


def test_a_job_without_a_target_is_compared_at_two_levels_that_its_runs_reach(tmp_path, capsys):
    assert len(proposed(JOB + "stop.wire_bits_up = 1e9", tmp_path, capsys)) == 2


def test_no_target_is_proposed_of_runs_that_come_nearer_to_none(tmp_path, capsys):
    (tmp_path / "a.toml").write_text(JOB + "stop.diverged = 1e9\nalgorithm.step = 1e4\n")
    main(["run", str(tmp_path / "a.toml"), "--out", str(tmp_path), "--quiet"])
    assert main(["table", str(tmp_path / "a.toml"), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("--to COLUMN=LEVEL compares what each method needed\n")
