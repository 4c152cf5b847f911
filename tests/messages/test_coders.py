"""A compressor with a codec on arrays of one's own: what is encoded is what runs send, and comes back; mc.measure, which sets sizes side by side."""

import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.examples import COMPRESSORS
from helpers.refusals import naming
from helpers.running import PATIENT

import mpi_compress as mc
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.link import Link

PAGE = Path(__file__).parents[2] / "docs" / "from-python.md"
V = np.random.default_rng(7).standard_normal(50)
ALL = [(spec, codec) for spec in COMPRESSORS if spec["name"] != "accordion" and sum(spec.get("sizes", [V.size])) == V.size
       for codec in mc.codecs if mc.codecs[codec]().writes(compressors.build(spec, "example").makes)]  # fmt: skip


@pytest.mark.parametrize(("spec", "codec"), ALL, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_coder_gives_the_bytes_of_a_link_and_reads_them_back(spec, codec, dtype):
    coder, v = mc.coder(spec, codec=codec), V.astype(dtype)
    link = Link(coder.compressor, coder.codec, v.size)
    message = link.pack(v.astype(np.float64), Round(0, Streams(3), Role.WORKER))
    data = coder.encode(v, rng=3)
    assert (type(data), data) == (bytes, message.raw.tobytes())
    assert coder.bits(v, rng=3) == 8 * len(data) == message.wire_bits - 32
    assert coder.paper_bits(v, rng=3) == link.paper_bits(link.unpack(message))
    wanted = link.unpack(message).dense()
    for given in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        np.testing.assert_array_equal(coder.decode(given, v.size), wanted)
    found = coder.decode(data, v.size, np.float32)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, wanted.astype(np.float32))


def test_the_largest_coordinates_of_an_array_come_back_exactly_and_nothing_else_does():
    coder = mc.coder("top-k", k=10, codec="rice", float=32)
    v = V.astype(np.float32)
    w = coder.decode(coder.encode(v), v.size, np.float32)
    largest = np.argsort(-np.abs(v))[:10]
    assert set(np.flatnonzero(w)) == set(largest)
    np.testing.assert_array_equal(w[largest], v[largest])
    assert coder.bits(v) < 32 * v.size / 2


def test_a_seed_repeats_draws_a_generator_goes_on_and_none_is_unknown():
    coder, rng = mc.coder("random-k", k=5), np.random.default_rng(1)
    assert coder.encode(V, rng=1) == coder.encode(V, rng=1) != coder.encode(V, rng=2)
    first = [coder.encode(V, rng) for _ in range(2)]
    again = np.random.default_rng(1)
    assert first == [coder.encode(V, again) for _ in range(2)]
    assert len({*first, coder.encode(V), coder.encode(V)}) == 4


