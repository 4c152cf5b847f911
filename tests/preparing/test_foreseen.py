"""What `plan` says that a run will be refused for, before its data are read, is what `run` then says."""

from pathlib import Path

import pytest

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.errors import UserError
from mpi_compress.preparing.needs import NOTHING_RUN, refusal

HEAD = '[data]\ngenerator = "gspar"\nsamples = 40\ndim = 8\n[workers]\ncount = 2\n[stop]\nrounds = 3\n'
REFUSED = {
    "wide": 'algorithm = { name = "ef", step = "1/L" }\nup.compressor = { name = "top-k", k = 9 }',
    "biased": 'algorithm.name = "diana"\nup.compressor = { name = "top-k", k = 4 }',
    "letter": 'algorithm.name = "gd"\nobjective.mu = "1e-3 l"',
    "crowd": 'algorithm.name = "gd"\nworkers.count = 41',
    "planned": (
        'algorithm.name = "cat"\nup = { compressor.name = "top-k", codec = "auto" }\nobjective.mu = "1e-4 L"\n'
        'cost = { model = "trace", rows = [["0 s", "5 ms", "40 Mbit/s"]] }'
    ),
    "left out": 'algorithm.name = "gd"\nobjective.f_star = "skip"\nstop.suboptimality = 1e-3',
    "convex only": 'algorithm.name = "adiana"\nup.compressor = { name = "random-k", k = 4 }',
}
SHIPPED = sorted(p for p in (Path(__file__).parents[2] / "jobs").rglob("*.toml") if p.stem != "links")  # that needs a link.toml


@pytest.mark.parametrize("label", REFUSED)
def test_what_is_foreseen_is_what_a_run_says_and_what_submit_does(tmp_path, label, capsys):
    job = tmp_path / "job.toml"
    job.write_text(f'{HEAD}[[run]]\nlabel = "{label}"\n{REFUSED[label]}\n[[run]]\nlabel = "sound"\nalgorithm.name = "gd"\n')
    with pytest.raises(UserError) as said:
        mc.run(job, out=tmp_path)
    assert str(said.value).endswith(NOTHING_RUN)
    for command in (["plan", str(job)], ["submit", str(job), "--dry-run"]):
        assert main([*command, "--out", str(tmp_path)]) == 2
        told = capsys.readouterr()
        assert told.err == f"mpi-compress: {said.value}\n"
        assert ("would be refused: " in told.out, "#SBATCH" in told.out) == (command[0] == "plan", False)
    assert not list(tmp_path.rglob("*.h5*"))


@pytest.mark.parametrize(("data", "head", "said"), [
    ("1 1:1\n-1 2:1\n2 1:1\n", "", "has 3 labels, -1, 1, 2"),
    ("1 1:1\n1 2:1\n1 1:1\n", "", "has one class only"),
    ("1 1:1\n-1 2:1\n" * 50, 'workers.partition = { name = "dirichlet", alpha = 1e-3 }\nworkers.count = 8\n', "with seed 0: in 10 draws"),
])  # fmt: skip
def test_where_all_runs_have_the_fault_none_of_other_labels_are_proposed(tmp_path, capsys, data, head, said):
    (tmp_path / "own.libsvm").write_text(data)
    (job := tmp_path / "job.toml").write_text(
        f'data.path = "own.libsvm"\nobjective.mu = 0.1\nstop.rounds = 2\ngrid.seed = [0, 1]\n{head}'
        '[[run]]\nlabel = "a"\nalgorithm.name = "gd"\n[[run]]\nlabel = "b"\nalgorithm.name = "nesterov"\n'
    )
    for command in (["run", str(job), "--quiet"], ["plan", str(job)]):
        assert main([*command, "--out", str(tmp_path)]) == 2
        err = capsys.readouterr().err
        assert said in err
        assert NOTHING_RUN not in err


def test_a_refusal_of_many_runs_is_said_once_below_the_table_and_no_time_is_estimated(tmp_path, capsys):
    job, trial = tmp_path / "job.toml", HEAD + '[[run]]\nlabel = "{}"\n{}\ngrid = {{ seed = [0, 1, 2] }}\n'
    job.write_text(trial.format("wide", 'algorithm = { name = "ef", step = "1/L" }\nup.compressor = { name = "top-k", k = 8 }'))
    mc.run(job, out=tmp_path, quiet=True)
    job.write_text(trial.format("wide", REFUSED["wide"]))
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 2
    *lines, said, count = capsys.readouterr().out.splitlines()
    assert [row.split("  ")[-1] for row in lines[-3:]] == ["would be refused"] * 3
    assert said.startswith("would be refused: up.compressor: k = 9 is more than the d = 8 coordinates there are")
    assert said.endswith(": wide")
    assert count == "0 of 3 runs done, 3 would be refused"


