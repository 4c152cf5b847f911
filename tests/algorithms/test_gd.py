"""Gradient descent and sparsified descent against plain NumPy loops; GSpar: what is measured along a run, and its methods."""

import lzma
import signal
import subprocess

import numpy as np
import pytest
from helpers.plays import play, problem
from helpers.refusals import naming
from helpers.running import BIN, PATIENT, run_of, wait_for
from sklearn.datasets import load_svmlight_file

import mpi_compress as mc
from mpi_compress.algorithms.estimators.gd import GD
from mpi_compress.algorithms.estimators.sgd import SentVariance
from mpi_compress.cli.show import summary
from mpi_compress.job.loading import parse_job


def plain(samples, labels, mu, step, rounds, shards=1, k=None):
    """x ← x − γ (1/n) Σ Q(∇f_i(x)), and f before each round, written out."""
    N, d = samples.shape
    x, losses = np.zeros(d), []
    while True:
        margins = labels * (samples @ x)
        losses.append(np.logaddexp(0, -margins).mean() + mu / 2 * (x @ x))
        if len(losses) > rounds:
            return np.array(losses), x
        mean = np.zeros(d)
        for i in range(shards):
            rows = slice(i * N // shards, (i + 1) * N // shards)
            slopes = -labels[rows] / (1 + np.exp(margins[rows]))
            g = shards / N * (samples[rows].T @ slopes) + mu * x
            if k is not None:
                g[np.argsort(-np.abs(g), kind="stable")[k:]] = 0.0
            mean += g
        x = x - step * mean / shards


@pytest.mark.parametrize("name", [pytest.param("a9a", marks=pytest.mark.slow), "madelon"])
@pytest.mark.parametrize("count", [1, 4])
def test_loss_of_gradient_descent_equals_a_plain_loop(name, count, real_data, tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, None, {"name": name}, count, objective={"mu": "1e-4 L"})
    with lzma.open(real_data / f"{name}.xz") as text:
        samples, labels = load_svmlight_file(text, n_features=run.attrs["dim"])
    losses, x = plain(samples.toarray(), labels, run.attrs["mu"], 1 / run.attrs["L"], 200, count)
    assert np.max(np.abs(run.trace["loss"] / losses - 1)) < 1e-12
    assert np.allclose(run.x, x, rtol=1e-9, atol=1e-13 * np.abs(x).max())


@pytest.mark.parametrize("k", [1, 7, 60])
def test_sparsified_descent_equals_a_plain_loop(k, tmp_path):
    data = {"generator": "gspar", "samples": 90, "dim": 60, "seed": 5}
    up = {"compressor": {"name": "top-k", "k": k}}
    run = run_of(tmp_path, {"name": "gd"}, up, data, 4, 100, objective={"mu": "1e-4 L"})
    samples, labels = mc.datasets.generators["gspar"](samples=90, dim=60, seed=5).make()
    losses, x = plain(samples, labels, run.attrs["mu"], 1 / run.attrs["L"], 100, 4, k)
    assert np.allclose(run.trace["loss"], losses, rtol=1e-12)
    assert np.allclose(run.x, x, rtol=1e-9, atol=1e-12)
    assert run.trace["elements_up"].tolist() == [4 * k * r for r in range(101)]


def test_with_the_identity_messages_cost_what_they_hold(tmp_path):
    data = {"generator": "gspar", "samples": 30, "dim": 50}
    run = run_of(tmp_path, {"name": "gd"}, None, data, 3, 5)
    assert run.trace["wire_bits_up"].tolist() == [r * 3 * 8 * (4 + 50 * 8) for r in range(6)]
    assert run.trace["paper_bits_up"].tolist() == [r * 3 * 50 * 64 for r in range(6)]
    assert run.trace["wire_bits_down"].tolist() == [r * 3 * 8 * (4 + 1 + 50 * 8) for r in range(6)]
    assert run.trace["paper_bits_down"].tolist() == [r * 3 * 50 * 64 for r in range(6)]
    assert run.trace["cost_up"].tolist() == run.trace["paper_bits_up"].tolist()
    assert run.trace["cost_down"].tolist() == run.trace["paper_bits_down"].tolist()
    assert run.trace["epoch"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("bits", [32, 64])
def test_wire_bits_of_top_k_are_at_most_16_bytes_a_message_above_paper_bits(bits, tmp_path):
    data = {"generator": "gspar", "samples": 40, "dim": 333}
    up = {"compressor": {"name": "top-k", "k": 100}, "codec": {"name": "fixed", "float": bits}}
    run = run_of(tmp_path, {"name": "gd"}, up, data, 2, 4)
    assert run.trace["paper_bits_up"][-1] == 4 * 2 * 100 * (9 + bits)
    assert run.trace["wire_bits_up"][-1] - run.trace["paper_bits_up"][-1] <= 4 * 2 * 16 * 8


def test_regulariser_at_the_master_is_the_same_method(tmp_path):
    data = {"generator": "gspar", "samples": 80, "dim": 30}
    runs = [run_of(tmp_path / where, {"name": "gd", "regularizer": where}, None, data, 3, 50) for where in ("worker", "master")]
    assert np.allclose(runs[0].trace["loss"], runs[1].trace["loss"], rtol=1e-12)
    assert np.allclose(runs[0].trace["grad_norm"], runs[1].trace["grad_norm"], rtol=1e-9)


def test_a_step_may_name_what_the_compressor_states(tmp_path):
    """Random-k keeps k of d = 512 coordinates, d/k times as large: ω = d/k − 1 = 3."""
    up = {"compressor": {"name": "random-k", "k": 128}}
    data = {"generator": "gspar", "samples": 60, "dim": 512}
    named, written = (run_of(tmp_path, {"name": "gd", "step": step}, up, data, 1, 5) for step in ("1/(L*(1+omega))", "1/(4*L)"))
    assert np.array_equal(named.trace["loss"], written.trace["loss"])


@pytest.mark.parametrize("more", [{"objective": {"mu": "1e-2 L", "regularizer": "master"}}, {"log": {"theory": True}}])
def test_what_diverges_beyond_the_squares_of_floats_has_diverged(more, tmp_path):
    data = {"generator": "gspar", "samples": 40, "dim": 10}
    run = run_of(tmp_path, {"name": "gd", "step": 1e160}, None, data, 2, **more)
    assert run.status == "diverged"


@pytest.mark.parametrize(("bits", "able"), [(16, '"bf16", 32 or 64'), ("bf16", "64"), (32, "64")])
def test_a_value_that_overflows_short_floats_ends_the_run_as_diverged(bits, able, tmp_path):
    tables = {
        "data": {"generator": "gspar", "samples": 40, "dim": 20}, "objective": {"mu": "1e-3 L", "loss": "least-squares"},
        "workers": {"count": 2}, "stop": {"rounds": 500}, "algorithm": {"name": "gd", "step": "1e3/L"},
        "up": {"compressor": "identity", "codec": {"name": "dense", "float": bits}},
    }  # fmt: skip
    (run,) = mc.run(parse_job(tables, "test", tmp_path, {}), out=tmp_path)
    assert run.status == "diverged"
    assert "worker 0: a value of magnitude" in run.attrs["reason"]
    assert f"use float = {able}" in run.attrs["reason"]
    losses = run.trace["loss"]
    assert f"; the loss had risen from {losses[0]:.3g} to {losses[-1]:.3g}: a smaller step size may help" in run.attrs["reason"]
    assert np.isfinite(run.trace["loss"]).all()


@pytest.mark.parametrize("algorithm", ["dqgd", "gd"])
def test_what_becomes_of_a_run_does_not_depend_on_how_often_it_is_logged(algorithm, tmp_path):
    tables = {
        "data": {"generator": "gspar", "samples": 40, "dim": 20}, "objective": {"mu": "1e-2 L", "loss": "least-squares"},
        "workers": {"count": 2}, "stop": {"rounds": 500},
        "algorithm": {"name": algorithm, "step": "30/L"},
    }  # fmt: skip
    found = [
        mc.run(parse_job({**tables, "log": {"every": every}}, "test", tmp_path, {}), out=tmp_path / str(every))[0]
        for every in (1, 100, 1000)
    ]
    assert {run.status for run in found} == {"diverged"}
    for run in found:
        assert "a smaller step size may help" in run.attrs["reason"]
    ends = [run.trace["round"][-1] for run in found if "update" in run.attrs["reason"]]
    assert len(set(ends)) <= 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OverflowError("line one\n line\0two"), "worker 0: line one line two"),
        (OverflowError(34, "Numerical result out of range"), "worker 0: Numerical result out of range"),
        (OverflowError(), "worker 0: OverflowError without a text"),
        (OverflowError("long " * 100), "[...]"),
    ],
)
def test_the_reason_of_a_refusal_is_one_short_line(error, told):
    class Refusing(GD):
        name = "refusing"

        def worker_sends(self, node, worker, f, t):
            raise error

    played = play(problem(), Refusing(), {"name": "identity"}, rounds=3)
    assert played.reason.startswith("the update of round 0 is not finite: worker 0: ")
    assert played.reason.endswith(told)
    assert len(played.reason) < 400


