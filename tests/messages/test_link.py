from dataclasses import dataclass

import numpy as np
import pytest
from helpers.kinds import lattice, same

from mpi_compress.algorithms.tuning.sizes import tuned
from mpi_compress.core.errors import CorruptMessage, UserError
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.compressors.at_random import Stochastic
from mpi_compress.messages.costs import costs
from mpi_compress.messages.kinds import Compressed, Drawn, Lattice, Sparse, WithScalar
from mpi_compress.messages.link import Link, Message, ScalarLink
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
    message = Message(sent.pack(v, ROUND).data)
    assert np.linalg.norm(sent.unpack(message).dense() - v) <= 0.1
    bound = link.at(sigma=0.1, radius=20.0)
    assert same(bound.unpack(Message(bound.pack(v, ROUND).data)), lattice(v, 0.1, 20.0))
    assert link.compressor == Nearest()
    assert sent.compressor == Nearest(sigma=0.1)


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
        assert type(link.at(kappa=0.25).unpack(Message(message.data))) is (Drawn if shared_seed else Sparse)


@pytest.mark.parametrize("name", ["dense", "fixed", "auto"])
def test_a_sparse_mean_goes_through_a_dense_link(name):
    link = Link(compressors["identity"](), codecs[name](), 100)
    mean = Sparse(100, np.array([3, 50], dtype=np.uint32), np.array([1.0, -2.0]))
    message = link.pack(mean, ROUND)
    assert np.array_equal(link.unpack(Message(message.data)).dense(), mean.dense())
    assert message.data.size < 30 or name != "auto"


def test_bytes_left_over_are_refused():
    link = Link(compressors["top-k"](k=2), codecs["fixed"](), 30)
    message = link.pack(np.arange(30.0), ROUND)
    with pytest.raises(CorruptMessage, match="left over"):
        link.unpack(Message(np.append(message.data, np.uint8(0))))


@pytest.mark.parametrize("codec", ["fixed", "auto"])
def test_a_message_that_ends_where_a_count_should_stand_is_refused(codec):
    ahead = ScalarLink(Link(Stochastic(k=3), codecs.build({"name": codec, "float": 64}, "up"), 10))
    for data in (np.zeros(8, dtype=np.uint8), np.r_[np.zeros(8, dtype=np.uint8), np.uint8(1)]):
        with pytest.raises(CorruptMessage):
            ahead.unpack(Message(data))


@pytest.mark.parametrize(("bits", "scalar"), [(16, 0.0999755859375), ("bf16", 0.10009765625)])
def test_a_number_before_a_vector_and_whole_vectors_have_the_codecs_16_bits(bits, scalar):
    link = ScalarLink(Link(Stochastic(k=3), codecs.build({"name": "fixed", "float": bits}, "up"), 10))
    values = np.array([1.0, 2.0, 3.0])
    message = link.encode(WithScalar(0.1, Sparse(10, np.array([1, 4, 8], dtype=np.uint32), values)))
    got = link.unpack(Message(message.data))
    assert (got.scalar, got.vector.values.tolist()) == (scalar, values.tolist())
    assert message.wire_bits == link.planned_wire_bits(3) == 32 + 8 * (2 + 1 + 6 + 2)
    assert link.paper_bits(got) == 16 + 3 * (16 + 4)
    whole = link.whole
    assert whole.pack(np.full(10, 0.1), ROUND).data.size == 20
    assert np.all(whole.unpack(whole.pack(np.full(10, 0.1), ROUND)).dense() == scalar)