def test_what_no_data_can_change_is_refused_before_a_file_is_parsed(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    job, data = tmp_path / "job.toml", 'data.path = "some.txt"\nstop.rounds = 3\n[[run]]\nlabel = "{}"\n'
    (tmp_path / "some.txt").write_text("1 1:1\n-1 2:1\n1 1:1 3:1\n")
    job.write_text(data.format("a") + REFUSED["planned"])
    for command in ("plan", "run"):
        assert main([command, str(job), "--out", str(tmp_path)]) == 2
        assert "cannot be planned for" in capsys.readouterr().err
    assert not (tmp_path / "cache" / "data").exists()
    job.write_text(data.format("a") + REFUSED["wide"])  # d is counted in so small a file
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 2
    assert "k = 9 is more than the d = 3 coordinates there are" in capsys.readouterr().err


SHY = """
import mpi_compress as mc

@mc.compressors.register("shy")
class Shy(mc.Compressor):
    def compress(self, v, t):
        return mc.Dense(v)

    def omega(self, dim):
        return self.asked(dim)

    def delta(self, dim):
        return self.asked(dim)

    def asked(self, dim):
        with open("asked", "a") as file:
            print(dim, file=file)
        return 1.0 / dim
"""


@pytest.mark.parametrize("is_large", [False, True])
def test_what_depends_on_d_is_not_asked_before_d_is_known(tmp_path, capsys, monkeypatch, is_large):
    """From an empty cache bfgs was refused: its compressor had been asked with numbers that stood for d."""
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shy.py").write_text(SHY)
    (tmp_path / "some.txt").write_text("1 1:1\n-1 2:1\n1 1:1 3:1\n" * 20)
    if is_large:  # it is not counted before it is parsed
        monkeypatch.setattr("mpi_compress.preparing.shapes.counted_in", lambda file: None)
    job = tmp_path / "job.toml"
    head = 'plugins = ["shy"]\ndata.path = "some.txt"\nobjective.mu = "1e-2 L"\nstop.rounds = 2\nworkers.count = 2\n'
    job.write_text(head + 'algorithm.name = "bfgs"\nup.compressor.name = "shy"\n')
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 0
    assert set((tmp_path / "asked").read_text().split()) == {"?" if is_large else "3"}
    job.write_text(job.read_text().replace('"shy"\n', '"natural"\n'))
    assert main(["run", str(job), "--out", str(tmp_path), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_step_that_only_some_smoothnesses_allow_is_not_foreseen(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(HEAD + '[algorithm]\nname = "diana"\nalpha = "1/L"\n[up.compressor]\nname = "random-k"\nk = 4\n')
    (spec,) = mc.load_job(job).runs
    assert refusal(spec) == ""


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_an_error_in_a_part_of_ones_own_is_left_to_the_run(tmp_path, capsys):
    @mc.algorithms.register("at fault")
    class AtFault(mc.algorithms["gd"]):
        """One whose check has a fault."""

        def check(self):
            {}["nothing"]

    job = tmp_path / "job.toml"
    job.write_text('algorithm.name = "at fault"\n' + HEAD)
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("to do\n")


@pytest.mark.parametrize("job", [
    pytest.param(job, marks=pytest.mark.slow if job.parent.name == "records" and job.stem not in ("a1a", "news20", "samples-gisette-like") else []) for job in SHIPPED
], ids=lambda job: f"{job.parent.name}/{job.stem}")  # fmt: skip
def test_no_shipped_run_is_foreseen_to_be_refused(job):
    """One of those that differ in their seed alone, which have one label."""
    for spec in {spec.label: spec for spec in mc.load_job(job).runs}.values():
        if not spec.missing:
            assert refusal(spec) == "", spec.label


def test_plan_counts_the_trials_that_come_first(tmp_path, capsys):
    job = tmp_path / "job.toml"
    job.write_text(
        HEAD + '[algorithm]\nname = "gd"\n[tune]\nparameter = "algorithm.step"\nvalues = "2^-1..2^1 theory"\nto = { loss = 1e-3 }\n'
    )
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "before them: 3 trials of [tune] in the first stage, 0 of them done"
    mc.run(job, out=tmp_path)
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 0
    assert "trials" not in capsys.readouterr().out


def test_plan_says_how_many_trials_of_later_stages_are_done(tmp_path, capsys):
    """Five values: all of them for 2 rounds, then three for all 3; values beyond the grid are in no stage."""
    job = tmp_path / "job.toml"
    tune = '[tune]\nparameter = "algorithm.step"\nvalues = "2^-3..2^1 theory"\nto = { grad_norm = 1e-9 }\n'
    job.write_text(HEAD + f'[algorithm]\nname = "gd"\n{tune}')
    (run,) = mc.run(job, out=tmp_path)
    run.file.unlink()
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 0
    assert "before them: 5 trials of [tune] in the first stage, 5 of them done, 3 of stage 2\n" in capsys.readouterr().out