@pytest.mark.parametrize(
    ("stop", "column"), [("loss", "loss"), ("suboptimality", "suboptimality"), ("wire_bits_up", "wire_bits_up")]
)
def test_stops_at_the_first_round_that_meets(stop, column, tmp_path):
    data = {"generator": "gspar", "samples": 80, "dim": 30}
    whole = run_of(tmp_path, {"name": "gd"}, None, data, 3, 60).trace[column]
    wanted = float(whole[30])
    met = whole >= wanted if stop == "wire_bits_up" else whole <= wanted
    run = run_of(tmp_path, {"name": "gd"}, None, data, 3, stop={"rounds": 60, stop: wanted})
    assert run.trace["round"][-1] == int(np.argmax(met))
    assert run.status == "complete"


UPS = [{"name": "gspar", "kappa": 0.2}, {"name": "unisp", "kappa": 0.3}, {"name": "qsgd", "levels": 4}, {"name": "terngrad"}]


@pytest.mark.parametrize("up", UPS, ids=lambda up: up["name"])
@pytest.mark.parametrize("algorithm", [{"name": "sgd", "batch": 2, "step": 0.05}, {"name": "svrg", "batch": 2, "epoch": 5, "step": 0.05}], ids=["sgd", "svrg"])  # fmt: skip
def test_variance_and_density_along_a_run_are_those_of_the_vectors_sent(algorithm, up, monkeypatch):
    """Recomputed from every g and Q(g) of the run."""
    seen = []
    count = SentVariance.count

    def noting(self, g, sent):
        seen.append((np.array(g), sent.dense()))
        count(self, g, sent)

    monkeypatch.setattr(SentVariance, "count", noting)
    done = play(problem(), algorithm, up, 40)
    var = sum(np.sum(q**2) for _, q in seen) / sum(np.sum(g**2) for g, _ in seen)
    spa = np.mean([np.count_nonzero(q) / q.size for _, q in seen])
    assert done.trace["variance"][-1] == pytest.approx(var, rel=1e-9)
    assert done.trace["spa"][-1] == pytest.approx(spa, rel=1e-9)
    assert done.trace["variance_spa"][-1] == pytest.approx(var * spa, rel=1e-9)
    assert done.trace["variance"][0] == 1.0


