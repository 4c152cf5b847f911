"""docs/records.py makes the page of records, its pictures and the jobs' [[record]] tables from results, here of three small jobs."""

import runpy
import sys
import tomllib
from pathlib import Path

import numpy as np

import mpi_compress as mc
from mpi_compress.results.targets import Target

ROOT = Path(__file__).parents[2]
JOB = """
data.path = "{name}.libsvm"
workers.count = 3
stop = {{ rounds = 400, suboptimality = 1e-12 }}
grid."objective.mu" = ["1e-3 L"]
protocol = {{ on."data.path" = ["c.libsvm"], candidates = 2, to = {{ suboptimality = 1e-3 }}, seeds = [0], untuned = ["sending*"] }}
[[run]]
label = "BFGS"
algorithm = {{ name = "bfgs" }}
grid = {{ seed = [10, 11, 12] }}
tune.candidates = {{ "algorithm.memory" = [5, 50] }}
[[run]]
label = "GD"
algorithm.name = "gd"
grid = {{ seed = [10] }}
tune.candidates = {{ "algorithm.step" = ["theory", "2 theory"] }}
[[run]]
label = "sending the data"
algorithm = {{ name = "ship-data" }}
grid = {{ seed = [10] }}
"""
BY_SAMPLES = """
data.path = "a.libsvm"
objective.mu = "1e-4 L"
workers.count = 3
stop = { rounds = 400, suboptimality = 1e-12 }
run = [{ label = "BFGS", algorithm.name = "bfgs", grid."data.rows" = [9] }, { label = "sending the data", algorithm.name = "ship-data", grid."data.rows" = [9] }]
[[full.run]]
label = "BFGS"
algorithm.name = "bfgs"
grid."data.rows" = [60]
[[full.run]]
label = "sending the data"
algorithm.name = "ship-data"
grid."data.rows" = [60]
"""


def test_the_page_its_picture_and_the_records_are_those_of_the_results(tmp_path, monkeypatch, capsys):
    jobs, docs, out = tmp_path / "jobs" / "records", tmp_path / "docs", tmp_path / "results"
    jobs.mkdir(parents=True)
    docs.mkdir()
    rng = np.random.default_rng(3)
    for name in "abc":
        X = rng.normal(size=(60, 5))
        mc.data.save(X, np.sign(X @ rng.normal(size=5) + rng.normal(size=60)), jobs / f"{name}.libsvm")
    for name in "ab":
        (jobs / f"{name}.toml").write_text(JOB.format(name=name))
        mc.run(mc.load_job(jobs / f"{name}.toml"), out=out, quiet=True)
    (jobs / "samples-a.toml").write_text(BY_SAMPLES)
    grown = mc.run(mc.load_job(jobs / "samples-a.toml", full=True), out=out, quiet=True)
    for module in (ROOT / "docs").glob("records*.py"):
        (docs / module.name).write_text(module.read_text())
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
    monkeypatch.syspath_prepend(docs)

    def page_of(results):
        monkeypatch.setattr("sys.argv", ["records.py", str(results)])
        runpy.run_path(str(docs / "records.py"), run_name="__main__")
        return capsys.readouterr().out

    page = page_of(out)
    assert all((docs / picture).stat().st_size > 10_000 for picture in ("records.png", "records-samples.png"))
    sent, kept = ([Target.of("suboptimality", 1e-6).took(run, "wire_bits") for run in grown if run.label.startswith(m)] for m in ("sending", "BFGS"))
    assert f"N\\* is {crossing((9, 60), sent, kept)} on a.**" in page
    assert "| BFGS | 2 | memory = " in page
    for name in "ab":
        job = mc.load_job(jobs / f"{name}.toml", only="BFGS*")
        took = [Target.of("suboptimality", 1e-9).took(run, "wire_bits") for run in mc.run(job, out=out, quiet=True)]
        stated = [r for r in tomllib.loads((jobs / f"{name}.toml").read_text())["record"] if r["to"] == {"suboptimality": 1e-9}]
        sent = mc.run(mc.load_job(jobs / f"{name}.toml", only="sending*"), out=out, quiet=True)[0].column("wire_bits")[-1]
        records = {"BFGS, mu = 1e-3 L": np.median(took)} | ({"sending the data, mu = 1e-3 L": sent} if sent < np.median(took) else {})
        assert {r["run"]: r["wire_bits"] for r in stated} == records
        assert f"| {np.median(took) / 1e6:.3g} [{min(took) / 1e6:.3g}, {max(took) / 1e6:.3g}], BFGS |" in page.replace("**", "")
    assert page_of(tmp_path / "none") == page, "without results it is that of the last edition"


def crossing(samples, sent, kept):
    """Where two straight lines cross, in logarithms, or on which side of the samples they would."""
    if kept[1] >= sent[1]:
        return f"above {samples[1]}"
    if kept[0] < sent[0]:
        return f"below {samples[0]}"
    (a, b), (c, d), (e, f) = (np.log(each) for each in (samples, sent, kept))
    return f"about {float(f'{np.exp(a + (b - a) * (e - c) / (e - c + d - f)):.2g}'):,.0f}"
