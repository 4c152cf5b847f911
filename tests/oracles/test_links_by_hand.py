"""Links that change, second by second and worker by worker: costs, the model's clock and what methods plan for, by a plain simulation."""

import numpy as np
import pytest
from helpers.plays import play, problem, start
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.algorithms import algorithms

# second, latency [s], bandwidth [bit/s] of three workers
TABLES = [
    [(0.0, 0.005, 20e3), (0.5, 0.02, 2e3), (1.5, 0.3, 50e3)],
    [(0.0, 0.001, 8e3)],
    [(0.0, 0.2, 1e6), (2.0, 0.1, 1e3)],
]
COST = {"model": "trace", "of_workers": [[list(row) for row in table] for table in TABLES]}


def now(second, worker):
    """The latency and the bandwidth of a worker's link at a second."""
    return next(row[1:] for row in reversed(TABLES[worker]) if row[0] <= second)


def cost(bits, second, worker):
    latency, bandwidth = now(second, worker)
    return latency + bits / bandwidth


def arrival(bits, second, worker):
    """When a message has arrived: its latency, then its bits row by row."""
    second += now(second, worker)[0]
    for end in [row[0] for row in TABLES[worker]] + [np.inf]:
        if end > second:
            bandwidth = now(second, worker)[1]
            if bits <= (end - second) * bandwidth:
                return second + bits / bandwidth
            bits -= (end - second) * bandwidth
            second = end
    raise AssertionError


@pytest.mark.parametrize("compute", [0.0, 1e-4])
def test_every_message_costs_what_its_own_link_costs_at_the_second_in_which_its_round_began(compute, tmp_path):
    """And a round takes the slowest worker's gradient and message up, and then the slowest message down."""
    link = {"codec": {"name": "dense"}}
    run = run_of(tmp_path, {"name": "gd"}, {"compressor": "identity", **link}, count=3, rounds=9, cost=COST, down=link, time={"compute": compute, "per": "nonzero"} if compute else {})
    A, _ = mc.generators["gspar"](samples=100, dim=40, seed=2).make()
    computing = [compute * np.count_nonzero(A[i * 100 // 3 : (i + 1) * 100 // 3]) for i in range(3)]
    bits, second, up, down = 8 * (4 + 8 * 40), 0.0, 0.0, 0.0
    for k in range(10):
        assert run.trace["model_seconds"][k] == pytest.approx(second, abs=1e-9 * (2 * k + 1))
        assert run.trace["cost_up"][k] == pytest.approx(up, rel=1e-9), f"row {k}"
        assert run.trace["cost_down"][k] == pytest.approx(down, rel=1e-9), f"row {k}"
        each = sum(cost(bits, second, i) for i in range(3))
        up, down = up + each, down + each
        heard = max(arrival(bits, second + computing[i], i) for i in range(3))
        second = max(arrival(bits, heard, i) for i in range(3))
    assert second > 2.5, "all rows of the tables were reached"


def test_messages_to_each_worker_cost_what_its_own_link_costs(tmp_path):
    """MARINA-P's master sends each worker its own message, all of them whole here."""
    run = run_of(tmp_path, {"name": "marina-p", "p": 1.0, "step": 0.1}, count=3, rounds=5, cost=COST, down={"compressor": "perm-k"})
    begun = run.trace["model_seconds"][:-1]
    for way in ("up", "down"):
        each = np.diff(run.trace[f"wire_bits_{way}"]) / 3
        wanted = [sum(cost(bits, second, i) for i in range(3)) for bits, second in zip(each, begun, strict=True)]
        assert np.diff(run.trace[f"cost_{way}"]) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("pace", [1e-4, 2e-3])
def test_kimad_leaves_a_gradient_its_time(pace):
    """T is the largest with pace · nonzeros + C(T) ≤ deadline, C of the worker's link at the second in which the round began."""
    p, deadline, seen = problem(count=3, samples=41), 1.0, []

    def look(k, node, workers):
        seen.append([worker.budget for worker in workers.values()])

    cost_model = {"name": "trace", "of_workers": COST["of_workers"]}
    done = play(p, {"name": "kimad", "deadline": deadline, "step": "0.1/L"}, {"name": "top-k"}, 8, look, codec="fixed", cost=cost_model, time={"compute": pace, "per": "nonzero"})
    for k, second in enumerate(done.trace["model_seconds"][:-1]):
        for i, f in p.fs.items():
            left = deadline - pace * np.count_nonzero(f.rows.dense())
            bits = [8 * (4 + 1 + 8 * T + -(-5 * T // 8)) for T in range(1, 31)]
            assert seen[k + 1][i] == max(sum(cost(b, second, i) <= left for b in bits), 1), (k, i)
    assert np.unique(seen[1:]).size > 1


def test_workers_and_the_master_are_told_the_second_in_which_their_round_began():
    class Noting(algorithms["gd"]):
        name = "noting"

        def worker_sends(self, node, worker, f, t):
            heard.append(("up", t.k, t.second))
            return super().worker_sends(node, worker, f, t)

        def master_answers(self, node, master, ups, t):
            heard.append(("down", t.k, t.second))
            assert t.to(1).second == t.second
            return super().master_answers(node, master, ups, t)

        def all_hear(self, node, down, t):
            heard.append(("all", t.k, t.second))
            super().all_hear(node, down, t)

    heard = []
    p = problem(count=3)
    done = play(p, Noting(), {"name": "identity"}, 4, cost={"name": "trace", "of_workers": COST["of_workers"]}, x0=start(p))
    begun = done.trace["model_seconds"]
    assert sorted(set(heard)) == sorted((who, k, begun[k]) for who in ("up", "down", "all") for k in range(4))
    assert begun[1] > 0
