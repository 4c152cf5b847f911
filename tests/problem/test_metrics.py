"""Metrics that jobs name: what they are, and which results have them."""

import textwrap

import numpy as np
import pytest
from helpers.own_parts import module_in
from helpers.running import After, command, here

import mpi_compress as mc
from mpi_compress.cli.main import main

JOB = {
    "name": "metrics",
    "data": {"generator": "gspar", "samples": 60, "dim": 20},
    "objective": {"mu": "1e-2 L"},
    "workers": {"count": 3},
    "algorithm": {"name": "gd"},
    "stop": {"rounds": 6},
    "log": {"metrics": ["accuracy", "nonzeros"]},
}


def test_accuracy_is_that_of_the_signs_of_the_margins_and_nonzeros_are_counted(tmp_path):
    (run,) = mc.run(JOB, out=tmp_path)
    from mpi_compress.problem.datasets.store import open_data

    spec = mc.load_job(JOB).runs[0]
    rows = open_data(*spec.source).read(0, 60)
    assert run.trace["accuracy"][-1] == np.mean(np.sign(rows.dense() @ run.x) == rows.labels)
    assert run.trace["accuracy"][0] == np.mean(rows.labels == -1), "a margin of 0 counts as −1"
    assert (run.trace["nonzeros"][0], run.trace["nonzeros"][-1]) == (0, np.count_nonzero(run.x))


def test_accuracy_of_several_classes_is_that_of_the_largest_score(tmp_path):
    file = tmp_path / "three.txt"
    file.write_text("".join(f"{j % 3} {j % 3 + 1}:1\n" for j in range(30)))
    job = {**JOB, "data": {"path": file}, "objective": {"model": "softmax", "mu": 1e-3}, "algorithm": {"name": "gd", "step": 0.5}}
    (run,) = mc.run(job, out=tmp_path)
    assert run.trace["accuracy"][0] == pytest.approx(1 / 3)
    assert run.trace["accuracy"][-1] == 1.0


OWN = """
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc
@mc.metrics.register("of-held-out")
@dataclass(frozen=True)
class HeldOut(mc.Metric):
    def value(self, x, problem): {}
"""


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_a_metric_has_the_held_out_rows_as_it_has_those_of_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((40, 3))
    path, test = mc.data.save(X, X[:, 0] > 0, tmp_path / "mine.libsvm", test=0.25)
    name = module_in(tmp_path, OWN.format("t = problem.held_out; return t.labels @ (t.dense() @ x) + sum(t.margins(x))"), head="")
    job = {**JOB, "plugins": [name], "data": {"path": path, "test": test}, "log": {"metrics": ["of-held-out"]}}
    run, rows = mc.run(job, out=tmp_path)[0], mc.problem(job).held_out
    assert run.trace["of_held_out"][-1] == pytest.approx((rows.labels + 1) @ rows.margins(run.x))


@pytest.mark.usefixtures("registered_for_one_test_only")
@pytest.mark.parametrize("body", ["return sum(problem.held_out.margins(x))", "return float(problem.held_out.labels[0])"])
def test_a_metric_of_held_out_rows_is_refused_before_the_rounds_where_the_job_has_no_test_set(tmp_path, monkeypatch, capsys, body):
    monkeypatch.chdir(tmp_path)
    name = module_in(tmp_path, OWN.format(body), head="")
    (tmp_path / "own.toml").write_text(f'plugins = ["{name}"]\n{TABLES}\nlog.metrics = ["of-held-out"]')
    said = "'of-held-out': asks for held-out rows, and this job has no test set: [data] test = \"…\""
    assert main(["run", "own.toml", "--quiet"]) == 2
    assert capsys.readouterr().err == f"mpi-compress: own.toml: log.metrics: {said}\n"
    assert not [*tmp_path.rglob("*.h5*")]


