"""Problems of one's own: what is stated is used, what is not known is not borrowed, and what is wrong ends in one line."""


import numpy as np
import pytest
import scipy.optimize
from helpers.own_parts import module_in
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.errors import UserError

HUBER = '''
@mc.losses.register("my-huber")
@dataclass(frozen=True)
class MyHuber(mc.Loss):
    curvature = 1.0
    solver = "newton"
    real_labels = True

    def value_and_slope(self, y, m):
        slope = np.clip(m - y, -1, 1)
        return slope * (m - y - slope / 2), slope
'''
LOSS = """
@mc.losses.register("mine")
@dataclass(frozen=True)
class Mine(mc.Loss):
    real_labels = True
    def value_and_slope(self, y, m):
        {}
"""
MODEL = """
@mc.models.register("mine")
@dataclass(frozen=True)
class Mine(mc.Model):
    labels = "number"
    @property
    def blocks(self):
        return {{"x": (self.outline.features,)}}
    def loss_and_gradient(self, x, rows, draw):
        {}
"""


pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")


def job(tmp_path, source="", objective="", algorithm='{ name = "gd", step = 0.1 }', more="", data=""):
    name = module_in(tmp_path, source)
    file = tmp_path / "own.toml"
    file.write_text(f"""
plugins = ["{name}"]
data = {{ {data or 'generator = "least-squares", samples = 60, dim = 8'} }}
objective = {{ {objective} }}
workers = {{ count = 3 }}
algorithm = {algorithm}
{more or "stop = { rounds = 5 }"}
""")
    return mc.load_job(file)


def played(tmp_path, *arguments, **tables):
    (run,) = mc.run(job(tmp_path, *arguments, **tables), out=tmp_path)
    return run


def test_huber_as_a_plugin_reaches_the_optimum_that_scipy_finds(tmp_path):
    own = played(tmp_path, HUBER, 'loss = "my-huber", mu = 0.01', '{ name = "gd" }', "stop = { suboptimality = 1e-10, rounds = 99999 }")
    ours = played(tmp_path, "", 'loss = "huber", mu = 0.01', '{ name = "gd" }', "stop = { rounds = 1 }")
    a, y = mc.datasets.generators["least-squares"](samples=60, dim=8).make()

    def f(x):
        r = a @ x - y
        return np.mean(np.where(np.abs(r) <= 1, r * r / 2, np.abs(r) - 0.5)) + 0.005 * x @ x

    found = scipy.optimize.minimize(f, np.zeros(8), method="BFGS", options={"gtol": 1e-9})
    assert own.status == "complete"
    assert own.trace["suboptimality"][-1] <= 1e-10
    assert own.attrs["f_star"] == pytest.approx(found.fun, rel=1e-9)
    assert own.attrs["f_star"] == pytest.approx(ours.attrs["f_star"], rel=1e-12)
    assert own.attrs["f_star_source"] == "solver"


def test_where_no_minimiser_exists_results_say_so_and_what_needs_one_is_refused(tmp_path, capsys):
    separable = {"data": {"generator": "gspar", "samples": 20, "dim": 40}, "algorithm": {"name": "gd"}, "stop": {"rounds": 3}}
    (run,) = mc.run(separable, out=tmp_path)
    assert (run.attrs["f_star"], run.trace["suboptimality"].tolist()) == (0.0, run.trace["loss"].tolist())
    assert main(["table", str(run.file), "--to", "suboptimality=1"]) == 0
    assert "f* = 0 is not attained: mu = 0" in capsys.readouterr().out
    with pytest.raises(UserError, match=naming("distance x* not attained")):
        run.column("distance")
    with pytest.raises(UserError, match=naming("x* not attained mu > 0")):
        mc.run({**separable, "start": {"at": "optimum"}}, out=tmp_path)


@pytest.mark.parametrize(("body", "complaint"), [
    ("return np.zeros(3), m - y", "mine value_and_slope (3,)"),
    ("return (m - y) ** 2, m - y[:-1, None]", "mine, value_and_slope: slopes have shape"),
    ("return m - y", "mine value_and_slope float64"),
    ("return (m - m) / (m - m), m", "mine, value_and_slope: the value is NaN"),
    ("return m, np.sqrt(-1 - m * m)", "mine, value_and_slope: the slope is NaN at"),
    ('return "much", "more"', "mine value_and_slope ()"),
])  # fmt: skip
def test_a_loss_that_returns_something_wrong_is_named_in_one_line(tmp_path, body, complaint):
    with pytest.raises(UserError, match=naming(complaint)):
        played(tmp_path, LOSS.format(body), 'loss = "mine"')