@pytest.mark.parametrize("spec", [{"name": "top-k", "k": 5}, {"name": "qsgd", "levels": 4}], ids=lambda spec: spec["name"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mean_of_messages_is_added_up_in_place(spec, dtype):
    coder, n = mc.coder(spec), 3
    messages = [coder.encode(V * i, rng=i) for i in range(1, n + 1)]
    out = np.ones(2 * V.size, dtype)[::2]  # an array with strides, too
    for data in messages:
        assert coder.decode_into(data, out, 1 / n) is out
    np.testing.assert_allclose(out, 1 + np.mean([coder.decode(data, V.size) for data in messages], axis=0), rtol=1e-6)
    before = out.copy()
    with pytest.raises(mc.CorruptMessage):
        coder.decode_into(messages[0][:-1], out)
    np.testing.assert_array_equal(out, before)


def test_streams_are_made_when_they_are_drawn_from():
    streams = Streams(3)
    mc.coder("top-k", k=5).compressor.compress(V, Round(0, streams, Role.WORKER))
    assert not streams._generators


def test_the_input_is_not_written_to_and_may_have_strides():
    v = np.arange(40.0)
    v.flags.writeable = False
    for spec in ({"name": "identity"}, {"name": "qsgd", "levels": 4}, {"name": "top-k", "k": "20%"}):
        coder = mc.coder(spec)
        assert coder.encode(v[::2], rng=0) == coder.encode(v[::2].copy(), rng=0)
        w = coder.decode(coder.encode(v, rng=0), 40)
        w += 1.0  # the reader's own
    np.testing.assert_array_equal(v, np.arange(40.0))


@pytest.mark.parametrize(("make", "said"), [
    (lambda: mc.coder("topk", k=3), "coder.compressor topk top-k"),
    (lambda: mc.coder("my-own"), "coder.compressor no compressor called 'my-own'"),
    (lambda: mc.coder("top-k", kk=3), "coder.compressor kk k"),
    (lambda: mc.coder("top-k", k=3, codec="ricce"), "coder.codec ricce rice"),
    (lambda: mc.coder("top-k", k=3, codec="ternary"), "coder.codec 'ternary' 'top-k'"),
    (lambda: mc.coder("top-k", k=3, float=12), "coder.codec.float: 12 was given"),
    (lambda: mc.coder("top-k", k=99).encode(V), "top-k: k = 99 is more than the d = 50 coordinates"),
    (lambda: mc.coder("accordion", k_min=1, k_max=2, every=1).encode(V[:0]), "coder: 0 coordinates"),
    (lambda: mc.coder("top-k", k=1).encode([1.0, 2.0]), "encode: [1.0, 2.0] an array (d,) of float32 or"),
    (lambda: mc.coder("top-k", k=1).encode(np.arange(3)), "encode: an array of int64"),
    (lambda: mc.coder("top-k", k=1).encode(V.reshape(5, 10)), "an array (d,) of float32 or float64, as v.ravel() is"),
    (lambda: mc.coder("top-k", k=1).encode(V, rng=-1), "encode: rng = -1 a seed"),
    (lambda: mc.coder("top-k", k=1).decode("text", 50), "decode text"),
    (lambda: mc.coder("top-k", k=1).decode(b"", 0), "coder: 0 coordinates; there should be from 1"),
])  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(make, said):
    with pytest.raises(mc.UserError, match=naming(said)):
        make()


def test_bytes_of_another_size_are_refused_and_values_beyond_the_floats_too():
    coder = mc.coder("top-k", k=10, codec="rice", float=32)
    data = coder.encode(V)
    for wrong in (data[:-1], data + b"\0", b""):
        with pytest.raises(mc.CorruptMessage):
            coder.decode(wrong, V.size)
    with pytest.raises(OverflowError, match="use float = 64"):
        coder.encode(1e300 * V)
    assert np.isinf(mc.coder("identity").decode(mc.coder("identity").encode(1e300 * V), V.size, np.float32)).all()


def test_a_coder_of_ones_own_compressor_is_checked():
    @mc.compressors.register("coders-test")
    @dataclass(frozen=True)
    class Twice(mc.Compressor):
        def compress(self, v, t):
            return mc.Sparse(v.size, np.array([1, 1]), v[:2])

    try:
        with pytest.raises(mc.UserError, match="coders-test, compress: indices "):
            mc.coder("coders-test").encode(V)
    finally:
        compressors.forget(__name__)


HOOK_CHECKED = """
import runpy, sys
import torch, torch.distributed as dist
import mpi_compress as mc

sizes, gathered = [], []
encode, broadcast, all_gather = mc.Coder.encode, dist.broadcast, dist.all_gather
def noted(self, v, *more):
    data = encode(self, v, *more)
    sizes.append(v.size)
    return data
def broadcast_noted(tensor, source):
    if source == dist.get_rank():
        gathered.append(tensor.numel() * tensor.element_size())
    return broadcast(tensor, source)
def all_gather_noted(tensors, mine):
    gathered.append(mine.numel() * mine.element_size())
    return all_gather(tensors, mine)
mc.Coder.encode, dist.broadcast, dist.all_gather = noted, broadcast_noted, all_gather_noted
seen = runpy.run_path("hook.py", run_name="__main__")
print("rank", seen["sent"], sum(gathered), len(set(sizes)), len(seen["errors"]), sum(e.numel() for e in seen["errors"].values()))
"""


def test_the_hook_of_the_page_trains_with_pytorch_on_two_processes(tmp_path):
    """Errors are of parameters, which lie in other buckets after the first step; bytes that are counted are those handed to gloo."""
    pytest.importorskip("torch", reason="the example is for PyTorch")
    code = next(block for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S) if block.startswith("# hook.py"))
    (tmp_path / "hook.py").write_text(code)
    (tmp_path / "checked.py").write_text(HOOK_CHECKED)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port()), "checked.py"]
    done = subprocess.run(launch, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENT)
    assert done.returncode == 0, done.stderr
    first, last = map(float, re.findall(r"^loss (\S+),", done.stdout, re.M))
    assert last < first / 2
    ranks = [list(map(int, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("rank")]
    assert len(ranks) == 2
    for sent, handed_over, bucket_sizes, parameters, coordinates in ranks:
        assert sent == handed_over > 0
        assert bucket_sizes == 3, "one of all at first, then two"
        assert (parameters, coordinates) == (6, 20 * 30 + 30 + 30 * 30 + 30 + 30 + 1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("codec", ["fixed", "rice", "entropy", "elias-delta", "bitmap", "auto"])
def test_a_message_is_explained_byte_by_byte(codec):
    """Every byte is in one field, in order; indices and bits are those that are sent."""
    v = np.random.default_rng(0).standard_normal(100)
    coder = mc.coder("top-k", k=3, codec=codec, float=16)
    _, *fields, total = coder.explain(v).splitlines()
    ends = [list(map(int, field.split()[0].split("–"))) for field in fields]
    assert [first for first, _ in ends] == [0, *(last + 1 for _, last in ends[:-1])]
    assert ends[-1][1] + 1 == len(coder.encode(v))
    assert str(np.flatnonzero(coder.decode(coder.encode(v), 100)).tolist()) in fields[-1]
    assert total == f"{coder.bits(v)} bits; {coder.paper_bits(v):g} by the paper's formula"


VECTORS = [np.random.default_rng(seed).standard_normal(200).astype(np.float32) for seed in range(3)]


def test_sizes_are_means_over_the_messages_themselves():
    coder = mc.coder("top-k", k=4, codec="fixed", float=32)
    measured = mc.measure(coder, VECTORS)
    assert measured["sent"].bits == np.mean([8 * len(coder.encode(v)) for v in VECTORS])
    assert measured["sent"] == measured["fixed"]
    assert measured["paper"].bits == 4 * (8 + 32)  # T(⌈log2 d⌉ + FPP), CAT eq. 5
    assert measured["dense bf16"].bits == 16 * 200
    assert measured["dense float32"].bits == 32 * 200


def test_errors_are_shares_of_the_squared_norm_that_the_receiver_lacks():
    v = np.array([3.0, 1.0, 0.0, 0.0])
    measured = mc.measure("top-k", [v], k=1)
    assert measured["sent"].error == pytest.approx(1 / 10)
    assert measured["dense float32"].error == 0
    assert mc.measure("identity", [v / 3])["dense bf16"].error == pytest.approx(0, abs=2.0**-16)  # 8 digits: 2⁻⁸ of each, squared
    assert mc.measure("top-k", [np.zeros(4)], k=1)["sent"].error == 0


def test_a_compressor_that_draws_sends_the_same_values_by_every_codec():
    measured = mc.measure("qsgd", VECTORS, levels=4, float=64)
    names = [name for name in measured.sizes if name in mc.codecs]
    assert len(names) > 2
    assert len({measured[name].error for name in names}) == 1
    assert [measured[name].bits for name in names] == sorted(measured[name].bits for name in names)


def test_it_prints_a_table_with_a_line_for_each_size():
    lines = str(mc.measure("top-k", VECTORS, k=4)).splitlines()
    assert len(lines) == 2 + len(mc.measure("top-k", VECTORS, k=4).sizes)
    assert lines[-1] == "floats of 64 bits; d = 200; without the 32 bits of a message's length"
    assert lines[0].split() == ["message", "bits", "a", "coordinate", "error"]


@pytest.mark.parametrize(("vectors", "given"), [([], "no"), ([np.ones(2), np.ones(3)], "[2, 3]")])
def test_vectors_of_one_size_are_asked_for(vectors, given):
    with pytest.raises(mc.UserError, match=naming(f"vectors of {given}")):
        mc.measure("top-k", vectors, k=1)


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_a_compressor_that_depends_on_the_round_is_measured_in_successive_rounds():
    @mc.compressors.register("one-more-each-round")
    class OneMoreEachRound(mc.Compressor):
        def compress(self, v, t):
            indices = np.arange(t.k + 1, dtype=np.uint32)
            return mc.Sparse(v.size, indices, v[indices])

    own, v = mc.coder("one-more-each-round", codec={"name": "fixed", "float": 32}), VECTORS[0]
    assert [np.count_nonzero(own.decode(own.encode(v, k=k), v.size)) for k in (0, 1, 6)] == [1, 2, 7]
    assert mc.measure(own, [v, v, v])["sent"].bits == np.mean([own.bits(v, k=k) for k in range(3)]) > own.bits(v)


def test_one_vector_in_place_of_a_list_is_refused():
    with pytest.raises(mc.UserError, match=r"^encode: .* was given; it should be an array \(d,\) of float32 or float64"):
        mc.measure("top-k", VECTORS[0], k=1)
