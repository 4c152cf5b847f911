"""The page's first table: which runs are complete, diverged, stopped, failed or not run, and why; and the page of one's own jobs."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import pytest
from helpers.refusals import naming, refused
from helpers.running import GSPAR

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.evidence.outcomes import outcomes
from mpi_compress.report import ran, render
from mpi_compress.report.text import summary
from mpi_compress.results import checksums
from mpi_compress.results.files import part_of, result_file

JOB = f"""
title = "A <b>job</b> of my own"
data = {{ generator = "gspar", samples = {GSPAR["samples"]}, dim = 12 }}
objective = {{ mu = "1e-2 L" }}
workers = {{ count = 2, partition = "shuffled" }}
stop.rounds = 12
[grid]
seed = [0, 1]
[[run]]
label = "GD"
algorithm = {{ name = "gd" }}
[[run]]
label = "long step"
algorithm = {{ name = "gd", step = "1e4/L" }}
[[run]]
label = "top-2"
algorithm = {{ name = "gd" }}
up = {{ compressor = {{ name = "top-k", k = 2 }} }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two jobs of one title and file name, the second of two seeds less; one that cannot be read; results of the first two."""
    folder = tmp_path_factory.mktemp("own")
    for name, text in (("a", JOB), ("b", JOB.replace("seed = [0, 1]", "seed = [2]"))):
        (folder / name).mkdir()
        (folder / name / "steps.toml").write_text(text)
        mc.run(mc.load_job(folder / name / "steps.toml"), out=folder / "results", quiet=True)
    (folder / "broken.toml").write_text("title = 3\n")
    return folder


def found_in(folder, *names, out=None):
    return outcomes([folder / name for name in names], out or folder / "results")


def copied(folder, tmp_path):
    """The results, to be damaged."""
    shutil.copytree(folder / "results", tmp_path / "results")
    return tmp_path / "results"


def file_of(o, label, seed):
    spec = next(spec for spec in o.job.runs if spec.label == label and spec.seed == seed)
    return result_file(o.job.name, label, spec.run_id, o.out)


def test_methods_are_listed_with_their_states_reasons_and_medians(folder):
    found = found_in(folder, "a/steps.toml")
    assert ran.sentence(ran.ran(found)) == "1 job, 6 runs: 4 complete, 2 diverged."
    gd, long, top = ran.ran(found)[0].methods
    assert (gd.name, gd.state, gd.why, gd.look) == ("GD", "complete", "12 rounds", "holds")
    assert (long.state, long.look) == ("diverged", "fails")
    assert long.why
    runs = [run for run in found[0].runs if run.label == "top-2"]
    assert top.last.up == sum(float(run.trace["wire_bits_up"][-1]) for run in runs) / 2
    assert top.cells["loss"] == f"{sum(float(run.trace['loss'][-1]) for run in runs) / 2:.4g}"


def test_a_run_that_is_missing_stopped_failed_or_foreign_says_so(folder, tmp_path):
    out = copied(folder, tmp_path)
    (o,) = found_in(folder, "a/steps.toml", out=out)
    file_of(o, "GD", 0).unlink()
    foreign = file_of(o, "GD", 1)
    foreign.write_bytes(b"no result")
    for seed, state in enumerate(("stopped", "failed")):
        file = file_of(o, "top-2", seed)
        loss = float(mc.read(file).trace["loss"][-1])
        file.rename(part_of(file))
        with h5py.File(part_of(file), "r+") as h5:
            del h5.attrs[checksums.ATTRIBUTE]  # an unfinished result has none
            h5.attrs.update({"status": state, "reason": f"it {state} so"})
    (o,) = found_in(folder, "a/steps.toml", out=out)
    (job,) = ran.ran([o])
    states = {(m.name, m.state): m for m in job.methods}
    begun = states["top-2", "1 stopped, 1 failed"]
    assert "it stopped so" in begun.why
    assert "it failed so" in begun.why
    assert begun.look == "fails"
    assert abs(begun.last.loss - loss) < 1
    whys = sorted(m.why for m in job.methods if (m.name, m.state) == ("GD", "not run"))
    assert whys[0] == ""
    assert str(foreign) in whys[1]
    assert ran.sentence([job]) == "1 job, 6 runs: 2 diverged, 1 failed, 1 stopped, 2 not run."
    assert (len(o.runs), len(o.begun), o.status.partition(";")[0]) == (2, 2, "2 of 6 runs")
    assert [run.label for run in o.shown] == ["long step"] * 2 + ["top-2"] * 2
    html = render.page([o])
    assert str(foreign) in html
    assert "1 stopped, 1 failed" in html


def test_what_would_be_refused_or_is_broken_off_says_so(tmp_path):
    (tmp_path / "job.toml").write_text(JOB + '[[run]]\nlabel = "top-99"\nalgorithm.name = "gd"\nup.compressor = { name = "top-k", k = 99 }\n')
    for label in ("GD", "top-2"):
        mc.run(mc.load_job(tmp_path / "job.toml", only=label), out=tmp_path / "results")
    (o,) = found_in(tmp_path, "job.toml", out=tmp_path / "results")
    for seed in (0, 1):
        file = file_of(o, "top-2", seed)
        with h5py.File(file, "r+") as h5:
            del h5.attrs[checksums.ATTRIBUTE]
            h5.attrs["status"] = "running"
        file.rename(part_of(file))
    (o,) = found_in(tmp_path, "job.toml", out=tmp_path / "results")
    states = {m.name: (m.state, m.why) for m in ran.ran([o])[0].methods}
    assert states["top-2"][0] == "broken off"
    assert states["long step"] == ("not run", "")
    assert states["top-99"][0] == "not run"
    assert re.search(naming("up.compressor: k 99 d 12"), states["top-99"][1])
    assert o.status == "2 of 8 runs; 'top-2' broken off with 2 seeds"


def test_without_claims_the_page_has_no_word_of_them(folder):
    html = render.page(found_in(folder, "a/steps.toml"))
    shown = html[html.index("</style>") : html.index("<script")].lower()
    assert "claim" not in shown
    assert "scorecard" not in shown
    assert not [line for line in summary(found_in(folder, "a/steps.toml")) if "claims" in line]


def test_the_title_is_that_of_a_single_job_and_of_several_their_number(folder):
    one, two = found_in(folder, "a/steps.toml"), found_in(folder, "a/steps.toml", "b/steps.toml")
    assert "<h1>A &lt;b&gt;job&lt;/b&gt; of my own</h1>" in render.page(one)
    assert render.title_of(two) == "2 jobs"
    mixed = [one[0], replace(two[1], job=replace(two[1].job, paper="CAT fig. 1"))]
    assert render.title_of(mixed) == render.title_of(mixed[::-1]) == render.TITLE, "a paper's job among them"
    assert "<h1>Mine</h1>" in render.page(two, "Mine")


def test_jobs_of_one_title_differ_in_their_paths_and_anchors(folder):
    found = found_in(folder, "a/steps.toml", "b/steps.toml")
    assert [o.key for o in found] == ["a/steps", "b/steps"]
    html = render.page(found)
    anchors = re.findall(r'<article id="([^"]+)"', html)
    assert len(anchors) == len(set(anchors)) == 2
    assert all(f'<span class="path">{o.key}</span></h3>' in html for o in found)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)


def test_anchors_differ_where_keys_differ_in_a_sign_alone():
    files = [Path("a.b.toml"), Path("a b.toml")]
    found = [render.Outcome(file, file.stem, "", None) for file in files]
    assert len(set(render.ids_of(found).values())) == 2


def test_a_job_that_cannot_be_read_is_named_with_the_reason(folder):
    found = found_in(folder, "a/steps.toml", "broken.toml")
    assert ran.sentence(ran.ran(found)).endswith("; 1 job cannot be read.")
    assert re.search(naming("title paper"), found[-1].problem)
    assert found[-1].problem in render.page(found)


def test_many_methods_are_one_row_a_job_below_a_list_of_what_did_not_complete(folder, monkeypatch):
    monkeypatch.setattr(ran, "FEW", 2)
    html = render.page(found_in(folder, "a/steps.toml"))
    assert "What did not complete" in html
    ((o, method, names),) = ran.incomplete(ran.ran(found_in(folder, "a/steps.toml")))
    assert (o.key, names, method.state) == ("steps", "long step", "diverged")
    ((*_, names),) = ran.incomplete([ran.Ran(o, [replace(method, name=name) for name in "abcde"])])
    assert names == "a; b; c; 2 others"
    assert '<li><span class="verdict state fails">diverged</span>' in html
    assert "4 complete, 2 diverged" in html


def test_tables_are_open_and_those_of_many_rows_are_folded(folder, monkeypatch):
    found = found_in(folder, "a/steps.toml")
    assert render.page(found).count("<details>") == 1  # the job's file
    monkeypatch.setattr(render, "LONG", 5)
    html = render.page(found)
    assert html.count("<details>") == 4
    assert "<summary>How each run ended, 6 rows" in html


def test_only_takes_the_jobs_that_have_such_a_run(folder, capsys):
    arguments = ["report", str(folder / "a"), str(folder / "b"), "--out", str(folder / "results"), "-o", str(folder / "o.html")]
    assert main([*arguments, "--only", "top-2"]) == 0
    html = (folder / "o.html").read_text()
    assert "2 jobs, 3 runs: 3 complete." in html
    assert "no job has a run called 'nothing'" in refused([*arguments, "--only", "nothing"], capsys)


def test_a_job_whose_runs_all_diverged_has_a_page_without_targets(folder):
    (o,) = outcomes([folder / "b" / "steps.toml"], folder / "results", only="long step")
    html = render.page([o])
    assert "1 job, 1 run: 1 diverged." in html
    assert "What each method needed" not in html