@pytest.mark.parametrize(("body", "complaint"), [
    ("return 0.0, x[:-1]", "mine, loss_and_gradient: coordinates of the gradient (7,) (8,)"),
    ("return 0.0, x / 0", "mine, loss_and_gradient: the gradient inf at coordinate"),
    ("return np.nan, x", "mine, loss_and_gradient: the loss is nan, where x is finite"),
    ("return x", "mine loss_and_gradient float64 (8,)"),
    ("return np.zeros(2), x", "mine, loss_and_gradient: the loss has shape (2,)"),
])  # fmt: skip
def test_a_model_that_returns_something_wrong_is_named_in_one_line(tmp_path, body, complaint):
    with pytest.raises(UserError, match=naming(complaint)):
        played(tmp_path, MODEL.format(body), 'model = "mine"')


@pytest.mark.parametrize(("source", "objective", "missing"), [
    ('@mc.penalties.register("mine")\n@dataclass(frozen=True)\nclass Mine(mc.Penalty):\n    def value(self, x): return 0.0', 'loss = "huber", penalty = "mine"', "prox"),
    (
        '@mc.penalties.register("mine")\n@dataclass(frozen=True)\nclass Mine(mc.Penalty):\n    curvature = 1.0\n'
        "    def value(self, x): return 0.0", 'loss = "huber", penalty = "mine"', "gradient",
    ),
    (MODEL.format("return x @ x - x.sum(), 2 * x - 1").replace('labels =', 'solver = "newton"\n    labels ='), 'model = "mine"', "hessian_product"),
    (MODEL.format("return x @ x, 2 * x").replace('labels =', 'solver = "exact"\n    labels ='), 'model = "mine"', "minimise"),
])  # fmt: skip
def test_a_method_that_a_part_states_and_does_not_define_is_named_in_one_line(tmp_path, source, objective, missing):
    with pytest.raises(UserError, match=rf"^[^\n]*'mine' defines no {missing}[^\n]*$"):
        played(tmp_path, source, objective)


def test_the_gradient_of_a_model_reaches_the_algorithm(tmp_path):
    run = played(tmp_path, MODEL.format("return x @ x / 2 - x.sum(), x - 1"), 'model = "mine"', '{ name = "gd", step = 0.5 }')
    np.testing.assert_allclose(run.x, np.full(8, 1 - 0.5**5), rtol=1e-13)
    assert run.attrs["dim"] == 8


def test_what_a_model_does_not_state_is_not_known(tmp_path):
    run = played(tmp_path, MODEL.format("return x @ x / 2 - x.sum(), x - 1"), 'model = "mine"')
    assert np.isnan([run.attrs["L"], run.attrs["f_star"], *run.trace["suboptimality"]]).all()
    with pytest.raises(UserError, match=r"algorithm.step: '1/L' needs L, and the model 'mine' states none; give a number"):
        played(tmp_path, MODEL.format("return x @ x, 2 * x"), 'model = "mine"', '{ name = "gd" }')


@pytest.mark.parametrize(("given", "L"), [("3.2", 3.2), ('"estimate"', 1.0)])
def test_the_job_may_say_what_is_not_stated(tmp_path, given, L):
    objective = f'model = "mine", smoothness = {given}, f_star = -4.0'
    run = played(tmp_path, MODEL.format("return x @ x / 2 - x.sum(), x - 1"), objective, '{ name = "gd" }')
    assert run.attrs["L"] == pytest.approx(L)
    assert run.attrs["L_source"] == {"3.2": "given"}.get(given, "estimate")
    assert run.trace["suboptimality"][-1] == run.trace["loss"][-1] + 4.0