def test_nothing_is_measured_where_nothing_is_lost():
    done = play(problem(), {"name": "sgd", "batch": 2, "step": 0.05}, {"name": "identity"}, 3)
    assert "variance" not in done.trace


TUNED = """
data = { generator = "gspar", samples = 120, dim = 20 }
objective = { lambda2 = 1e-3 }
workers.count = 3
algorithm = { name = "sgd", batch = 4, step = { form = "1/sqrt(t)" } }
up.compressor = { name = "gspar", kappa = 0.3 }
tune = { parameter = "algorithm.step.a", values = [1e-4, 0.5, 1e300], to = { suboptimality = 1e-9 }, seeds = [0] }
stop.rounds = 60
log.every = 10
grid.seed = [0, 1]
"""


def test_a_tuned_run_has_the_value_whose_trial_came_furthest(tmp_path):
    """Its id is known before anything runs, trials are kept and shared by seeds, and it is the run that one would write by hand."""
    job = tmp_path / "job.toml"
    job.write_text(TUNED)
    ids = [spec.run_id for spec in mc.load_job(job).runs]
    runs = mc.run(mc.load_job(job), out=tmp_path)
    assert [r.attrs["run_id"] for r in runs] == ids
    trials = {r.label.partition(" = ")[2]: r for r in map(mc.read, (tmp_path / "job" / "tuning").glob("*.h5"))}
    nearest = {a: float(t.trace["suboptimality"].min()) for a, t in trials.items() if t.status == "complete"}
    assert trials["1e+300"].status == "diverged"
    for run, seed in zip(runs, (0, 1), strict=True):
        assert run.tuned == runs[0].tuned
        assert dict(run.tuned["tried"])[1e300] == np.inf
        best = run.tuned["value"]
        assert f"{best:g}" == min(nearest, key=nearest.get)
        by_hand = tmp_path / "by-hand.toml"
        kept = "\n".join(line for line in TUNED.splitlines() if not line.startswith(("tune", "grid")))
        by_hand.write_text(kept.replace('"1/sqrt(t)"', f'"1/sqrt(t)", a = {best}'))
        (same,) = mc.run(mc.load_job(by_hand, {"seed": seed}), out=tmp_path)
        assert all(same.trace[name].tobytes() == run.trace[name].tobytes() for name in run.trace)
    assert f"algorithm.step.a = {best} (trials missed the target), by wire_bits_up to suboptimality ≤ 1e-09: 0.0001: not reached" in "\n".join(summary(runs[0]))


