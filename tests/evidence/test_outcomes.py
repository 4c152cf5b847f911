"""Outcomes by hand: where the data of a job come from, and what became of its runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.evidence.outcomes import Outcome, outcomes
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.job.loading import parse_job
from mpi_compress.job.tables import Claim

GENERATED, FILE = {"generator": "gspar"}, {"path": "a.svm"}
OURS, THEIRS = "other data", "the paper's data, as the job says"
RCV1 = {"data": {"name": "rcv1"}}


def outcome(*data, **tables):
    """A job that was not run, of a run on each of these data."""
    runs = [{"label": f"run {i}", "data": each} for i, each in enumerate(data)]
    tables |= {"objective": {"mu": 0.1}, "workers": {"count": 2}, "algorithm": {"name": "gd"}, "stop": {"rounds": 3}, "run": runs}
    return Outcome(Path("job.toml"), "job", "", parse_job(tables, "job", Path(), {}))


def claim(basis):
    return {"id": "1", "says": "says", "value": "loss('run 0')", "holds": "> 0", "basis": basis}


@pytest.mark.parametrize(("data", "tables", "kind"), [
    ([GENERATED], {"paper": "A"}, THEIRS), ([FILE], {}, OURS), ([FILE], {"paper": "none: ours"}, OURS),
    ([FILE], {"paper": "A", "full": RCV1}, OURS), ([FILE], {"paper": "A", "full": {"stop.rounds": 9}}, THEIRS),
    ([FILE, FILE], {"paper": "A", "full": {"data": {"path": "b/a.svm"}}}, THEIRS),
    ([FILE, GENERATED], {"paper": "A", "full": {"data": {"path": "a.svm"}}}, OURS),
    ([FILE], {"paper": "A", "claim": [claim("other data"), claim("ours")]}, OURS),
    ([FILE], {"paper": "A", "claim": [claim("other data"), claim("paper")]}, THEIRS),
])  # fmt: skip
def test_data_are_the_paper_s_unless_the_job_names_others_for_it(data, tables, kind):
    assert outcome(*data, **tables).kind == kind


def test_what_was_not_run_says_why_where_that_is_known():
    found = outcome(GENERATED)
    assert found.status == "not run"
    assert Outcome(found.file, "job", "", found.job, problem="no such file").status == "not run: no such file"
    assert Outcome(found.file, "job", "", None, problem="broken").kind == ""
    assert (found.counted, found.title) == ("–", "job")


@pytest.mark.parametrize(("full", "basis", "group"), [
    ({}, "paper", "paper"), (RCV1, "paper", "elsewhere"), ({}, "other data", "elsewhere"),
    (RCV1, "ours", "ours"), ({}, "ours", "ours"),
])  # fmt: skip
def test_a_paper_s_claim_on_other_data_is_not_in_the_paper_s_setting(full, basis, group):
    claim = Claim("1", "says", "loss('run 0')", "> 0", basis)
    assert outcome(FILE, full=full).group(Verdict(claim, [1.0])) == group


def test_claims_about_runs_that_are_not_taken_are_left_out_and_counted(tmp_path):
    job = tmp_path / "job.toml"
    runs = "".join(f'[[run]]\nlabel = "{label}"\nalgorithm.name = "gd"\n' for label in "AB")
    claims = "".join(f'[[claim]]\nid = "{value}"\nsays = "s"\nvalue = "{value}"\nholds = "> 0"\n' for value in ("loss('A')", "loss('B')"))
    job.write_text(f'data.generator = "gspar"\nstop.rounds = 3\n{runs}{claims}')
    (found,) = outcomes([job], tmp_path, only="A")
    assert found.status == "not run: 1 of 2 claims left out by --only"
    assert [verdict.claim.id for verdict in found.verdicts] == ["loss('A')"]
    (found,) = outcomes([job], tmp_path)
    assert (found.status, len(found.verdicts)) == ("not run", 2)


def test_a_file_whose_bytes_have_changed_since_runs_finished_is_named_where_these_runs_are_to_do(tmp_path, monkeypatch, capsys):
    """The training set, then the test set; not where a run was made again, nor where another setting makes it another run."""
    monkeypatch.chdir(tmp_path)
    samples, tests = Path("a.svm"), Path("t.svm")
    for file in (samples, tests):
        file.write_text("1 1:1 2:0.5\n-1 1:0.25 2:1\n" * 4)
    runs = "".join(f'[[run]]\nlabel = "{name}"\nalgorithm.name = "{name}"\n' for name in ("gd", "nesterov"))
    Path("job.toml").write_text(f'data = {{ path = "a.svm", test = "t.svm" }}\nstop.rounds = 3\n{runs}')

    def says(*words):
        main([*words, "--out", "results"])
        output = capsys.readouterr()
        return re.findall(r"(\S+: changed since .*)", output.out + output.err)

    lines = {
        file: [f"{file}: changed since 2 runs finished; with it as it is now each is to do again"] for file in (samples, tests)
    }
    assert not says("run", "job.toml", "--quiet")
    assert not says("plan", "job.toml")
    for file, line in lines.items():
        with file.open("a") as content:
            content.write("1 1:0.5\n")
        assert says("plan", "job.toml") == says("table", "job.toml") == line
        assert not says("plan", "job.toml", "--set", "stop.rounds=4")
        assert says("run", "job.toml", "--only", "gd") == [line[0].replace("2 runs", "1 run")]
        for command in (["plan"], ["table"], ["report", "-o", "r.html"]):
            assert says(*command, "job.toml") == [line[0].replace("2 runs", "1 run")]
        assert says("run", "job.toml") == [line[0].replace("2 runs", "1 run")]
        assert not says("plan", "job.toml")


def test_results_of_two_versions_of_users_code_are_no_seeds_of_one_method(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = """
import mpi_compress as mc

