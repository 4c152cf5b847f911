"""V falls on random problems as each theorem says; wrong methods are caught by V alone; a user's own method gets the same."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from helpers.running import here

from mpi_compress.algorithms import error_memory, parts
from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators import diana, ef21, gd, marina
from mpi_compress.algorithms.papers import adiana, fednl, iade, locodl, scaffnew
from mpi_compress.algorithms.theorem import TIGHT, stated, tight_factor
from mpi_compress.core.expressions import evaluate
from mpi_compress.core.streams import Rounds
from mpi_compress.engine.checking import findings_by_name, findings_in_job
from mpi_compress.guard import random_problems
from mpi_compress.guard.of_messages import link_at
from mpi_compress.guard.random_problems import random_problem
from mpi_compress.guard.theorem import _constants, theorem
from mpi_compress.job.loading import load_job
from mpi_compress.messages.compressors import at_random, compressors, largest, signs
from mpi_compress.messages.kinds import Pair

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
@pytest.mark.parametrize(("problems", "rounds"), [(3, 25), pytest.param(4, 50, marks=pytest.mark.slow)])
def test_v_falls_as_the_theorem_says(name, problems, rounds):
    """Of the first three problems two have several workers and compressed messages."""
    found = [*theorem(algorithms[name](), problems, rounds)]
    assert all(each.holds for each in found), found


def with_original(owner, name, change):
    """A function in the place of a class's: `change` gets the original first."""
    original = getattr(owner, name)
    return owner, name, lambda *given: change(original, *given)


def with_other(name, change):
    """A verb that leaves in workers' vectors `name` what `change` makes of them, before and after."""

    def verb(original, self, node, w, *rest):
        before = getattr(w, name).copy()
        said = original(self, node, w, *rest)
        getattr(w, name)[:] = change(before, getattr(w, name))
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


def own_coin(original, self, node, w, fs, t):
    g, Δ = fs.gradients(node.x).copy(), -fs.gradients(node.known.before)
    heads = np.array([[each.rng.random() < float(self.p)] for each in t])
    return self.uplink(node, t.k).pack(np.where(heads, g, g + Δ), t)


def own_rows(original, self, node, w, fs, t):
    if node.known.full:
        return original(self, node, w, fs, t)
    drawn = [each.rng.integers(len(f.rows), size=(2, 1)).astype(np.uint64) for each, f in zip(t, fs, strict=True)]
    one, other = zip(*drawn, strict=True)
    g = fs.gradients(node.x, one).copy()
    return self.uplink(node, t.k).pack(g - fs.gradients(node.known.before, other), t)


def without_p(original, self, node, w, down, t):
    before = w.h.copy()
    original(self, node, w, down, t)
    w.h += (w.h - before) * (1 / float(self.p) - 1)


def scaled_by(factor):
    return lambda original, *given: factor * original(*given)


def at_most(most, factor):
    return lambda original, *given: min(most, factor * original(*given))


def shrunk(original, self, V, t):
    """0.8 times what was to be sent."""
    sent = original(self, V, t)
    return replace(sent, values=0.8 * sent.values)


def alike(original, self, V, t):
    """The draws of worker 0, whoever sends."""
    return original(self, V, Rounds(t.k, t._streams, t._role, np.zeros_like(t.who)))


def frozen(original, self, node, master, ups, t):
    """The master does not learn Hessians."""
    before = master.H
    answer = original(self, node, master, ups, t)
    if before.any():
        master.H = before
    return answer


def other_coin(original, self, node, t):
    """The next round is full where the coin says that it is not."""
    original(self, node, t)
    node.known.full = not node.known.full


def other_reference(original, self, node, down, t):
    """w is set to y with probability 1 − p."""
    stays, y = node.w, node.y
    original(self, node, down, t)
    node.is_new = not node.is_new
    node.w = y if node.is_new else stays


