"""mc.measure: the sizes of real messages, the paper's formula and the vectors themselves side by side."""

import numpy as np
import pytest
from helpers.refusals import naming

import mpi_compress as mc

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


def test_one_vector_in_place_of_a_list_is_refused_with_what_is_wanted():
    with pytest.raises(mc.UserError, match=r"one vector was given; a list of vectors is required: \[v\]"):
        mc.measure("top-k", VECTORS[0], k=4)
