"""One run in several jobs is executed once."""

import pytest
from helpers.running import GSPAR, here

import mpi_compress as mc
from mpi_compress.engine.executing import Execution
from mpi_compress.evidence.lines import name_of
from mpi_compress.results.files import checkpoint_of

TABLES = {"data": GSPAR, "algorithm": {"name": "gd"}, "workers": {"count": 2}, "stop": {"rounds": 3}}


@pytest.fixture
def played(monkeypatch):
    """The labels of the runs that are played."""
    labels, execute = [], Execution.execute

    def noted(execution, tuned):
        labels.append(execution.p.spec.label)
        return execute(execution, tuned)

    monkeypatch.setattr(Execution, "execute", noted)
    return labels


def test_a_run_that_another_job_has_played_is_linked(tmp_path, played, capsys):
    (first,) = mc.run({**TABLES, "title": "one"}, out=tmp_path)
    (second,) = mc.run({**TABLES, "title": "one", "name": "other"}, out=tmp_path, quiet=False)
    assert played == ["one"]
    assert second.file.parent.name == "other"
    assert first.file.samefile(second.file)
    assert f"one: {first.file} is the same run; its result is taken" in capsys.readouterr().err
    (third,) = mc.run({**TABLES, "title": "again"}, out=tmp_path)
    assert (played, third.label, first.label) == (["one"], "again", "one")
    assert third.has_checksums
    assert third.trace["loss"].tolist() == first.trace["loss"].tolist()
    assert not third.file.with_name(third.file.name + ".new").exists()
    mc.run({**TABLES, "title": "one", "name": "third"}, out=tmp_path, fresh=True)
    assert played == ["one"] * 2


def test_what_was_set_from_outside_is_said_of_the_run_it_was_set_for(tmp_path, played):
    mc.run(mc.load_job({**TABLES, "title": "one"}, {"stop.rounds": 4}), out=tmp_path)
    (second,) = mc.run({**TABLES, "stop": {"rounds": 4}, "title": "one", "name": "other"}, out=tmp_path)
    (third,) = mc.run(mc.load_job({**TABLES, "title": "one", "name": "third"}, {"stop.rounds": 4}), out=tmp_path)
    assert played == ["one"]
    assert (name_of(second), name_of(third)) == ("one", "one, rounds = 4")
    assert second.has_checksums
    assert mc.read(second.file).attrs.get("overridden") is None


def test_where_a_twin_cannot_be_linked_the_run_itself_says_why(tmp_path):
    mc.run({**TABLES, "title": "one"}, out=tmp_path)
    (tmp_path / "other").write_text("in the way")
    with pytest.raises(mc.UserError, match=r"other: .*File exists"):
        mc.run({**TABLES, "title": "one", "name": "other"}, out=tmp_path)


def test_a_result_of_another_exchange_is_played_again_and_says_so(tmp_path, played, capsys):
    (first,) = mc.run({**TABLES, "title": "one"}, out=tmp_path)
    by_allgather = {**TABLES, "title": "one", "workers": {"count": 2, "exchange": "allgather"}}
    for _ in range(2):
        (second,) = mc.run(by_allgather, out=tmp_path, quiet=False)
    said = capsys.readouterr().err
    assert "the result lacks exchange = 'allgather'; it is run again" in said
    assert "done already" in said
    assert played == ["one", "one"]
    assert first.trace["wire_bits_down"][-1] > second.trace["wire_bits_down"][-1] == 0
    assert first.trace["loss"].tolist() == second.trace["loss"].tolist()


JOB = """
data = { generator = "gspar", samples = 100, dim = 40, seed = 2 }
workers.count = 2
stop.rounds = 3
grid.seed = [0, 1, 2]
[[run]]
label = "LABEL, nothing drawn"
algorithm.name = "gd"
[[run]]
label = "LABEL, drawn"
algorithm.name = "dasha"
up.compressor = { name = "random-k", k = 2 }
"""


@pytest.mark.parametrize("label", ["one", "other"])
def test_plan_counts_the_results_that_run_then_takes(tmp_path, played, label):
    """Of six runs, one of each method was executed in another job, and the gradients of gd are the same by all seeds."""
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(JOB.replace("LABEL", "one"))
    second.write_text(JOB.replace("LABEL", label))
    out = ("--out", tmp_path / "out")
    for index in (0, 3):
        here("run", first, *out, "--index", str(index))
    said = here("plan", second, *out).stdout
    assert "4 of 6 runs done, 2 to do; 2 differ in their seed alone, and nothing is drawn: copies" in said
    assert said.count(f"done, as {tmp_path / 'out' / 'first'}") == 2
    assert said.count("done, a copy of ") == 2
    played.clear()
    ended = here("run", second, *out)
    assert ended.stderr.count(": done already, ") == 4
    assert played == [f"{label}, drawn"] * 2
    assert "6 of 6 runs done; 2 differ" in here("plan", second, *out).stdout


def test_plan_does_not_count_a_result_of_another_job_where_the_run_itself_has_begun(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(JOB.replace("LABEL", "one"))
    (run,) = mc.run(mc.load_job(job, index=4), out=tmp_path / "out")
    other = tmp_path / "out" / "other" / run.file.name
    other.parent.mkdir()
    run.file.rename(other)
    assert f"as {other}" not in here("plan", job, "--out", tmp_path / "out").stdout, "its last state is there"
    checkpoint_of(run.file).unlink()
    assert f"done, as {other}" in here("plan", job, "--out", tmp_path / "out").stdout
