"""Losses and partitions that users register: what one does not state is refused or unknown, never taken from another."""

import re

import numpy as np
import pytest
from helpers.own_parts import module_in
from helpers.refusals import naming, refused

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.errors import UserError
from mpi_compress.kernels import losses as kernels
from mpi_compress.problem.losses import Loss, losses
from mpi_compress.problem.models import models
from mpi_compress.problem.optimum import SOLVERS

HEAD = """
from dataclasses import dataclass
import numpy as np
from mpi_compress.kernels.losses import *
from mpi_compress.kernels.losses import HINGE, LOGISTIC
from mpi_compress.problem.losses import Loss, losses
from mpi_compress.problem.partitions import Partition, partitions
"""
LOSS = """
@losses.register("mine")
@dataclass(frozen=True)
class Mine(Loss):
    formula = "mine"
    {}
"""


pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")


def job(tmp_path, source, loss="mine", **changes):
    """A job with a module of one's own beside it."""
    name = module_in(tmp_path, source, HEAD)
    (tmp_path / "own.toml").write_text(f"""
        plugins = ["{name}"]
        data = {{ generator = "gspar-svm", samples = 40, dim = 6 }}
        objective = {{ loss = "{loss}", mu = 0.1 }}
        workers = {{ count = 4 }}
        algorithm = {{ name = "gd", step = 0.1 }}
        stop = {{ rounds = 5 }}
    """)
    return mc.load_job(tmp_path / "own.toml", changes)


def played(tmp_path, *arguments, **changes):
    (run,) = mc.run(job(tmp_path, *arguments, **changes), out=tmp_path)
    return run


@pytest.mark.parametrize(("stated", "complaint"), [
    ("curvature = 1.0", "'mine' states no kernel; it needs value_and_slope"),
    ("kernel = 99", "'mine' kernel 99 exist; value_and_slope"),
    ("kernel = HINGE\n    def curvature(self): return 1.0", "curvature is a method; it should be a value, or a @property ( line 14)"),
    ("kernel = HINGE\n    curvature = '1.0'", "curvature 1.0 a number"),
    ("kernel = HINGE\n    curvature = -1.0", "curvature -1.0 0"),
    ("kernel = HINGE\n    curvature = property(lambda self: None)", "curvature None"),
    ("kernel = HINGE\n    convex = 0.5", "convex 0.5 true false"),
    ("kernel = HINGE\n    def solver(self): return 'newton'", "solver method value @property"),
    ("kernel = HINGE\n    def provenance(self): return {}", "provenance method value @property"),
])  # fmt: skip
def test_what_a_loss_states_of_another_kind_is_refused_in_one_line(tmp_path, stated, complaint):
    with pytest.raises(UserError, match=naming(f"own.toml: objective.loss: {complaint}")):
        job(tmp_path, LOSS.format(stated))


def test_a_curvature_may_be_a_property_of_parameters_or_a_number_of_numpy(tmp_path):
    for stated in ("curvature = property(lambda self: 0.25)", "curvature = np.float64(0.25)"):
        run = played(tmp_path, LOSS.format(f"kernel = LOGISTIC\n    {stated}"))
        assert run.status == "complete"
        assert np.isfinite(run.attrs["L"])


def test_a_loss_without_a_kernel_is_refused_in_python_too():
    class Mine(Loss):
        name = "mine"

    with pytest.raises(UserError, match=r"'mine' .* kernel"):
        Mine()


def test_a_kernel_without_a_curvature_is_refused_by_the_name_of_its_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "ROWS", [*kernels.ROWS, (lambda y, m: (m, 1.0), None)])
    complaint = f"own.toml: objective.loss: 'mine' states kernel = {len(kernels.ROWS) - 1}, whose row has no curvature"
    with pytest.raises(UserError, match=naming(complaint)):
        job(tmp_path, LOSS.format(f"kernel = {len(kernels.ROWS) - 1}; solver = 'newton'"))


@pytest.mark.parametrize("kernel", ["HINGE", "LOGISTIC"])
def test_a_loss_without_a_solver_has_no_f_star(tmp_path, kernel):
    run = played(tmp_path, LOSS.format(f"kernel = {kernel}"))
    assert run.status == "complete"
    assert np.isnan(run.attrs["f_star"])
    assert np.isnan(run.trace["suboptimality"]).all()
    assert np.isfinite(run.trace["loss"]).all()


@pytest.mark.parametrize(
    ("solver", "complaint"),
    [("None", "the loss 'mine' states no solver"), ("'newtom'", "newton"),
     ("'newton'\n    def value_and_slope(self, y, m): return -y * m, y / (1 + np.exp(y * m))", "its start only; `check-part mine --job JOB` says whether its slopes are wrong")],
)
def test_a_job_that_needs_the_optimum_of_a_loss_without_a_solver_is_refused(tmp_path, solver, complaint):
    with pytest.raises(UserError, match=naming(f"x* {complaint}")):
        played(tmp_path, LOSS.format(f"kernel = HINGE; solver = {solver}"), **{"start.at": "optimum"})


def test_a_loss_that_states_what_the_hinge_states_is_the_hinge(tmp_path):
    mine = played(tmp_path, LOSS.format("kernel = HINGE; solver = 'hinge-dual'"))
    hinge = played(tmp_path, "", "hinge")
    assert mine.trace["suboptimality"].tobytes() == hinge.trace["suboptimality"].tobytes()
    assert (mine.trace["suboptimality"] > 0).all()


