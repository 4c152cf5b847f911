"""What is done for all workers of a process by one call is what each of them does, to the last bit."""

import itertools
from dataclasses import fields

import numpy as np
import pytest
from helpers.plays import bound, problem
from helpers.vectors import hard
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.algorithms.base import Algorithm
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.fast.crew import Crew
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import SparseRows
from mpi_compress.messages.link import REFUSED, Link, Message, attempt
from mpi_compress.problem.objective import Objective, Rows

ROUND = Round(0, Streams(0), Role.WORKER, 0)
CHOOSING = st.one_of(
    st.builds(lambda k: {"name": "top-k", "k": k}, st.integers(1, 40)),
    st.builds(lambda t: {"name": "hard-threshold", "threshold": t}, st.sampled_from([1e-300, 0.5, 1.0, 3.0, 1e30])),
)


@given(st.lists(hard(most=40), min_size=1, max_size=6), CHOOSING, st.sampled_from([32, 64]), st.data())
def test_messages_packed_by_one_call_are_those_packed_one_by_one(vectors, up, bits, data):
    dim = max(v.size for v in vectors)
    vs = np.zeros((len(vectors), dim))
    for row, v in zip(vs, vectors, strict=True):
        row[: v.size] = v
        if data.draw(st.integers(0, 4)) == 0:
            row[data.draw(st.integers(0, dim - 1))] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    if up["name"] == "top-k":
        up = {**up, "k": min(up["k"], dim)}
    link = Link(compressors.build(up, "up"), codecs.build({"name": "fixed", "float": bits}, "up"), dim)
    rows = np.array(data.draw(st.lists(st.integers(0, len(vs) - 1), max_size=6)), dtype=np.int64)
    one_by_one = [attempt(link.pack, vs[i], ROUND) for i in rows]
    together = link.pack_all(vs, rows)
    if any(m.data is REFUSED for m in one_by_one):
        assert together is None
        return
    assert together is not None
    messages, _ = together
    for one, other in zip(one_by_one, messages, strict=True):
        assert one.data.tobytes() == other.data.tobytes()
        seen, kept = link.unpack(Message(one.data)), other.content
        assert seen.indices.tobytes() == kept.indices.tobytes()
        assert seen.values.tobytes() == kept.values.tobytes()
        assert seen.is_finite() == kept.is_finite()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dim", [1, 255, 256, 70_000])
def test_long_messages_and_empty_ones_side_by_side(bits, dim):
    rng = np.random.default_rng(dim)
    sizes = [0, min(dim, 127), min(dim, 128), 0, min(dim, 20_000)]
    indices = [np.sort(rng.choice(dim, T, replace=False)).astype(np.uint32) for T in sizes]
    values = rng.standard_normal(sum(sizes)).astype(np.float32).astype(float)
    rows = SparseRows(dim, np.concatenate(indices), values, np.cumsum(sizes))
    codec = codecs.build({"name": "fixed", "float": bits}, "up")
    data, ends = codec.encode_all(rows)
    starts = [0, *ends.tolist()]
    assert [data[a:b].tobytes() for a, b in itertools.pairwise(starts)] == [codec.encode(c).tobytes() for c in rows]
    read = codec.decode_all(data, ends, dim)
    assert all(np.array_equal(a, b) for a, b in zip(vars(read).values(), vars(rows).values(), strict=True))


TOP, HARD, FINE = (
    {"name": "top-k", "k": 3},
    {"name": "hard-threshold", "threshold": 0.05},
    {"name": "hard-threshold", "threshold": 1e-9},
)
FALLING = {"form": "1/t", "a": "4/mu", "b": "16 L/mu"}
WAYS = {
    "top-k": ({"name": "ef"}, TOP),
    "hard threshold": ({"name": "ef"}, HARD),
    "most speak": ({"name": "ef"}, {"name": "hard-threshold", "threshold": 0.4}),
    "all speak": ({"name": "ef"}, FINE),
    "gdstar": ({"name": "ef-gdstar"}, HARD),
    "gdstar, top-k": ({"name": "ef-gdstar"}, TOP),
    "a threshold that follows the step": ({"name": "ef", "step": FALLING}, {"name": "hard-threshold", "accuracy": 1e-4}),
    "falling steps": ({"name": "ef", "step": FALLING}, HARD),
    "minibatches": ({"name": "ef", "batch": 2}, TOP),
    "minibatches, hard threshold": ({"name": "ef", "batch": 2, "sampling": "epoch"}, HARD),
    "no feedback": ({"name": "ef", "feedback": False}, HARD),
    "reset": ({"name": "ef", "reset": 3}, TOP),
    "momentum of gradients": ({"name": "ef", "momentum": 0.5, "step": "0.2/L"}, HARD),
    "momentum of updates": ({"name": "ef", "momentum": 0.5, "form": "update", "masking": True, "step": "0.2/L"}, TOP),
    "accordion": ({"name": "ef", "batch": 2}, {"name": "accordion", "k_min": 1, "k_max": 5, "every": 2}),
    "random": ({"name": "ef"}, {"name": "random-k", "k": 3}),
}


