"""Wrong input ends in one line from one rank and status 2; nothing hangs, nothing is left half-written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.bad_input import CASES, Case
from helpers.refusals import naming
from helpers.running import BIN, PATIENT, command

import mpi_compress as mc
from mpi_compress.cli.main import main


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_in_one_process(case: Case, tmp_path, capfd):
    job = case.write(tmp_path / "case")
    kept = set((tmp_path / "case").rglob("*"))
    assert main(["run", str(job), "--out", str(tmp_path / "case" / case.out)]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    (line,) = (text for text in told.err.splitlines() if not text.startswith("data: "))
    assert re.search(naming(f"mpi-compress: {case.says}"), line)
    left = {f for f in set((tmp_path / "case").rglob("*")) - kept if f.is_file()}
    assert not left
    assert not [*Path(os.environ["MPI_COMPRESS_CACHE"]).rglob("*.part"), *Path(os.environ["MPI_COMPRESS_CACHE"]).rglob("*.rows")]


ALL_CASES_ON_EVERY_RANK = """
import json, sys
from pathlib import Path
from mpi4py import MPI
import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.exchange.ranks import ranks_of

def attempt(job, out):
    try:
        ranks.on_root(lambda: mc.load_job(job).name)     # as the command line does
        mc.run(mc.load_job(job), out=out, ranks=ranks)
    except UserError as error:
        return [type(error).__name__, str(error)]
    return ["", "nothing was wrong"]

ranks = ranks_of(MPI.COMM_WORLD)
said = [attempt(job, out) for job, out in json.loads(Path(sys.argv[1]).read_text())]
everywhere = MPI.COMM_WORLD.gather(said)
if ranks.is_root:
    print(json.dumps(everywhere))
"""


def test_on_three_ranks_all_learn_of_it_from_rank_0(tmp_path):
    jobs = [(str(case.write(tmp_path / str(i))), str(tmp_path / str(i) / case.out)) for i, case in enumerate(CASES)]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    script = tmp_path / "all.py"
    script.write_text(ALL_CASES_ON_EVERY_RANK)
    line = [BIN / "mpiexec", "-n", "3", sys.executable, "-m", "mpi4py", script, tmp_path / "jobs.json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENT)
    assert done.returncode == 0, done.stderr
    ranks = json.loads(done.stdout)
    assert len(ranks) == 3
    for case, *said in zip(CASES, *ranks, strict=True):
        kinds, texts = zip(*said, strict=True)
        assert set(kinds) == {"SharedUserError"}, case.name  # rank 0 tells it, the others end by themselves
        assert len(set(texts)) == 1, case.name
        assert re.search(naming(case.says), texts[0]), (case.name, texts[0])


DIVERGING = """
data = { generator = "gspar", samples = 60, dim = 10 }
objective.loss = "least-squares"
workers.count = 3
stop.rounds = 400
[[run]]
label = "good"
algorithm = { name = "gd" }
[[run]]
label = "wild"
algorithm = { name = "gd", step = "100/L" }
[[run]]
label = "good, too"
algorithm = { name = "gd", step = "0.5/L" }
"""


@pytest.mark.parametrize(("ranks", "options"), [(None, []), pytest.param(3, [], marks=pytest.mark.slow), (None, ["--quiet"])])
def test_divergence_ends_its_run_and_no_other(ranks, options, tmp_path, capfd):
    (tmp_path / "job.toml").write_text(DIVERGING)
    line = ["run", str(tmp_path / "job.toml"), "--out", str(tmp_path / "out"), *options]

    def typed():
        if not ranks:
            assert main(line) == 3
            return capfd.readouterr().err
        done = command(*line, ranks=ranks)
        assert done.returncode == 3
        return done.stderr

    told = typed()
    runs = {r.label: r for r in map(mc.read, (tmp_path / "out" / "job").glob("*.h5"))}
    assert {label: r.status for label, r in runs.items()} == {"good": "complete", "wild": "diverged", "good, too": "complete"}
    wild = runs["wild"]
    assert 50 < len(wild.trace["round"]) < 401
    assert wild.trace["loss"][-2] > 1e100
    assert "not finite" in wild.attrs["reason"]
    assert f"wild: diverged ({wild.attrs['reason']})" in told
    assert ("good: complete" in told) == (not options)
    again = typed()
    assert f"wild: diverged ({wild.attrs['reason']})" in again
    assert ("good: done already" in again) == (not options)
