"""Every shipped job runs two rounds from an empty cache: one run of each label, and of a tuned one its first trial."""

from dataclasses import replace
from pathlib import Path

import pytest

import mpi_compress as mc
from mpi_compress.job.trials import trials

JOBS = Path(__file__).parents[1] / "jobs"
SHIPPED = sorted(str(file.relative_to(JOBS)) for file in JOBS.rglob("*.toml"))
QUICK = {"demo.toml", "records/a1a.toml", "aiade/svm.toml", "literature/one-number.toml"}
LINK = """
affine = { c0 = 1e-3, c1 = 1e-8 }
packet = { c0 = 0, c1 = 1, pmax = 1 }
points = { bits = [1, 1e6], seconds = [1e-3, 1.1e-2] }
"""


@pytest.mark.parametrize("job", [pytest.param(job, marks=[] if job in QUICK else [pytest.mark.slow]) for job in SHIPPED])
def test_two_rounds_from_an_empty_cache(job, tmp_path, monkeypatch):
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.toml").write_text(LINK)  # that jobs/cat/links.toml asks for
    loaded = mc.load_job(JOBS / job, {"stop.rounds": 2})
    here = {spec.label: spec for spec in reversed(loaded.runs) if not spec.missing}  # of several seeds one
    tried = {spec.label: trials(spec)[0] for spec in here.values() if spec.tune}
    each = (tried[spec.label].changed({"stop.rounds": 2}, tried[spec.label].label) if spec.tune else spec for spec in here.values())
    specs = {spec.toml(): spec for spec in each}  # runs on several sets share their trials
    if not specs:
        pytest.skip(loaded.runs[0].missing)
    runs = mc.run(replace(loaded, runs=[*specs.values()]), out=tmp_path)
    assert len(runs) == len(specs)
    assert all(0 < run.trace["round"][-1] <= 2 for run in runs)