def always_whole(original, self, node, w, fs, t):
    """Every worker renews h_i in every round."""
    Δ = fs.gradients(node.x) - w.h
    sent = self.uplink(node, t.k).encode(Pair(self.up.compressed(Δ, t), self.up.whole.compress(Δ, t)))
    w.h += Δ
    return sent


def fewer(original, p, t):
    return original(min(1.0, 2 * p), t)


def too_much(original, self, node, w, fs, t):
    """1.3 (∇f_i(x) − g_i)."""
    sent = self.up.pack(1.3 * (fs.gradients(node.x) - w.g), t)
    self.up.unpack(sent).add_to(w.g)
    return sent


def without_e(original, self, node, w, fs, t):
    sent = original(self, node, w, fs, t)
    w.e[:] = 0.0
    return sent


def only_grown(original, self, node, w, fs, t):
    """What was sent is not subtracted from the error."""
    before = w.e + fs.gradients(node.x) - w.h
    sent = original(self, node, w, fs, t)
    w.e[:] = before
    return sent


def n_times(original, self, node, memory, mean, t):
    """h ← h + α Σ m_i."""
    h = memory.h.copy()
    mean.add_to(memory.h, self.alpha * self.setting.n)
    return h, mean


SHRUNK = [with_original(at_random.RandomK, verb, shrunk) for verb in ("compress_rows", "compress")]
MUTANTS = {
    "gd, step × 2.5": ("gd", with_original(parts.Server, "along", lambda f, s, x, g, γ: f(s, x, g, 2.5 * γ))),
    "gd, n forgotten": ("gd", with_original(parts.Server, "along", lambda f, s, x, g, γ: f(s, x, g, γ * s.method.setting.n))),
    "ef, sign of e": ("ef", with_original(error_memory.ErrorMemory, "take_out", opposite)),
    "ef, nothing taken out of e": ("ef", with_original(error_memory.ErrorMemory, "take_out", forgotten)),
    "ef21, memory not updated": ("ef21", with_original(ef21.EF21, "workers_send", unlearnt)),
    "ef21, 1.3 (∇f_i − g_i)": ("ef21", with_original(ef21.EF21, "workers_send", too_much)),
    "ef21, δ of top-k doubled": ("ef21", with_original(largest.TopK, "delta", at_most(1.0, 2.0))),
    "econtrol, δ of top-k doubled": ("econtrol", with_original(largest.TopK, "delta", at_most(1.0, 2.0))),
    "econtrol, δ of top-k halved": ("econtrol", with_original(largest.TopK, "delta", scaled_by(0.5))),
    "econtrol, e only grows": ("econtrol", with_original(ef21.EControl, "workers_send", only_grown)),
    "diana, h without 1/n": ("diana", with_original(diana.DIANA, "estimate", n_times)),
    "diana, α doubled": ("diana", with_original(diana.DIANA, "workers_send", learnt_twice)),
    **{
        f"{name}, ω of random-k {what}": (name, with_original(at_random.RandomK, "omega", scaled_by(factor)))
        for name in ("diana", "marina", "dasha", "adiana")
        for what, factor in (("halved", 0.5), ("doubled", 2.0))
    },
    "diana, random-k × 0.8": ("diana", *SHRUNK),
    "marina, random-k × 0.8": ("marina", *SHRUNK),
    "dasha, workers draw alike": ("dasha", with_original(at_random.RandomK, "compress_rows", alike)),
    "locodl, workers draw alike": ("locodl", with_original(at_random.RandomK, "compress_rows", alike)),
    "marina, stale gradients": ("marina", with_original(marina.MARINA, "workers_send", stale)),
    "marina, coin swapped": ("marina", with_original(marina.MARINA, "next_round", other_coin)),
    "page, coin swapped": ("page", with_original(marina.PAGE, "next_round", other_coin)),
    "page, coin not shared": ("page", with_original(marina.PAGE, "workers_send", own_coin)),
    "page, rows not shared": ("page", with_original(marina.PAGE, "workers_send", own_rows)),
    "rand-diana, no coin": ("rand-diana", with_original(diana.RandDIANA, "workers_send", always_whole)),
    "adiana, coin swapped": ("adiana", with_original(adiana.ADIANA, "all_hear", other_reference)),
    "scaffnew, p forgotten": ("scaffnew", with_original(scaffnew.Scaffnew, "workers_hear", without_p)),
    "scaffnew, chance doubled": ("scaffnew", with_original(scaffnew, "local_steps", fewer)),
    "locodl, sign of u": ("locodl", with_original(locodl.LoCoDL, "workers_hear", other_sign)),
    "fednl, H not updated": ("fednl", with_original(fednl.FedNL, "workers_send", kept)),
    "fednl, the master's H frozen": ("fednl", with_original(fednl.FedNL, "master_answers", frozen)),
    "fednl, without + l I": ("fednl", with_original(fednl.FedNL, "M", lambda f, s, H, l: f(s, H, 0.0))),
    "iade, coarse": ("iade", with_original(iade.IADE, "sigma", lambda f, s, k: 4 * f(s, k))),
}