def test_an_estimate_of_a_known_smoothness_is_close_and_not_above(tmp_path):
    known, estimate = (played(tmp_path, "", f'loss = "logistic", mu = 0.01{more}', data='generator = "gspar", samples = 60, dim = 20')
                       for more in ("", ', smoothness = "estimate"'))  # fmt: skip
    assert (known.attrs["L_source"], estimate.attrs["L_source"]) == ("computed", "estimate")
    assert estimate.attrs["L"] <= known.attrs["L"] * (1 + 1e-6)
    assert estimate.attrs["L"] >= known.attrs["L"] * 0.5


def test_an_estimate_of_every_worker_s_smoothness_is_of_its_share_of_the_rows(tmp_path):
    """f_i is n/N times the sum over its rows: L_max of IADE, estimated, is close to the known one and not above."""
    iade = '{ name = "iade" }\nup = { compressor = "lattice" }\ndown = { compressor = "lattice" }'
    known, estimate = (played(tmp_path, "", f'loss = "logistic", mu = 0.01{more}', iade, data='generator = "gspar", samples = 60, dim = 20')
                       for more in ("", ', smoothness = "estimate"'))  # fmt: skip
    assert 0.5 * known.attrs["L_max"] <= estimate.attrs["L_max"] <= known.attrs["L_max"] * (1 + 1e-6)


def test_the_lowest_value_of_a_long_run_is_no_lower_than_f_star(tmp_path):
    seen, solved = (played(tmp_path, "", f'loss = "huber", mu = 0.01{more}') for more in (', f_star = "lowest seen"', ""))
    assert seen.attrs["f_star_source"] == "lowest seen"
    assert np.isnan(seen.attrs["f_star_accuracy"])
    assert seen.attrs["f_star"] >= solved.attrs["f_star"] - 1e-15
    assert seen.attrs["f_star"] == pytest.approx(solved.attrs["f_star"], abs=1e-12)
    assert seen.attrs["L"] == solved.attrs["L"]


def test_f_star_can_be_left_out(tmp_path):
    run = played(tmp_path, "", 'loss = "huber", mu = 0.01, f_star = "skip"')
    assert np.isnan(run.attrs["f_star"])
    for more in ("stop = { suboptimality = 1e-3 }", 'stop = { rounds = 1 }\nstart = { at = "optimum" }'):
        with pytest.raises(UserError, match=r"objective.f_star = 'skip' leaves out what the job needs"):
            played(tmp_path, "", 'loss = "huber", mu = 0.01, f_star = "skip"', more=more)


def test_a_run_stops_at_a_gradient_norm(tmp_path):
    run = played(tmp_path, "", 'loss = "huber", mu = 0.01', '{ name = "gd" }', "stop = { grad_norm = 1e-3, rounds = 9999 }")
    assert run.trace["grad_norm"][-1] <= 1e-3 < run.trace["grad_norm"][-2]


@pytest.mark.parametrize(("objective", "algorithm", "complaint"), [
    ('loss = "huber", model = "softmax"', None, "objective: loss and model were given"),
    ('loss = "softmax"', None, 'objective.loss: softmax is a model; write model = "softmax"'),
    ('model = "huber"', None, 'objective.model: huber is a loss of a margin; write loss = "huber"'),
    ('model = "sofmax"', None, "objective.model sofmax softmax"),
    ('penalty = { name = "ration" }', None, "objective.penalty ration ratio"),
    ('penalty = { name = "ratio", weigth = 1 }', None, "objective.penalty weigth weight"),
    ('penalty = { name = "ratio", weight = -1 }', None, "objective.penalty: weight = -1 0"),
    ('penalty = { name = "l1", weight = 1 }', '{ name = "dasha" }', "objective.penalty: 'l1' is not smooth, and dasha has no step"),
    ('penalty = { name = "ratio", weight = 1 }, mu = 1, regularizer = "master"', '{ name = "cat" }', "'ratio' is at the master"),
    ("smoothness = 0", None, "objective.smoothness: 0 was given; it should be above 0"),
    ('smoothness = "guess"', None, "objective.smoothness: 'guess' was given"),
    ('f_star = "lowest"', None, "objective.f_star: 'lowest' was given"),
    ('loss = { name = "huber", delta = 0 }', None, "objective.loss.delta 0 0"),
    ('model = "softmax"', None, "data: one.svm has one class only"),
    ('model = { name = "quadratic", dim = 5 }', None, "objective.model: quadratic needs data = { generator = \"tridiagonal\""),
])  # fmt: skip
def test_a_wrong_problem_is_refused_in_one_line(tmp_path, objective, algorithm, complaint):
    up = '\n[up]\ncompressor = { name = "top-k", k = 2 }\n' if algorithm else ""
    data = 'generator = "gspar", samples = 30, dim = 8'
    if "one class" in complaint:
        (tmp_path / "one.svm").write_text("3 1:1\n" * 5)
        data = f'path = "{tmp_path}/one.svm"'
    with pytest.raises(UserError, match=naming(complaint)):
        played(tmp_path, "", objective, algorithm or '{ name = "gd", step = 0.1 }', data=data, more="stop = { rounds = 1 }" + up)


