"""V falls on random problems as each theorem says; wrong methods are caught by V alone; a user's own method gets the same."""

import importlib.util

import numpy as np
import pytest
from helpers.running import command

from mpi_compress.algorithms import error_memory, parts
from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators import diana, ef21, marina
from mpi_compress.algorithms.papers import fednl, iade, locodl, scaffnew
from mpi_compress.algorithms.theorem import TIGHT, stated, tight_factor
from mpi_compress.core.expressions import evaluate
from mpi_compress.engine.checking import findings_by_name, findings_in_job
from mpi_compress.guard.theorem import theorem
from mpi_compress.job.loading import load_job

STATING = (
    "adiana", "aiade", "cat", "dasha", "diana", "dqgd", "econtrol", "ef", "ef21", "ef21-p", "ef21-sgdm", "fednl", "gd", "iade", "locodl",
    "marina", "nesterov", "page", "rand-diana", "scaffnew",
)  # fmt: skip


def test_these_methods_state_v_and_no_method_inherits_it_with_other_lines():
    def states(name):
        part = algorithms[name](**({"deadline": 1.0} if name == "kimad" else {}))
        return stated(part)

    assert sorted(filter(states, algorithms)) == sorted(STATING)


@pytest.mark.parametrize("name", STATING)
def test_v_falls_as_the_theorem_says(name):
    (found,) = theorem(algorithms[name](), problems=6)
    assert found.holds, found.text


def with_original(owner, name, change):
    """A function in the place of a class's: `change` gets the original first."""
    original = getattr(owner, name)
    return owner, name, lambda *given: change(original, *given)


def with_other(name, change):
    """A verb that leaves in a worker's vector `name` what `change` makes of it, before and after."""

    def verb(original, self, node, worker, *rest):
        before = getattr(worker, name).copy()
        said = original(self, node, worker, *rest)
        getattr(worker, name)[:] = change(before, getattr(worker, name))
        return said

    return verb


unlearnt, stale = (with_other(name, lambda before, after: before) for name in ("g", "before"))
learnt_twice = with_other("h", lambda before, after: 2 * after - before)
other_sign = with_other("u", lambda before, after: 2 * before - after)
kept = with_other("H", lambda before, after: before if before.any() else after)


def forgotten(original, self, sent):
    """The error is not taken over."""
    before = self.e.copy()
    original(self, sent)
    self.e[:] = before


def opposite(original, self, sent):
    original(self, sent)
    self.e *= -1.0


def own_coin(original, self, node, worker, f, t):
    g, Δ = f.gradient(node.x).copy(), -f.gradient(node.known.before)
    return self.uplink(node, t.k).pack(g if t.rng.random() < float(self.p) else g + Δ, t)


def own_rows(original, self, node, worker, f, t):
    if node.known.full:
        return original(self, node, worker, f, t)
    one, other = t.rng.integers(len(f.rows), size=(2, 1)).astype(np.uint64)
    g = f.gradient(node.x, one).copy()
    return self.uplink(node, t.k).pack(g - f.gradient(node.known.before, other), t)


def without_p(original, self, node, worker, down, t):
    before = worker.h.copy()
    original(self, node, worker, down, t)
    worker.h += (worker.h - before) * (1 / float(self.p) - 1)