half_a_step = with_original(parts.Server, "along", lambda f, s, x, g, γ: f(s, x, g, γ / 2))
NOT_CAUGHT = {
    "diana, step halved": ("diana", half_a_step),  # V falls by less than 1.6 times what it has to: half a step is within the slack
    "econtrol, step halved": ("econtrol", half_a_step),  # likewise
    "ef21, workers draw alike": ("ef21", with_original(at_random.RandomK, "compress_rows", alike)),  # its theorem has no independence
    "econtrol, e stays 0": ("econtrol", with_original(ef21.EControl, "workers_send", without_e)),  # that is ef21, by a shorter step
}
"""Mutants that a theorem cannot tell from the method, and why."""


@pytest.mark.parametrize("mutant", [name if i % 6 == 0 and "adiana" not in name else pytest.param(name, marks=pytest.mark.slow) for i, name in enumerate(MUTANTS)])
def test_a_wrong_method_is_caught_by_its_theorem_alone(mutant, monkeypatch):
    name, *changes = MUTANTS[mutant]
    for change in changes:
        monkeypatch.setattr(*change)
    found = [*theorem(algorithms[name](), problems=40, rounds=50)]
    assert not all(each.holds for each in found), found


@pytest.mark.parametrize("mutant", [pytest.param(each, marks=pytest.mark.slow) if each == "diana, step halved" else each for each in NOT_CAUGHT])
def test_these_are_not_caught_for_reasons_that_are_named(mutant, monkeypatch):
    name, change = NOT_CAUGHT[mutant]
    monkeypatch.setattr(*change)
    found = [*theorem(algorithms[name](), problems=8)]
    assert all(each.holds for each in found), found


def test_bounds_that_say_next_to_nothing_are_too_loose_to_judge(monkeypatch):
    monkeypatch.setattr(gd.GDTheorem, "rate", "1 - step*mu/50")
    (found,) = theorem(algorithms["gd"](), problems=8)
    assert str(found).startswith("loose  theorem: too loose to judge: on the worst of 8 random problems V goes to ")


@pytest.mark.parametrize(
    "table",
    [
        pytest.param({"name": "qsgd", "levels": 4, "norm": "max"}, marks=pytest.mark.slow), {"name": "qsgd", "levels": 1},
        {"name": "random-k", "k": 3, "scaled": False}, pytest.param({"name": "natural"}, marks=pytest.mark.slow),
        {"name": "block-sign"}, {"name": "chain", "first": {"name": "random-k", "k": 3}, "then": "natural"},
    ],
)  # fmt: skip
def test_no_right_compressor_is_called_wrong(table):
    link = link_at(compressors.build(table, "compressor"), 8)
    found = [*_constants(link)]
    assert all(each.holds for each in found), found


