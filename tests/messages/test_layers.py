"""Layer-wise or entire model: what a compressor sends by the blocks of a model, against what it sends of the whole vector."""

import numpy as np
import pytest
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import Sparse
from mpi_compress.messages.link import Link

LAYERS, D = [6, 20, 1, 23], 50
RNG = np.random.default_rng(3)
V = RNG.standard_normal(D) * np.repeat([0.05, 1.0, 3.0, 0.3], LAYERS)  # layers of very different sizes, as gradients have
HARD = {"name": "hard-threshold", "threshold": 0.4}
SOFTMAX = {"model": {"name": "softmax", "bias": True}, "smoothness": 1.0, "f_star": "skip"}


def at(k=0):
    return Round(k, Streams(7), Role.WORKER)


def link_of(compressor, codec=None, model=False):
    C = compressors.build(compressor, "up.compressor")
    C = C.within_model([6, 0, 20, 1, 23]) if model else C
    return Link(C, codecs.build(codec or {"name": C.codec, "float": 32}, "up.codec"), D)


def layered(of, **more):
    return {"name": "blocks", "of": of, "sizes": LAYERS, **more}


def received(link, v=V, k=0):
    """The bytes of C(v), and what they decode to elsewhere."""
    data = link.pack(v, at(k)).data
    return data.tobytes(), link.read(data)[0].dense()


def test_layer_wise_hard_threshold_is_entire_model_hard_threshold_to_the_byte():
    entire, layers, joined = (received(link_of(c)) for c in (HARD, layered(HARD), layered(HARD, joined=True)))
    assert entire[1].tobytes() == layers[1].tobytes() == joined[1].tobytes()
    assert np.count_nonzero(entire[1]) == np.count_nonzero(np.abs(V) >= 0.4) > 5
    assert joined[0] == entire[0]  # the message too, where its blocks are one message
    assert layers[0] != entire[0]  # else each block has its own count and its own indices


def test_what_the_messages_of_layers_and_of_the_entire_model_share_are_the_values():
    entire, layers = (link_of(c).pack(V, at()) for c in (HARD, layered(HARD)))
    values = [
        link_of(c).unpack(m).sparse().values.astype(np.float32).tobytes() for c, m in ((HARD, entire), (layered(HARD), layers))
    ]
    assert values[0] == values[1]
    per_layer, start = [], 0
    for size in LAYERS:
        own = Link(compressors.build(HARD, "up"), codecs.build({"name": "fixed", "float": 32}, "up"), size)
        per_layer.append(own.pack(V[start : start + size], at()).data.tobytes())
        start += size
    assert layers.data.tobytes() == b"".join(per_layer)  # a message a layer, and nothing else


def test_layer_wise_top_k_is_the_union_of_the_layers_largest():
    sent = received(link_of(layered({"name": "top-k", "k": "10%"})))[1]
    start = 0
    for size in LAYERS:
        block, k = V[start : start + size], max(1, round(size / 10))
        largest = np.sort(np.argsort(-np.abs(block), kind="stable")[:k])
        assert np.flatnonzero(sent[start : start + size]).tolist() == largest.tolist()
        start += size
    entire = received(link_of({"name": "top-k", "k": "10%"}))[1]
    assert np.flatnonzero(entire).tolist() != np.flatnonzero(sent).tolist()
    assert sent[:6].any()  # the layer of small values sends one of its own, which the entire model leaves out
    assert not entire[:6].any()


@pytest.mark.parametrize("budget", [{"kappa": 0.4}, {"epsilon": 1.0}], ids=str)
def test_layer_wise_gspar_has_one_magnitude_a_layer(budget):
    G = {"name": "gspar", **budget}
    message = link_of(layered(G)).unpack(link_of(layered(G)).pack(V, at(2)))
    magnitudes = [part.magnitude for part in message.parts if part.sign_indices.size]
    assert len(magnitudes) > 1
    assert len(set(magnitudes)) == len(magnitudes)
    start = 0
    for part in message.parts:
        held = np.abs(part.dense()[part.sign_indices])
        assert set(held) <= {part.magnitude}  # ±1/λ of this layer; what is sent with its value is the layer's own
        assert part.dense()[part.indices].astype(np.float32).tobytes() == V[start:][part.indices].astype(np.float32).tobytes()
        start += part.dim


def test_blocks_of_the_model_are_its_own_and_empty_ones_are_none():
    own = link_of({"name": "blocks", "of": HARD, "sizes": "model"}, model=True)
    assert received(own)[0] == received(link_of(layered(HARD)))[0]
    assert own.compressor.lengths(D) == LAYERS


def test_accordions_layers_follow_the_regime_of_the_run():
    C = compressors.build(layered({"name": "accordion", "k_min": "5%", "k_max": "30%"}), "up")
    assert C.follows == "regime"
    assert C.each.every == 10
    sent = [C.in_round(D, 0.1, critical).compress(V, at()).elements for critical in (False, True)]
    assert sent == [sum(max(1, round(share * size)) for size in LAYERS) for share in (0.05, 0.3)]


def test_blocks_of_a_model_need_a_model():
    C = compressors.build({"name": "blocks", "of": HARD, "sizes": "model"}, "up.compressor")
    with pytest.raises(ValueError, match="needs a run of a model"):
        C.check(D)
    with pytest.raises(ValueError, match="a loss of a margin has none"):
        C.within_model([])


def test_runs_of_a_model_take_its_blocks(tmp_path, flowers):
    algorithm = {"name": "ef", "batch": 4, "step": 0.3}
    tables = {"data": flowers, "objective": SOFTMAX, "count": 3, "rounds": 8}
    of = {"name": "top-k", "k": "10%"}
    runs = [
        run_of(tmp_path / name, algorithm, {"name": "blocks", "of": of, **sizes}, **tables)
        for name, sizes in {
            "own": {"sizes": "model"},
            "said": {"sizes": [18, 3]},
            "joined": {"sizes": "model", "joined": True},
        }.items()
    ]
    assert runs[0].x.tobytes() == runs[1].x.tobytes() == runs[2].x.tobytes()
    assert runs[0].trace["elements_up"][-1] == 8 * 3 * (2 + 1)
    assert runs[2].trace["wire_bits_up"][-1] != runs[0].trace["wire_bits_up"][-1]
    with pytest.raises(UserError, match='sizes = "model"'):
        run_of(tmp_path / "loss", algorithm, {"name": "blocks", "of": of, "sizes": "model"}, rounds=2)


@pytest.fixture
def flowers(tmp_path):
    lines = [f"{j % 3} " + " ".join(f"{i + 1}:{RNG.normal(i % 3 == j % 3):.3f}" for i in range(6)) for j in range(30)]
    (tmp_path / "flowers.svm").write_text("\n".join(lines) + "\n")
    return {"path": str(tmp_path / "flowers.svm")}


def test_joined_layers_are_sparse_vectors_of_the_whole():
    coder = mc.coder(layered(HARD, joined=True), codec="entropy", float=32)
    assert coder.compressor.makes is Sparse
    np.testing.assert_array_equal(coder.decode(coder.encode(V), D), np.where(np.abs(V) >= 0.4, V.astype(np.float32), 0))