def test_of_trials_that_come_down_to_a_level_the_one_of_fewest_rounds_wins(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(
        'data = { generator = "gspar", samples = 64, dim = 32 }\nobjective.mu = "1e-2 L"\nalgorithm.name = "gd"\n'
        'stop = { rounds = 2000, suboptimality = 1e-3 }\ntune = { parameter = "algorithm.step", values = ["0.1/L", "0.3/L", "1/L"] }\n'
    )
    (run,) = mc.run(mc.load_job(job), out=tmp_path)
    rounds = [r.trace["round"][-1] for r in map(mc.read, (tmp_path / "job" / "tuning").glob("*.h5")) if r.status == "complete"]
    assert run.trace["round"][-1] == min(rounds) < 2000


def test_a_trial_that_runs_off_to_where_the_gradient_vanishes_is_no_descent(tmp_path):
    """The penalty Σ x²/(1 + x²) is flat far away: there ‖∇f‖² is smallest, and f largest."""
    job = tmp_path / "job.toml"
    job.write_text(
        'data = { generator = "gspar", samples = 8, dim = 32 }\nobjective = { penalty = { name = "ratio", weight = 1.0 } }\n'
        'algorithm.name = "gd"\nstop.rounds = 5\nstart.at = "random"\n'
        'tune = { parameter = "algorithm.step", values = ["1/L", "1e5/L"], to = { squared_grad_norm = 1e-30 } }\n'
    )
    (near,) = mc.run(mc.load_job(job), out=tmp_path)
    tried = dict(map(tuple, near.tuned["tried"]))
    assert (near.tuned["value"] != "1e5/L", tried["1e5/L"]) == (True, np.inf)
    assert near.trace["loss"][-1] < near.trace["loss"][0]
    with pytest.raises(mc.UserError, match="at a finite loss, and no higher than it starts"):
        mc.run(mc.load_job(job, {"tune.values": ["1e5/L", "1e6/L"]}), out=tmp_path)


@pytest.mark.slow
def test_processes_share_trials(tmp_path):
    """Who finds a trial being played waits for it, or for a signal or the time limit; each run ends as it would alone."""
    job = tmp_path / "job.toml"
    job.write_text(TUNED.replace("rounds = 60", "rounds = 1500"))  # a tenth of a second and more, so that it is stopped at its trial

    def started(*arguments):
        line = [BIN / "mpi-compress", "run", job, "--out", tmp_path, *arguments]
        return subprocess.Popen([str(part) for part in line], stderr=subprocess.PIPE, text=True)

    first = started("--index", "0")
    wait_for(lambda: list(tmp_path.rglob("tuning/*.part")), 0.005)
    first.send_signal(signal.SIGSTOP)  # at its trial, for as long as we like
    others = [started("--index", "1"), started("--index", "1"), started("--index", "1", "--time-limit", "4")]
    for process in others:
        assert any("another process executes this trial; waiting for it" in line for line in process.stderr)
    others[1].terminate()
    for process, why in ((others[1], "SIGTERM"), (others[2], "the time limit")):
        assert why in process.stderr.read()  # all of it: `communicate` passes over what is buffered
        assert process.wait(PATIENT) == 75
    first.send_signal(signal.SIGCONT)
    said = [process.communicate(timeout=PATIENT)[1] for process in (first, others[0])]
    assert (first.returncode, others[0].returncode) == (0, 0), said
    assert len(list((tmp_path / "job" / "tuning").glob("*.h5"))) == 3
    together = {r.attrs["run_id"]: r for r in map(mc.read, (tmp_path / "job").glob("*.h5"))}
    for run in mc.run(mc.load_job(job), out=tmp_path / "alone"):
        assert together[run.attrs["run_id"]].tuned == run.tuned
        np.testing.assert_array_equal(together[run.attrs["run_id"]].x, run.x)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ('"algorithm.step.a", values = []', "tune: values = [] should be two or more"),
        ('"algorithms.step", values = [1, 2]', "algorithms algorithm"),
        ('"algorithm.step", values = [1, "x y"]', "tune: algorithm"),
        ('"algorithm.stepp", values = [1, 2]', "stepp step"),
        ('"algorithm.step", values = [1e299, 1e300]', "no value of algorithm.step gives a run that ends"),
    ],
)
def test_what_cannot_be_tuned_is_refused(changed, says, tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(
        TUNED.replace('"algorithm.step.a", values = [1e-4, 0.5, 1e300]', changed).replace(
            'form = "1/sqrt(t)"', 'form = "1/t", a = 1'
        )
    )
    with pytest.raises(mc.UserError, match=naming(says)):
        mc.run(mc.load_job(job), out=tmp_path)


def test_svrg_comes_to_the_optimum_linearly(tmp_path):
    """With the identity, to f* to 1e-12."""
    job = tmp_path / "job.toml"
    job.write_text(
        'data = { generator = "gspar", samples = 96, dim = 12 }\nobjective.mu = "0.1 L"\nworkers.count = 4\n'
        'algorithm = { name = "svrg", batch = 8, step = "0.5/L_row" }\nstop = { rounds = 8000, suboptimality = 1e-13 }\nlog.every = 20'
    )
    (run,) = mc.run(mc.load_job(job), out=tmp_path)
    gap = run.trace["suboptimality"]
    assert gap[-1] <= 1e-12
    kept = gap > 1e-11
    assert np.corrcoef(run.trace["round"][kept], np.log(gap[kept]))[0, 1] < -0.99