def test_the_source_of_a_loss_a_penalty_and_a_model_is_part_of_the_run_id(tmp_path):
    def ids(*sources, objective):
        return {job(tmp_path, source, objective).runs[0].run_id for source in sources}

    assert len(ids(HUBER, HUBER.replace("-1, 1", "-2, 2"), objective='loss = "my-huber"')) == 2
    bodies = ("return x @ x, 2 * x", "return x @ x, 2. * x")
    assert len(ids(*map(MODEL.format, bodies), objective='model = "mine"')) == 2


@pytest.mark.parametrize("name", ["a9a", "w1a"])
@pytest.mark.parametrize(
    ("algorithm", "compressor"),
    [("gd", '"identity"'), ("ef21", '{ name = "top-k", k = 10 }'), ("marina", '{ name = "random-k", k = 10 }')],
)
def test_theorem_steps_converge_on_the_nonconvex_problem_of_their_papers(real_data, tmp_path, name, algorithm, compressor):
    """The mean of ‖∇f‖² over the first T points is at most 2 (f(x0) − f(x_T)) / (γT) for gradient descent."""
    more = f"stop = {{ rounds = 400 }}\nup = {{ compressor = {compressor} }}"
    data = f'name = "{name}", rows = 2000'
    run = played(tmp_path, "", 'penalty = { name = "ratio", weight = 0.1 }', f'{{ name = "{algorithm}" }}', more, data)
    squares, loss = run.trace["grad_norm"] ** 2, run.trace["loss"]
    assert squares[-100:].mean() < 0.2 * squares[:100].mean()
    assert loss[-1] < loss[0]
    if algorithm == "gd":
        assert squares[:-1].mean() <= 2 * run.attrs["L"] * (loss[0] - loss[-1]) / 400


@pytest.mark.parametrize("given", [0.0, 0.5])
def test_an_infimum_that_the_job_gives_is_named_and_said_to_be_wrong_where_a_loss_is_below_it(given, tmp_path, capsys):
    """The loss of this problem falls from 0.69 to 0.42."""
    job, out = tmp_path / "job.toml", ["--out", str(tmp_path)]
    job.write_text(f'''
data = {{ generator = "gspar", samples = 200, dim = 20 }}
objective = {{ mu = "1e-1 L", f_star = {given} }}
workers.count = 4
stop.rounds = 100
algorithm.name = "gd"
''')
    wrong = "f* = 0.5, as the job gives it, is above a loss that was reached: suboptimality is not right"
    assert main(["run", str(job), *out]) == 0
    assert (wrong in capsys.readouterr().err) == (given > 0)
    assert main(["table", str(job), "--to", "suboptimality=0.1", *out]) == 0
    table = capsys.readouterr().out
    assert f"f* = {given:g} is given by the job" in table
    assert (wrong in table) == (given > 0)
    assert main(["plot", str(job), *out]) == 0
    assert (wrong in capsys.readouterr().err) == (given > 0)


def test_an_infimum_of_0_that_a_job_gives_is_wrong_where_a_loss_is_negative(tmp_path, capsys):
    """A quadratic with a linear term is 0 at 0, and falls below it."""
    job = tmp_path / "job.toml"
    job.write_text('''
data = { generator = "tridiagonal", samples = 2 }
objective = { model = { name = "quadratic", dim = 10 }, f_star = 0.0 }
workers.count = 2
stop.rounds = 20
algorithm.name = "gd"
''')
    assert main(["run", str(job), "--out", str(tmp_path)]) == 0
    assert "f* = 0, as the job gives it, is above a loss that was reached" in capsys.readouterr().err
