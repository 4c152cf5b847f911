"""What the theorem of a step takes for granted is said where a problem does not state it."""

import tomllib

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

import mpi_compress as mc
from mpi_compress.algorithms.theorem import is_of_another
from mpi_compress.cli.main import main
from mpi_compress.problem.penalties import penalties

JOB = """
data = { generator = "gspar", samples = 60, dim = 12, seed = 1 }
objective = { loss = "LOSS", mu = MU, penalty = { name = "ratio", weight = 0.1 }, f_star = "skip" }
workers = { count = 3 }
stop = { rounds = 3 }
[[run]]
label = "METHOD"
algorithm = { name = "METHOD"STEP }
up = { compressor = { name = "COMPRESSOR" } }
"""
SAID = "its step follows {}'s theorem, which is about convex f_i; these are not known to be convex"


def job(method="diana", compressor="random-k", loss="logistic", mu="1e-3", step=""):
    text = JOB.replace("METHOD", method).replace("LOSS", loss).replace("MU", mu).replace("STEP", step)
    return text.replace('"COMPRESSOR"', '"random-k", k = 3' if compressor == "random-k" else f'"{compressor}"')


def run(text, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(text)
    return mc.run(mc.load_job(file), out=tmp_path / "results")[0]


@pytest.mark.parametrize(
    ("method", "compressor"),
    [("diana", "random-k"), ("adiana", "random-k"), ("scaffnew", "identity"), ("locodl", "random-k"), ("local-sgd", "identity")],
)
def test_a_step_of_a_theorem_about_convex_functions_says_so_where_they_are_not(method, compressor, tmp_path, capsys):
    more = ", local_steps = 2" if method == "local-sgd" else ""
    (tmp_path / "job.toml").write_text(job(method, compressor, step=more))
    assert main(["run", str(tmp_path / "job.toml"), "--out", str(tmp_path / "results")]) == 0
    said = capsys.readouterr()
    assert f"{method}: {SAID.format(method)}" in said.out + said.err
    (file,) = (tmp_path / "results").rglob("*.h5")
    assert mc.read(file).attrs["condition"] == SAID.format(method)
    assert main(["show", str(file)]) == 0
    assert SAID.format(method) in capsys.readouterr().out


@pytest.mark.parametrize("text", [
    job(mu="0.05"),  # (λ/2) of the penalty: the f_i are convex again
    job(step=", step = 0.1"),
    job("gd", "identity"),
    job("marina", "random-k", step=", p = 0.5"),
], ids=["a large mu", "a step of its own", "gd", "marina"])  # fmt: skip
def test_nothing_is_said_where_the_theorem_holds_or_is_not_asked(text, tmp_path):
    assert "condition" not in run(text, tmp_path).attrs


def test_a_multiple_of_the_step_and_a_loss_that_is_not_convex_are_told_too(tmp_path):
    text = job(loss="squared-sigmoid", mu="0.05", step=', step = "2*theory"')
    assert run(text, tmp_path).attrs["condition"] == SAID.format("diana")


MINE = """
import mpi_compress as mc

@mc.algorithms.register("mine")
class Mine(mc.algorithms["ef21"]):
    def worker_sends(self, node, worker, f, t):
        return super().worker_sends(node, worker, f, t)
"""
PRODUCTS = """
plugins = ["of_mine"]
data = { generator = "gspar", samples = 60, dim = 12, seed = 1 }
objective = { mu = 1e-3, f_star = "skip" }
workers.count = 3
stop.rounds = 3
up.compressor = { name = "top-k", k = 3 }
[[run]]
label = "mine"
algorithm.name = "mine"
[[run]]
label = "product"
algorithm = { name = "ef21", server = "nesterov", step = "2*theory" }
[[run]]
label = "its own step"
algorithm = { name = "ef21", server = "nesterov", step = 0.1 }
[[run]]
label = "the paper's"
algorithm.name = "ef21"
"""


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_a_step_of_the_theorem_of_another_method_says_so(tmp_path, capsys):
    """A class that changes a line of EF21's, and EF21 with another server: plan, run with its summary, the result and show say it."""
    (tmp_path / "of_mine.py").write_text(MINE)
    file, out = tmp_path / "job.toml", ["--out", str(tmp_path / "results")]
    file.write_text(PRODUCTS)
    of = "its step is that of EF21's theorem, and no theorem is known for {}"
    said = {"mine": of.format("mine"), "product": of.format("ef21 with nesterov")}
    assert main(["plan", str(file), *out]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "no theorem is known" in line]
    assert told == [f"{text}: {label}" for label, text in said.items()]
    assert main(["run", str(file), *out]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "no theorem is known" in line]
    assert told == [*(f"{text.rpartition(' for ')[2].split()[0]}: {text}" for text in said.values()), *(f"{text}: {label}" for label, text in said.items())]
    results = {(run := mc.read(each)).label: run for each in (tmp_path / "results").rglob("*.h5")}
    assert {label: run.attrs["condition"] for label, run in results.items() if "condition" in run.attrs} == said
    assert main(["show", str(results["product"].file)]) == 0
    assert f"  theory    {said['product']}\n" in capsys.readouterr().out


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_the_step_of_a_users_class_is_by_the_formula_that_it_states_and_a_run_says_so_once_a_method(tmp_path, capsys):
    stating = MINE.replace("    def worker", "    theory = '0.5/L'\n\n    def worker")
    (tmp_path / "of_mine.py").write_text(stating)
    tables = tomllib.loads(PRODUCTS) | {"run": [{"label": "mine"}], "algorithm": {"name": "mine", "server": "heavy-ball"}}
    tables["tune"] = {"parameter": "algorithm.step", "values": ["theory", "2*theory", "4*theory"], "to": {"loss": 0.1}}
    file = tmp_path / "job.toml"
    file.write_text(tomli_w.dumps(tables))
    assert main(["run", str(file), "--out", str(tmp_path / "results")]) == 0
    said = "its step is by the formula that Mine states, and no theorem is known for mine with heavy-ball"
    told = [line for line in capsys.readouterr().err.splitlines() if "no theorem is known" in line]
    assert told == [f"mine: {said}", f"{said}: mine"]


def test_each_method_of_the_package_has_a_theorem_of_its_own_for_the_step_that_it_calls_theory():
    assert [name for name, cls in mc.algorithms.items() if cls.theory and is_of_another(cls)] == []


@given(st.floats(-5, 5), st.floats(1e-3, 10))
def test_second_derivatives_of_penalties_are_between_what_they_state(x, λ):
    """By difference quotients of the gradient; the bounds of the ratio penalty are −λ/2 and 2λ."""
    for name in ("ratio", "l2"):
        r, h = penalties.build({"name": name, "weight": λ}, "penalty").evaluated({}), 1e-5
        slope = (r.gradient(np.array([x + h])) - r.gradient(np.array([x - h])))[0] / (2 * h)
        assert λ * r.lowest - 1e-4 * λ <= slope <= λ * r.curvature + 1e-4 * λ
    ratio = penalties.build({"name": "ratio", "weight": 1.0}, "penalty").evaluated({})
    h = 1e-5
    assert (ratio.gradient(np.array([1 + h])) - ratio.gradient(np.array([1 - h])))[0] / (2 * h) == pytest.approx(-0.5, abs=1e-6)