MUTANTS = {
    "gd, step × 2.5": ("gd", with_original(parts.Server, "along", lambda f, s, x, g, γ: f(s, x, g, 2.5 * γ))),
    "gd, n forgotten": ("gd", with_original(parts.Server, "along", lambda f, s, x, g, γ: f(s, x, g, γ * s.method.setting.n))),
    "ef, sign of e": ("ef", with_original(error_memory.ErrorMemory, "take_out", opposite)),
    "ef, nothing taken out of e": ("ef", with_original(error_memory.ErrorMemory, "take_out", forgotten)),
    "ef21, memory not updated": ("ef21", with_original(ef21.EF21, "worker_sends", unlearnt)),
    "diana, α doubled": ("diana", with_original(diana.DIANA, "worker_sends", learnt_twice)),
    "marina, stale gradients": ("marina", with_original(marina.MARINA, "worker_sends", stale)),
    "page, coin not shared": ("page", with_original(marina.PAGE, "worker_sends", own_coin)),
    "page, rows not shared": ("page", with_original(marina.PAGE, "worker_sends", own_rows)),
    "scaffnew, p forgotten": ("scaffnew", with_original(scaffnew.Scaffnew, "worker_hears", without_p)),
    "locodl, sign of u": ("locodl", with_original(locodl.LoCoDL, "worker_hears", other_sign)),
    "fednl, H not updated": ("fednl", with_original(fednl.FedNL, "worker_sends", kept)),
    "iade, coarse": ("iade", with_original(iade.IADE, "sigma", lambda f, s, k: 4 * f(s, k))),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_method_is_caught_within_50_rounds_by_v_alone(mutant, monkeypatch):
    name, change = MUTANTS[mutant]
    monkeypatch.setattr(*change)
    (found,) = theorem(algorithms[name](), problems=14, rounds=50)
    assert not found.holds, found.text


OWN = """
from dataclasses import dataclass

import numpy as np

import mpi_compress as mc


class OfHeavy(mc.Theorem):
    rate = "1 - step*mu"

    def V(self, m, node, workers, master, known):
        return known.gap


@mc.algorithms.register("heavy")
@dataclass(frozen=True)
class Heavy(mc.Estimator):
    theorem = OfHeavy()
    step: mc.Step = "1/L"  # γ

    def worker_sends(self, node, worker, f, t):
        return self.up.pack(f.gradient(node.x), t)
"""


def test_a_method_of_ones_own_gets_the_same_by_two_functions(tmp_path):
    (tmp_path / "heavy.py").write_text(OWN)
    job = """plugins = ["heavy"]
    data = { generator = "gspar", samples = 40, dim = 8 }
    objective = { mu = "1e-2 L" }
    stop = { rounds = 5 }
    log = { theory = true }
    run = [{ label = "heavy", algorithm = { name = "heavy" } }]"""
    (tmp_path / "own.toml").write_text(job)
    right = command("check-part", "heavy", "--theorem", "--job", tmp_path / "own.toml")
    assert (right.returncode, right.stdout.count("holds  theorem: ")) == (0, 1), right.stdout + right.stderr
    ran = command("run", tmp_path / "own.toml", "--out", tmp_path, "--quiet")
    assert ran.returncode == 0, ran.stderr
    (file,) = tmp_path.rglob("heavy*.h5")
    assert "lyapunov  worst factor of a round 0." in command("show", file).stdout
    (tmp_path / "own.toml").write_text(job.replace(' } }]', ' }, up.compressor = { name = "top-k", k = 2 } }]'))  # no gradient
    wrong = command("check-part", "heavy", "--theorem", "--job", tmp_path / "own.toml")
    assert (wrong.returncode, wrong.stdout.count("WRONG  theorem: V goes to ")) == (1, 1), wrong.stdout + wrong.stderr


def test_what_has_no_v_is_refused_in_one_line():
    refused = command("check-part", "sgd", "--theorem")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--theorem: sgd states no V, " in refused.stderr
    assert ", ef21, " in refused.stderr, "those that do"
    assert command("check-part", "top-k", "--theorem").returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("PEPit") is None, reason="pip install 'mpi-compress[theorems]'")
@pytest.mark.parametrize(("name", "lost"), [("gd", 0.0), ("ef", 0.25), ("ef21", 0.25), ("ef21", 0.6)])
def test_the_tight_factor_is_pepits_worst_case(name, lost):
    from PEPit import PEP
    from PEPit.functions import SmoothStronglyConvexFunction

    L, mu, ε, s, problem = 1.0, 0.1, lost, np.sqrt(lost), PEP()
    f = problem.declare_function(SmoothStronglyConvexFunction, L=L, mu=mu)
    best, x, η = f.stationary_point(), problem.set_initial_point(), evaluate(TIGHT, {"L_mean": L, "mu": mu, "delta": 1 - ε})
    if name == "gd":
        before, after = (x - best) ** 2, (x - η * f.gradient(x) - best) ** 2
    elif name == "ef":
        e, q = problem.set_initial_point(), problem.set_initial_point()  # e⁺ is q
        p = e + η * f.gradient(x)
        problem.add_constraint(q**2 <= ε * p**2)
        before, after = (x - best - e) ** 2 + e**2 / s, (x - best - p) ** 2 + q**2 / s
    else:
        g, q = problem.set_initial_point(), problem.set_initial_point()
        new = f.gradient(x - η * g)
        problem.add_constraint(q**2 <= ε * (new - g) ** 2)
        old = f.gradient(x)
        before, after = (g - old) ** 2 + s * old**2, q**2 + s * new**2
    problem.set_initial_condition(before <= 1)
    problem.set_performance_metric(after)
    assert problem.solve(verbose=0) == pytest.approx(tight_factor(L, mu, ε), rel=1e-3)


def test_a_server_of_a_method_s_name_has_no_theorem(tmp_path):
    (tmp_path / "job.toml").write_text('data = { generator = "gspar" }\nobjective = { mu = "1e-2 L" }\nstop = { rounds = 1 }\nalgorithm = { name = "nesterov" }\n')
    for found in (findings_by_name("nesterov", {}, True), findings_in_job("nesterov", load_job(tmp_path / "job.toml"), {}, True)):
        ((each,),) = found.values()
        assert each.holds