OWN = "solver = '{}'\n    curvature = 2.0\n    def value_and_slope(self, y, m): {}"
TWO_FUNCTIONS = OWN.format("newton", "return 1.01 * np.log1p(np.exp(-y * m)), -y / (1 + np.exp(y * m))")


def test_values_and_slopes_of_two_functions_have_no_f_star(tmp_path, capfd):
    why = "slope mine values `check-part mine --job JOB`"
    with pytest.raises(UserError, match=naming(f"objective: x* {why}")):
        played(tmp_path, LOSS.format(TWO_FUNCTIONS), **{"stop.suboptimality": 1e-3})
    run = played(tmp_path, LOSS.format(TWO_FUNCTIONS))
    assert np.isnan(run.attrs["f_star"])
    assert re.search(naming(f"x* cannot be computed: {why}"), run.attrs["f_star_source"])
    refused(["data", "solve", tmp_path / "own.toml"], capfd, f"x* {why}")
    refused(["plot", run.file, "-o", tmp_path / "a.png", "--y", "suboptimality"], capfd, f"suboptimality f* {why}")
    for told in (["table", run.file, "--to", "suboptimality=1e-3"], ["show", run.file]):
        assert main([*map(str, told)]) == 0
        assert "f* is not known: x* cannot be computed: at the margin " in capfd.readouterr().out


@pytest.mark.parametrize("loss", [
    OWN.format("hinge-dual", "r = 1 - y * m; return np.maximum(r, 0), -y * (r > 0)"),
    OWN.format("newton", "r = 1 - y * m; s = np.clip(2 * r, 0, 1); return s * (r - s / 4), -y * s"),
    OWN.format("newton", "return 1e-9 * np.logaddexp(0, -y * m), -1e-9 * y / (1 + np.exp(y * m))"),
    OWN.format("newton", "return 1e9 + (m - 1e3 * y) ** 2 / 2, m - 1e3 * y"),
    "convex = False\n    " + OWN.format("newton", "return np.log1p((m - y) ** 2), 2 * (m - y) / (1 + (m - y) ** 2)"),
])  # fmt: skip
def test_a_loss_whose_values_and_slopes_agree_has_its_f_star(tmp_path, loss):
    run = played(tmp_path, LOSS.format(loss))
    assert run.attrs["f_star_source"] == "solver"


def test_a_parameter_that_makes_what_is_stated_impossible_is_named_with_its_run(tmp_path):
    source = LOSS.format("kernel = LOGISTIC\n    delta: float = 0.0\n    curvature = property(lambda self: 1 / self.delta)")
    with pytest.raises(UserError, match=naming("own.toml: objective.loss: 'mine': curvature: division by zero 1 / self.delta")):
        job(tmp_path, source)


def test_a_misspelt_plugin_is_named_with_the_module_that_lies_there(tmp_path, capfd):
    name = module_in(tmp_path, LOSS.format("kernel = LOGISTIC"), HEAD)
    (tmp_path / "own.toml").write_text(f'plugins = ["{name[::-1].replace("_", "", 1)[::-1]}"]')
    line = refused(["plan", tmp_path / "own.toml"], capfd)
    assert line.endswith(f"here, beside the job, or installed; did you mean '{name}'?")


def test_another_source_of_a_loss_is_another_run_and_has_its_own_optimum(tmp_path):
    runs = [played(tmp_path, LOSS.format(f"kernel = {kernel}; solver = '{solver}'"))
            for kernel, solver in (("HINGE", "hinge-dual"), ("LOGISTIC", "newton"))]  # fmt: skip
    assert runs[0].attrs["run_id"] != runs[1].attrs["run_id"]
    assert runs[0].attrs["f_star"] != runs[1].attrs["f_star"]


def test_every_kernel_is_that_of_one_loss_and_every_solver_is_stated():
    assert sorted(losses[name].kernel for name in losses if losses[name].kernel is not None) == list(range(len(kernels.ROWS)))
    assert {part.solver for part in (*losses.values(), *models.values())} - {None} == set(SOLVERS)


def test_a_code_without_a_row_gives_nan():
    out = np.empty(1)
    kernels.curvatures(len(kernels.ROWS), np.ones(1), np.ones(1), out)
    assert np.isnan([*kernels.loss_and_slope(len(kernels.ROWS), 1.0, 1.0), *out]).all()


def test_a_partition_is_one_class(tmp_path):
    source = """
        @partitions.register("backwards")
        @dataclass(frozen=True)
        class Backwards(Partition):
            def order(self, labels, seed):
                return np.arange(labels.size)[::-1]
    """
    own = {"data.generator": "gspar", "workers.partition": "backwards"}
    backwards, contiguous = (
        played(tmp_path, source, "logistic", **{**own, **c}) for c in ({}, {"workers.partition": "contiguous"})
    )
    assert backwards.attrs["run_id"] != contiguous.attrs["run_id"]
    assert np.array_equal(backwards.trace["loss"][:1], contiguous.trace["loss"][:1])
    assert not np.array_equal(backwards.x, contiguous.x)
    np.testing.assert_allclose(backwards.x, contiguous.x)


def test_an_unknown_partition_is_refused_with_the_nearest_name(tmp_path):
    with pytest.raises(UserError, match=r"workers\.partition: no partition called 'shufled'; did you mean 'shuffled'"):
        job(tmp_path, "", "logistic", **{"workers.partition": "shufled"})
