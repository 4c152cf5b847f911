"""[tune] over several parameters, on other problems than the run's own; and [protocol], which says both for all methods of a job."""

import math
from statistics import geometric_mean, median

import numpy as np
import pytest
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress.job.trials import WHOLE, trials_of

JOB = """
data.path = "c.libsvm"
objective.mu = "1e-1 L"
workers.count = 3
stop = { rounds = 300, suboptimality = 1e-8 }
[grid]
seed = [10, 11]
[protocol]
on = { "data.path" = ["a.libsvm", "b.libsvm"], "workers.count" = [2] }
candidates = 4
to = { suboptimality = 1e-6 }
seeds = [0, 1]
untuned = ["plain"]
[[run]]
label = "EF21"
algorithm.name = "ef21"
[run.tune]
draw = 4
[run.tune.candidates]
"algorithm.step" = ["theory", "4 theory", "16 theory"]
"up.compressor" = [{ name = "top-k", k = 1 }, { name = "top-k", k = 3 }]
[[run]]
label = "DIANA"
algorithm.name = "diana"
[run.tune]
candidates = [
  { algorithm.step = "theory", up.compressor = { name = "random-k", k = 2 } },
  { algorithm.step = "2 theory", up.compressor = { name = "random-k", k = 4 } },
  { algorithm.step = "2 theory", up.compressor = { name = "qsgd", levels = 3, norm = "max" } },
  { algorithm.step = "theory", up.compressor = "natural" },
]
[[run]]
label = "plain"
algorithm.name = "gd"
"""


@pytest.fixture
def job(tmp_path):
    rng = np.random.default_rng(5)
    for name, dim in {"a": 6, "b": 9, "c": 8}.items():
        X = rng.normal(size=(40, dim)) * np.geomspace(1, 3, dim)
        mc.data.save(X, np.sign(X @ rng.normal(size=dim) + rng.normal(size=40)), tmp_path / f"{name}.libsvm")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "job.toml"


@pytest.mark.parametrize("label", ["EF21", pytest.param("DIANA", marks=pytest.mark.slow)])
def test_the_settings_that_win_are_the_best_of_all_on_the_problems_of_the_protocol(label, job, tmp_path):
    """Every candidate is run whole on each problem with each seed; the geometric mean over problems of the medians is compared."""
    found, plain = (mc.run(mc.load_job(job, only=each), out=tmp_path, quiet=True)[-1] for each in (label, "plain"))

    def took(spec, values, name):
        sets = {**values, "data.path": f"{name}.libsvm", "workers.count": 2}
        of_seeds = []
        for seed in (0, 1):
            written = spec.changed({**sets, "seed": seed}, "one", "tune").written | {"data": {"path": str(tmp_path / f"{name}.libsvm")}}
            (run,) = mc.run(mc.load_job({"title": "one", **written}), out=tmp_path / "all", quiet=True)
            row = run.to("suboptimality", 1e-6)
            of_seeds.append(math.inf if row is None else row["wire_bits"])
        return median(of_seeds)

    spec = next(spec for spec in mc.load_job(job).runs if spec.label == label)
    means = [geometric_mean([took(spec, values, name) for name in "ab"]) for values in spec.tune.grid]
    assert min(means) < math.inf
    assert found.tuned["value"] == spec.tune.grid[means.index(min(means))]
    assert min(took for took in found.tuned["took"] if took is not None) == pytest.approx(min(means), rel=1e-12)
    assert len(found.tuned["tried"]) == 4
    assert plain.tuned is None


def test_jobs_of_a_folder_share_the_trials_that_are_not_on_their_own_data(job, tmp_path):
    folder, trials = tmp_path / "jobs" / "campaign", []
    folder.mkdir(parents=True)
    for n in (3, 4):
        text = JOB.replace("workers.count = 3", f"workers.count = {n}")
        for name in "abc":
            text = text.replace(f'"{name}.libsvm"', f'"{job.parent / name}.libsvm"')
        (folder / f"{n}.toml").write_text(text)
        mc.run(mc.load_job(folder / f"{n}.toml"), out=tmp_path / "out", quiet=True)
        trials.append({file.name: file.stat().st_mtime_ns for file in (tmp_path / "out" / "campaign" / "tuning").glob("*.h5")})
    assert trials[0] == trials[1]
    assert {file.parent.name for file in (tmp_path / "out").rglob("*.h5")} == {"tuning", "3", "4"}


def test_what_is_drawn_of_the_candidates_is_the_same_in_every_job(job):
    grids = [mc.load_job(job).runs[0].tune.grid, mc.load_job(job, {"seed": 12}).runs[0].tune.grid]
    assert grids[0] == grids[1]
    assert len({str(each) for each in grids[0]}) == 4


def test_settings_that_read_alike_have_trials_of_their_own(job):
    qsgd = '{ "up.compressor" = { name = "qsgd", levels = 8, bucket = 4 } }, { "up.compressor" = { name = "qsgd", bucket = 8, levels = 4 } }, '
    job.write_text(JOB.replace("candidates = [\n", f"candidates = [\n  {qsgd}").replace('  { algorithm.step = "2 theory"', '  # {'))
    (spec,) = mc.load_job(job, only="DIANA", overrides={"seed": 10}).runs
    parts = [trials_of(spec, value, WHOLE)[0].up.compressor for value in spec.tune.grid[:2]]
    assert [(part.levels, part.bucket) for part in parts] == [(8, 4), (4, 8)]


@pytest.mark.parametrize(("old", "new", "says"), [
    ('"c.libsvm"', '"a.libsvm"', "EF21 a.libsvm"),
    ("seed = [10, 11]", "seed = [10, 1]", "EF21 seed 1"),
    ("draw = 4", "draw = 3", "EF21 3 candidates = 4"),
    ('untuned = ["plain"]', "", "plain 4 untuned"),
    ("draw = 4", "draw = 4\nby = \"round\"", "EF21 tune.by"),
    ("draw = 4", "draw = 7", "draw = 7 6 candidates"),
    ('"algorithm.step" = ["theory", "4 theory", "16 theory"]', '"algorithm.step" = "theory"', "algorithm.step 'theory' list"),
    ('"algorithm.step" = [', '"algoritm.step" = [', "algoritm algorithm"),
    ("draw = 4", 'parameter = "algorithm.step"', "parameter candidates"),
    ('"data.path" = ["a.libsvm", "b.libsvm"], ', "", "on data.name"),
    ("candidates = 4\nto", "to", "candidates"),
])  # fmt: skip
def test_what_the_protocol_rules_out_is_refused_before_anything_runs(job, old, new, says):
    assert old in JOB
    job.write_text(JOB.replace(old, new, 1))
    with pytest.raises(mc.UserError, match=naming(says)):
        mc.load_job(job)