@pytest.mark.parametrize(("factor", "holds"), [pytest.param(0.5, False, marks=pytest.mark.slow), (0.88, False), (1.0, True), pytest.param(2.0, False, marks=pytest.mark.slow)])
def test_an_omega_that_vectors_of_two_levels_attain_is_caught_where_it_is_wrong(factor, holds, monkeypatch):
    monkeypatch.setattr(*with_original(signs.TernGrad, "omega", scaled_by(factor)))
    found = [*_constants(link_at(compressors.build("terngrad", "compressor"), 1000))]
    assert all(each.holds for each in found) == holds, found


def test_half_of_the_problems_have_several_workers_and_compressed_messages():
    found = [random_problem(algorithms["diana"](), seed) for seed in range(40)]
    assert sum(p.is_compressed for p in found) >= 20
    for p in found:
        k, d = p.method.up.compressor.k, p.method.setting.dim
        assert p.is_compressed == (len(p.fs) > 1 and 2 * k <= d)


IN_PART = {"cat", "ef", "fednl"}  # V of these is that of one worker, or near x* alone


@pytest.mark.slow
@pytest.mark.parametrize("name", STATING)
@pytest.mark.parametrize("loss", ["logistic", "least-squares", "smooth-hinge"])
@pytest.mark.parametrize("condition", [10.0, 1e7])
@pytest.mark.parametrize("n", [1, 5])
def test_no_right_method_is_called_wrong(monkeypatch, name, loss, condition, n):
    for name_of, these in (("LOSSES", (loss,)), ("WORKERS", (n,)), ("CONDITION", (condition, condition))):
        monkeypatch.setattr(random_problems, name_of, these)
    found = [*theorem(algorithms[name](), problems=3, rounds=30)]
    wrong = [each.text for each in found if not each.holds]
    assert not wrong or (name in IN_PART and wrong[0].startswith("no problem of 3 goes with it")), found


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


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_a_method_of_ones_own_gets_the_same_by_two_functions(tmp_path):
    (tmp_path / "heavy.py").write_text(OWN)
    job = """plugins = ["heavy"]
    data = { generator = "gspar", samples = 40, dim = 8 }
    objective = { mu = "1e-2 L" }
    stop = { rounds = 5 }
    log = { theory = true }
    run = [{ label = "heavy", algorithm = { name = "heavy" } }]"""
    (tmp_path / "own.toml").write_text(job)
    right = here("check-part", "heavy", "--theorem", "--job", tmp_path / "own.toml")
    assert (right.returncode, right.stdout.count("holds  theorem: ")) == (0, 1), right.stdout + right.stderr
    ran = here("run", tmp_path / "own.toml", "--out", tmp_path, "--quiet")
    assert ran.returncode == 0, ran.stderr
    (file,) = tmp_path.rglob("heavy*.h5")
    assert "lyapunov  worst factor of a round 0." in here("show", file).stdout
    (tmp_path / "own.toml").write_text(job.replace(' } }]', ' }, up.compressor = { name = "top-k", k = 2 } }]'))  # no gradient
    wrong = here("check-part", "heavy", "--theorem", "--job", tmp_path / "own.toml")
    assert (wrong.returncode, wrong.stdout.count("WRONG  theorem: V goes to ")) == (1, 1), wrong.stdout + wrong.stderr


def test_what_has_no_v_is_refused_in_one_line():
    refused = here("check-part", "sgd", "--theorem")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--theorem: sgd states no V, " in refused.stderr
    assert ", ef21, " in refused.stderr, "those that do"
    assert here("check-part", "top-k", "--theorem").returncode == 2


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


@pytest.mark.parametrize("in_job", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_server_of_a_method_s_name_has_no_theorem(in_job, tmp_path):
    (tmp_path / "job.toml").write_text('data = { generator = "gspar" }\nobjective = { mu = "1e-2 L" }\nstop = { rounds = 1 }\nalgorithm = { name = "nesterov" }\n')
    found = findings_in_job("nesterov", load_job(tmp_path / "job.toml"), {}, True) if in_job else findings_by_name("nesterov", {}, True)
    ((each,),) = found.values()
    assert each.holds
