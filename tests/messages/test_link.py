"""Links; and layer-wise or entire model: what a compressor sends by the blocks of a model, against what it sends of the whole vector."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers.kinds import lattice, same
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.algorithms.tuning.sizes import tuned
from mpi_compress.core.errors import CorruptMessage, UserError
from mpi_compress.core.streams import Role, Round, Rounds, Streams
from mpi_compress.messages.batch import batch_of, silent, spread, together
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.compressors.at_random import Stochastic
from mpi_compress.messages.costs import costs
from mpi_compress.messages.kinds import Compressed, Drawn, Lattice, Sparse, WithScalar
from mpi_compress.messages.link import Link, ScalarLink, arrived
from mpi_compress.messages.several import PairLink

ROUND = Round(0, np.random.default_rng(0), np.random.default_rng(1))


@dataclass(frozen=True)
class Nearest(Compressor):
    """The nearest lattice point, as little as a test needs."""

    makes = Lattice
    sigma: float | None = None
    radius: float | None = None

    def compress(self, v, t) -> Compressed:
        radius = self.radius if self.radius is not None else float(np.linalg.norm(v))
        return lattice(v, self.sigma, radius, sent=self.radius is None)

    def known(self, dim):
        return {"sigma": self.sigma, "radius": self.radius}


def test_parameters_of_a_round_are_set_for_that_round_and_cost_no_bits():
    v = np.random.default_rng(2).normal(size=50)
    link = Link(Nearest(), codecs["lattice"](), 50)
    sent = link.at(sigma=0.1)
    message = batch_of(sent.pack(v, ROUND).raw)
    assert np.linalg.norm(sent.unpack(message).dense() - v) <= 0.1
    bound = link.at(sigma=0.1, radius=20.0)
    assert same(bound.unpack(batch_of(bound.pack(v, ROUND).raw)), lattice(v, 0.1, 20.0))
    assert link.compressor == Nearest()
    assert sent.compressor == Nearest(sigma=0.1)


@pytest.mark.parametrize(("name", "how"), [("identity", {}), ("qsgd", {"levels": 1000, "bucket": 16})])
def test_long_messages_stay_where_they_are_and_decode_to_what_they_do_in_one_array(name, how):
    link, V = Link(compressors[name](**how), codecs["auto"](), 2**20), np.random.default_rng(4).normal(size=(3, 2**20))
    t = Rounds(0, Streams(0), Role.WORKER, np.arange(3))
    sent = [link.pack(V[i : i + 1], t[i : i + 1]) for i in range(3)]
    ups = spread(together([sent[0], silent(1), together(sent[1:])]), np.array([1, 2, 3, 4]), 5)
    assert ups.pieces
    there = arrived(link, ups)
    assert there.who.tolist() == [1, 3, 4]
    assert ups.raw.tobytes() == b"".join(each.raw.tobytes() for each in sent)
    assert not ups.pieces
    here = arrived(link, replace(ups, content=None))
    assert np.array_equal(there.content.dense(), here.content.dense())
    assert all(same(a, b) for a, b in zip(there, here, strict=True))


def test_a_parameter_of_a_round_that_the_compressor_lacks_is_refused_by_its_name():
    with pytest.raises(UserError, match="identity has no parameter sigma; it has none"):
        Link(compressors["identity"](), codecs["dense"](), 3).at(sigma=0.1)
    link = Link(compressors["qsgd"](levels=4), codecs["elias-omega"](), 3)
    for wrong in (link, ScalarLink(link), PairLink(link)):
        with pytest.raises(UserError, match="qsgd has no parameter k; it has levels, norm, bucket"):
            wrong.at(k=2)
    chosen = tuned(Link(compressors["top-k"](), codecs["fixed"](), 3), costs["payload"]())
    with pytest.raises(UserError, match="top-k has no parameter sigma; it has k"):
        chosen.at(sigma=0.1)
    with pytest.raises(UserError, match="top-k: budget tunes each message, so k cannot be set"):
        chosen.at(k=2)
    with pytest.raises(UserError, match="no parameter makes"):  # a class's constant is none
        link.at(makes=Sparse)


def test_a_link_of_a_round_keeps_the_kind_of_message_that_parameters_decide():
    for shared_seed in (False, True):
        link = Link(compressors["unisp"](0.5, shared_seed), codecs["fixed"](), 20)
        message = link.at(kappa=0.25).pack(np.ones(20), Round(0, Streams(0), Role.WORKER))
        assert type(link.at(kappa=0.25).unpack(batch_of(message.raw))) is (Drawn if shared_seed else Sparse)


@pytest.mark.parametrize("name", ["dense", "fixed", "auto"])
def test_a_sparse_mean_goes_through_a_dense_link(name):
    link = Link(compressors["identity"](), codecs[name](), 100)
    mean = Sparse(100, np.array([3, 50], dtype=np.uint32), np.array([1.0, -2.0]))
    message = link.pack(mean, ROUND)
    assert np.array_equal(link.unpack(batch_of(message.raw)).dense(), mean.dense())
    assert message.size < 30 or name != "auto"


def test_bytes_left_over_are_refused():
    link = Link(compressors["top-k"](k=2), codecs["fixed"](), 30)
    message = link.pack(np.arange(30.0), ROUND)
    with pytest.raises(CorruptMessage, match="left over"):
        link.unpack(batch_of(np.append(message.raw, np.uint8(0))))


@pytest.mark.parametrize("codec", ["fixed", "auto"])
def test_a_message_that_ends_where_a_count_should_stand_is_refused(codec):
    ahead = ScalarLink(Link(Stochastic(k=3), codecs.build({"name": codec, "float": 64}, "up"), 10))
    for data in (np.zeros(8, dtype=np.uint8), np.r_[np.zeros(8, dtype=np.uint8), np.uint8(1)]):
        with pytest.raises(CorruptMessage):
            ahead.unpack(batch_of(data))


@pytest.mark.parametrize(("bits", "scalar"), [(16, 0.0999755859375), ("bf16", 0.10009765625)])
def test_a_number_before_a_vector_and_whole_vectors_have_the_codecs_16_bits(bits, scalar):
    link = ScalarLink(Link(Stochastic(k=3), codecs.build({"name": "fixed", "float": bits}, "up"), 10))
    values = np.array([1.0, 2.0, 3.0])
    message = link.encode(WithScalar(0.1, Sparse(10, np.array([1, 4, 8], dtype=np.uint32), values)))
    got = link.unpack(batch_of(message.raw))
    assert (got.scalar, got.vector.values.tolist()) == (scalar, values.tolist())
    assert message.wire_bits == link.planned_wire_bits(3) == 32 + 8 * (2 + 1 + 6 + 2)
    assert link.paper_bits(got) == 16 + 3 * (16 + 4)
    whole = link.whole
    assert whole.pack(np.full(10, 0.1), ROUND).size == 20
    assert np.all(whole.unpack(whole.pack(np.full(10, 0.1), ROUND)).dense() == scalar)


LAYERS, D = [6, 20, 1, 23], 50
RNG = np.random.default_rng(3)
V = RNG.standard_normal(D) * np.repeat([0.05, 1.0, 3.0, 0.3], LAYERS)  # layers of very different sizes, as gradients have
HARD = {"name": "hard-threshold", "threshold": 0.4}
SOFTMAX = {"model": {"name": "softmax", "bias": True}, "smoothness": 1.0, "f_star": "skip"}


def at(k=0):
    return Round(k, Streams(7), Role.WORKER)


def link_of(compressor, codec=None, model=False):
    C = compressors.build(compressor, "up.compressor")
    C = C.in_run(D, sizes=[6, 0, 20, 1, 23]) if model else C
    return Link(C, codecs.build(codec or {"name": C.codec, "float": 32}, "up.codec"), D)


def layered(of, **more):
    return {"name": "blocks", "of": of, "sizes": LAYERS, **more}


def received(link, v=V, k=0):
    """The bytes of C(v), and what they decode to elsewhere."""
    data = link.pack(v, at(k)).raw
    return data.tobytes(), link.unpack(batch_of(data)).dense()


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
        per_layer.append(own.pack(V[start : start + size], at()).raw.tobytes())
        start += size
    assert layers.raw.tobytes() == b"".join(per_layer)  # a message a layer, and nothing else


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
    sent = [C.in_run(D, step=0.1, regime=critical).compress(V, at()).elements for critical in (False, True)]
    assert sent == [sum(max(1, round(share * size)) for size in LAYERS) for share in (0.05, 0.3)]


def test_blocks_of_a_model_need_a_model():
    C = compressors.build({"name": "blocks", "of": HARD, "sizes": "model"}, "up.compressor")
    with pytest.raises(ValueError, match="needs a run of a model"):
        C.check(D)
    with pytest.raises(ValueError, match="a loss of a margin has none"):
        C.in_run(D, sizes=[])


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