@pytest.mark.parametrize("together", [True, False], ids=["neighbouring shards", "shards apart"])
@pytest.mark.parametrize("way", WAYS)
def test_workers_of_one_process_send_and_remember_together_what_they_would_one_by_one(way, together):
    algorithm, up = WAYS[way]
    p = problem(count=12, samples=50)
    if together:
        whole = Rows((np.ascontiguousarray(p.A),), p.labels, p.dim)
        ends = np.cumsum([0, *(len(f.rows) for f in p.fs.values())]).tolist()
        p.fs = {i: Objective(whole.cut(*ends[i : i + 2]), f.loss, f.weight, f.mu) for i, f in p.fs.items()}
    crews = []
    for _ in range(2):
        method = bound(p, algorithm, up, x_star=np.linspace(-1, 1, p.dim))
        fs = {i: Objective(f.rows, f.loss, f.weight, f.mu) for i, f in p.fs.items()}
        node = method.start(np.full(p.dim, 0.1))
        crews.append((method, node, Crew(fs, {i: method.start_worker(node, f) for i, f in fs.items()}, Streams(3))))
    speaking = set()
    for k in range(8):
        (method, node, crew), (alone, its_node, each) = crews
        sent, wanted = method.crew_sends(node, crew, k), Algorithm.crew_sends(alone, its_node, each, k)
        assert [m.data.tobytes() for m in sent] == [m.data.tobytes() for m in wanted]
        speaking.add(sum(method.up.unpack(m).elements > 0 for m in sent))
        for worker, other in zip(crew.workers.values(), each.workers.values(), strict=True):
            assert [np.array(getattr(worker, f.name)).tobytes() for f in fields(worker)] == [
                np.array(getattr(other, f.name)).tobytes() for f in fields(other)
            ]
        assert [f.samples for f in crew.objectives.values()] == [f.samples for f in each.objectives.values()]
        shares = {f.seconds for f in crew.objectives.values()}
        assert (len(shares) == 1) == (together and "batch" not in algorithm)  # of the one call that computed all gradients
        for method, node, crew in crews:
            for f in crew.objectives.values():
                f.forget()
            down = method.master_answers(node, None, [method.up.unpack(m) for m in sent], Round(k, Streams(3), Role.MASTER))
            method.all_hear(node, method.down.unpack(down), Round(k, Streams(3), Role.MASTER))
    assert way != "most speak" or any(4 < n < 12 for n in speaking)  # some silent ones among those packed by one call


def test_a_worker_of_many_that_cannot_send_is_refused_alone():
    p = problem(count=6)
    up = {"name": "top-k", "k": 3}
    method = bound(p, {"name": "ef", "reset": 1}, up, codec={"name": "fixed", "float": 32})
    crews = []
    for _ in range(2):
        node = method.start(np.full(p.dim, 0.1))
        workers = {i: method.start_worker(node, f) for i, f in p.fs.items()}
        workers[2].e[5] = 1e60
        crews.append((node, Crew(p.fs, workers, Streams(3))))
    (node, crew), (other, each) = crews
    sent, wanted = method.crew_sends(node, crew, 0), Algorithm.crew_sends(method, other, each, 0)
    assert [m.data.tobytes() for m in sent] == [m.data.tobytes() for m in wanted]
    assert [i for i, m in enumerate(sent) if m.refusal] == [2]
    assert "overflows a float of 32 bits" in str(sent[2].refusal)
    assert all(np.array_equal(a.e, b.e) for a, b in zip(crew.workers.values(), each.workers.values(), strict=True))