TABLES = 'data = { generator = "gspar", samples = 60, dim = 20 }\nalgorithm = { name = "gd" }\nstop = { rounds = 6 }\nworkers.count = 3'


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_plan_says_what_run_will_do_after_a_metric_was_edited(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    name = module_in(tmp_path, OWN.format("return 1.0"), head="")
    (tmp_path / "own.toml").write_text(f'plugins = ["{name}"]\n{TABLES}\nlog = {{ metrics = ["of-held-out"] }}')
    assert main(["run", "own.toml", "--quiet"]) == 0
    assert main(["plan", "own.toml"]) == 0
    assert "  done" in capfd.readouterr().out
    (tmp_path / f"{name}.py").write_text(OWN.format("return 2.0"))
    assert "to do: the result lacks of_held_out as it is now" in command("plan", "own.toml").stdout


def test_whatever_shows_a_metric_says_that_its_code_has_changed_since_it_was_computed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    name = module_in(tmp_path, OWN.format("return 1.0"), head="")
    claim = '[[claim]]\nid = "A-1"\nsays = "it is 1"\nvalue = "of_held_out(\'GD\')"\nholds = "<= 1"\n'
    (tmp_path / "own.toml").write_text(f'plugins = ["{name}"]\n{TABLES}\nlog.metrics = ["of-held-out"]\n[[run]]\nlabel = "GD"\n{claim}')
    assert here("run", "own.toml", "--quiet").returncode == 0
    shows = ("table", "own.toml", "--to", "of_held_out=1"), ("plot", "own.toml", "--x", "round"), ("check", "own.toml"), ("report", "own.toml", "-o", "r.html")
    said = "of_held_out by code that has changed since; `mpi-compress run` computes it again"
    for words in shows:
        done = here(*words)
        assert (done.returncode, said in done.stdout + done.stderr) == (0, False), done
    (tmp_path / f"{name}.py").write_text(OWN.format("return 2.0"))
    for words in shows:
        done = here(*words)
        assert (done.stdout + done.stderr).count(said) == 1, done
    assert here("run", "own.toml", "--quiet").returncode == 0
    assert said not in here(*shows[0]).stderr


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_a_metric_that_is_nan_at_the_start_is_named_once(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    name = module_in(tmp_path, OWN.format("return np.nan"), head="")
    mc.run({**JOB, "plugins": [name], "log": {"metrics": ["of-held-out"]}}, out=tmp_path)
    assert capfd.readouterr().err.count("log.metrics: 'of-held-out' is NaN at x0") == 1


def test_a_metric_without_a_value_on_the_problem_is_refused_before_anything_runs(tmp_path):
    job = {**JOB, "data": {"generator": "least-squares", "samples": 30, "dim": 5}, "objective": {"loss": "least-squares"}}
    with pytest.raises(mc.UserError, match=r"log\.metrics: 'accuracy': the labels are no classes, so there is no accuracy"):
        mc.run(job, out=tmp_path)
    assert not [*tmp_path.rglob("*.h5*")]


def test_an_edited_metric_has_the_same_run_id_and_is_evaluated_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(value, **arguments):
        (tmp_path / "my_metric_part.py").write_text(
            textwrap.dedent(f"""
            from dataclasses import dataclass
            import mpi_compress as mc
            @mc.metrics.register("first-coordinate")
            @dataclass(frozen=True)
            class First(mc.Metric):
                j: int = 0
                def value(self, x, problem):
                    return {value}
            """)
        )
        job = {**JOB, "plugins": ["my_metric_part"], "log": {"metrics": [{"name": "first-coordinate", "j": 2}]}, "checkpoint": {"every": 1}}
        rows = []
        (run,) = mc.run(job, out=tmp_path, on_row=rows.append, **arguments)
        return run, len(rows)

    run, played = write("x[self.j]")
    assert (played, run.trace["first_coordinate"][-1]) == (7, run.x[2])
    assert write("x[self.j]")[1] == 0
    again, played = write("2 * x[self.j]")
    assert (played, again.trace["first_coordinate"][-1]) == (7, 2 * run.x[2])
    assert again.file == run.file
    with pytest.raises(mc.Stopped):
        write("3 * x[self.j]", interrupts=After(3))
    again, played = write("4 * x[self.j]")
    assert (played, again.trace["first_coordinate"][-1]) == (7, 4 * run.x[2]), "the checkpoint is of another column"
    with pytest.raises(mc.UserError, match=r"log\.metrics: 'first-coordinate': 'text'"):
        write("'text'")
