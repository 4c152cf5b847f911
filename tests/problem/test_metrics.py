"""Metrics that jobs name: what they are, and which results have them."""

import textwrap

import numpy as np
import pytest
from helpers.running import After

import mpi_compress as mc

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
