"""Every way to play the workers of a process together is their own lines, one by one, to the last bit."""

import itertools
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from helpers.kinds import cut
from helpers.plays import bound, problem
from helpers.vectors import hard
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.fast import WAYS as REGISTERED
from mpi_compress.engine.fast import faster
from mpi_compress.engine.fast.ways import Way
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import SparseRows
from mpi_compress.messages.link import REFUSED, Link, Message, attempt
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.objective import Shards
from mpi_compress.problem.rows import Rows

ROUND = Round(0, Streams(0), Role.WORKER, 0)
CHOOSING = st.one_of(
    st.builds(lambda k: {"name": "top-k", "k": k}, st.integers(1, 40)),
    st.builds(lambda t: {"name": "hard-threshold", "threshold": t}, st.sampled_from([1e-300, 0.5, 1.0, 3.0, 1e30])),
)


@given(st.lists(hard(most=40), min_size=1, max_size=6), CHOOSING, st.sampled_from([16, "bf16", 32, 64]), st.data())
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


@pytest.mark.parametrize("bits", [16, "bf16", 32, 64])
@pytest.mark.parametrize("dim", [1, 255, 256, 70_000])
def test_long_messages_and_empty_ones_side_by_side(bits, dim):
    rng = np.random.default_rng(dim)
    sizes = [0, min(dim, 127), min(dim, 128), 0, min(dim, 20_000)]
    indices = [np.sort(rng.choice(dim, T, replace=False)).astype(np.uint32) for T in sizes]
    values = cut(rng.standard_normal(sum(sizes)), 24 if bits in (32, 64) else 8)
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
    "sparse minibatches": ({"name": "ef", "batch": 2}, HARD, {"sparse": True, "apart": True}),
    "sparse minibatches, momentum": (
        {"name": "ef", "batch": 2, "momentum": 0.5, "step": "0.2/L"},
        HARD,
        {"sparse": True, "apart": True},
    ),
    "momentum of updates, hard threshold": ({"name": "ef", "momentum": 0.5, "form": "update", "step": "0.2/L"}, HARD),
    "accordion": ({"name": "ef", "batch": 2}, {"name": "accordion", "k_min": 1, "k_max": 5, "every": 2}),
    "random": ({"name": "ef"}, {"name": "random-k", "k": 3}),
}


def hosted(p, algorithm, up, **settings):
    """The workers of a run that begins, its method and its node."""
    method = bound(p, algorithm, up, x_star=np.linspace(-1, 1, p.dim), **settings)
    fs = Shards([data_term(f.rows, f.loss, f.weight, f.mu) for f in p.fs])
    node = method.start(np.full(p.dim, 0.1))
    return method, node, HostedWorkers(method, fs, {i: method.start_worker(node, f) for i, f in fs.items()}, Streams(3))


def remembered(workers):
    """All that workers remember, as bytes."""
    return [[flat(getattr(worker, f.name)) for f in fields(worker)] for worker in workers.values()]


def flat(value):
    return (
        [flat(getattr(value, f.name)) for f in fields(value)]
        if is_dataclass(value)
        else np.array(value, dtype=object if value is None else None).tobytes()
    )


@pytest.mark.parametrize("together", [True, False], ids=["neighbouring shards", "shards apart"])
@pytest.mark.parametrize("way", WAYS)
def test_hosted_workers_send_and_remember_what_they_would_one_by_one(way, together):
    algorithm, up, *sparse = WAYS[way]
    p = problem(count=12, samples=50, **(sparse[0] if sparse else {}))
    if together:
        p.fs = neighbours(p)
    (method, node, fast), (alone, its_node, slow) = hosted(p, algorithm, up), hosted(p, algorithm, up)
    fast = faster(fast)
    assert (type(fast) is HostedWorkers) == (way in ("random", "accordion"))  # whose links pack one vector a call
    speaking = set()
    for k in range(8):
        sent, wanted = fast.messages(node, k), slow.messages(its_node, k)
        assert [m.data.tobytes() for m in sent] == [m.data.tobytes() for m in wanted]
        speaking.add(sum(method.up.unpack(m).elements > 0 for m in sent))
        assert remembered(fast.workers) == remembered(slow.workers)
        assert fast.objectives.samples.tolist() == slow.objectives.samples.tolist()
        shares = {*fast.objectives.seconds.tolist()}
        by_one_call = not {"batch", "form"}.intersection(algorithm) and isinstance(fast, Way)
        assert (len(shares) == 1) == by_one_call
        for each, knows in ((method, node), (alone, its_node)):
            down = each.master_answers(knows, None, [each.up.unpack(m) for m in sent], Round(k, Streams(3), Role.MASTER))
            each.all_hear(knows, each.down.unpack(down), Round(k, Streams(3), Role.MASTER))
    assert way != "most speak" or any(4 < n < 12 for n in speaking)  # some silent ones among those packed by one call


def neighbours(p):
    """The same objectives on shards that lie one after the other in memory."""
    parts = [f.rows for f in p.fs]
    labels, ends = np.concatenate([r.labels for r in parts]), np.cumsum([0, *map(len, parts)]).tolist()
    if len(parts[0].matrix) == 1:
        whole = Rows((np.concatenate([r.matrix[0] for r in parts]),), labels, p.dim)
    else:
        starts = np.cumsum([0, *(int(r.matrix[0][-1]) for r in parts)])
        indptr = np.concatenate([[0], *(r.matrix[0][1:] + s for r, s in zip(parts, starts[:-1].astype(np.uint64), strict=True))])
        whole = Rows((indptr.astype(np.uint64), *(np.concatenate([r.matrix[j] for r in parts]) for j in (1, 2))), labels, p.dim)
    return Shards([data_term(whole.cut(*ends[i : i + 2]), f.loss, f.weight, f.mu) for i, f in p.fs.items()])


def test_every_way_is_played_here():
    """With the settings of WAYS: a way that nobody compares with the plain lines is not to be trusted."""
    played = set()
    for way in WAYS:
        algorithm, up, *sparse = WAYS[way]
        p = problem(count=12, samples=50, **(sparse[0] if sparse else {}))
        method, _, workers = hosted(p, algorithm, up)
        played.add((type(method), type(faster(workers))))
    assert played >= {(method, way) for way in REGISTERED for method in way.plays}


@pytest.mark.parametrize(("bits", "text"), [(16, "float of 16 bits"), ("bf16", "bfloat16"), (32, "float of 32 bits")])
def test_a_worker_of_many_that_cannot_send_is_refused_alone(bits, text):
    p = problem(count=6)
    codec = {"name": "fixed", "float": bits}
    both = [hosted(p, {"name": "ef", "reset": 1}, {"name": "top-k", "k": 3}, codec=codec) for _ in range(2)]
    for _, _, workers in both:
        workers.workers[2].e[5] = 1e60
    (_, node, fast), (_, its_node, slow) = both
    sent, wanted = faster(fast).messages(node, 0), slow.messages(its_node, 0)
    assert [m.data.tobytes() for m in sent] == [m.data.tobytes() for m in wanted]
    assert [i for i, m in enumerate(sent) if m.refusal] == [2]
    assert f"overflows a {text}" in str(sent[2].refusal)
    assert all(np.array_equal(a.e, b.e) for a, b in zip(fast.workers.values(), slow.workers.values(), strict=True))