@mc.compressors.register("scaled-draw")
class ScaledDraw(mc.Compressor):
    makes = mc.Dense

    def compress(self, v, t):
        return mc.Dense(FACTOR * v * t.rng.choice((0.5, 1.5)))
"""
    table = 'data = {generator = "gspar", samples = 40, dim = 8}\nstop.rounds = 5\nplugins = ["drawn"]\n'
    run = '[[run]]\nlabel = "a"\ngrid.seed = [0, 1, 2]\nalgorithm.name = "gd"\nup.compressor = "scaled-draw"\n'
    Path("job.toml").write_text(table + run)

    def says(*words):
        assert main([*words]) == 0
        return capsys.readouterr()

    Path("drawn.py").write_text(text.replace("FACTOR", "0.9"))
    says("run", "job.toml", "--quiet")
    assert "changed since" not in says("plan", "job.toml").out
    Path("drawn.py").write_text(text.replace("FACTOR", "1e-9"))
    script = "from mpi_compress.cli.main import main; main(['plan', 'job.toml']); main(['run', 'job.toml', '--quiet'])"
    plan = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "drawn.py: changed since 3 runs finished; with it as it is now each is to do again" in plan
    table = says("table", "results/job", "--to", "loss=0.69")
    assert "several versions of data or code, each version in rows and curves of its own: a;" in table.err
    reached, not_reached = (line for line in table.out.splitlines() if line.startswith("a "))
    assert "not reached" in reached + not_reached
    assert "of 3 seeds" not in table.out
    assert "several versions" not in says("table", "job.toml", "--to", "loss=0.69").err
    columns = mc.load("results/job", as_="dict")
    assert len(set(columns["inputs"])) == 2


def test_a_part_whose_module_is_gone_runs_and_is_named_by_it(tmp_path, monkeypatch):
    """As in a notebook that has removed its module."""
    (tmp_path / "gone.py").write_text(
        "import mpi_compress as mc\n\n@mc.compressors.register('halved')\nclass Halved(mc.Compressor):\n    makes = mc.Dense\n\n"
        "    def compress(self, v, t):\n        return mc.Dense(0.5 * v)\n"
    )
    table = 'data = {generator = "gspar", samples = 40, dim = 8}\nstop.rounds = 2\nplugins = ["gone"]\n'
    (tmp_path / "job.toml").write_text(f'{table}algorithm.name = "gd"\nup.compressor = "halved"\n')
    job = mc.load_job(tmp_path / "job.toml")
    monkeypatch.delitem(sys.modules, "gone")
    (run,) = mc.run(job, out=tmp_path)
    assert list(json.loads(run.attrs["inputs"])) == ["gone"]
