"""A run whose loss explodes is no complete run; one that recovers is."""

import re
from dataclasses import replace

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.engine.counting import Counters
from mpi_compress.engine.observer import has_exploded
from mpi_compress.job.tables import Stop

EXPLODING = """
data = {{ generator = "least-squares", samples = 40, dim = 6 }}
objective = {{ loss = "{loss}", mu = 0.1 }}
workers = {{ count = 2 }}
algorithm = {{ name = "gd", step = {step} }}
stop = {{ rounds = {rounds}{more} }}
"""


def exploding(tmp_path, loss="least-squares", step="30.0", rounds=20, more=""):
    file = tmp_path / "exploding.toml"
    file.write_text(EXPLODING.format(loss=loss, step=step, rounds=rounds, more=more))
    (run,) = mc.run(mc.load_job(file), out=tmp_path)
    return run


def test_a_run_that_ends_far_above_its_start_and_rising_has_diverged(tmp_path):
    run = exploding(tmp_path)
    assert np.isfinite(run.trace["loss"]).all()
    assert run.trace["loss"][-1] > 1e3
    assert run.status == "diverged"
    assert re.fullmatch(r"the loss rose from \S+ to \S+ in 20 rounds: a smaller step size may help", run.attrs["reason"])


@pytest.mark.parametrize(("more", "status"), [(", diverged = inf", "complete"), (", diverged = 2", "diverged")])
def test_the_job_says_what_is_far_above(tmp_path, more, status):
    assert exploding(tmp_path, more=more).status == status


def test_a_run_that_recovers_is_complete(tmp_path):
    """A start far out, a loss that falls: nothing is judged before the end."""
    run = exploding(tmp_path, step="[[0, 30.0], [12, 0.05]]", rounds=3000)
    assert run.trace["loss"].max() > 1e3 * max(run.trace["loss"][0], 1)
    assert run.status == "complete"


def test_a_start_near_0_does_not_make_a_small_loss_an_explosion():
    """f(x0) counts as 1 where it is smaller."""
    counts = replace(Counters.begun(1), first_loss=1e-6, greatest_loss=0.9, last_loss=0.9)
    assert not has_exploded(Stop(rounds=1), counts)
    for last, greatest in ((1001.0, 1001.0), (1001.0, 1500.0), (1.1e6, 1e9)):  # rising, up and down, or beyond recovery
        assert has_exploded(Stop(rounds=1), replace(counts, last_loss=last, greatest_loss=greatest))
    assert not has_exploded(Stop(rounds=1), replace(counts, last_loss=999.0))
    assert not has_exploded(Stop(rounds=1), replace(counts, last_loss=1001.0, greatest_loss=2500.0))  # it recovers


@pytest.mark.usefixtures("registered_for_one_test_only")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_compressor_of_ones_own_that_returns_nan_is_named_and_no_step_is_blamed(value, tmp_path):
    @mc.compressors.register("late-nan")
    class LateNan(mc.Compressor):
        makes = mc.Dense

        def compress(self, v, t):
            out = v.copy()
            out[0] = out[0] if t.k < 3 else value
            return mc.Dense(out)

        def delta(self, dim):
            return 1.0

    tables = {
        "data": {"generator": "least-squares", "samples": 40, "dim": 6}, "objective": {"loss": "least-squares"},
        "workers": {"count": 2}, "algorithm": {"name": "gd"}, "stop": {"rounds": 9},
        "run": [{"label": way, way: {"compressor": "late-nan"}} for way in ("up", "down")],
    }  # fmt: skip
    up, down = (run.attrs["reason"] for run in mc.run(tables, out=tmp_path))
    says = r"the update of round 3 is not finite: {}: late-nan returns NaN or infinity for values of magnitude up to [\d.]+"
    assert re.fullmatch(says.format("worker 0"), up)
    assert re.fullmatch(says.format("the master"), down)


def test_a_loss_that_is_not_finite_says_where_and_blames_a_step_only_where_it_may(tmp_path):
    reason = exploding(tmp_path, step="1e200").attrs["reason"]
    assert re.fullmatch(r"the .* not finite.*: a smaller step size may help", reason)
