"""Verbs of one vector of classes that are derived from shipped ones, whose verbs are of rows: they may call those of the shipped class."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers.plays import play, problem

import mpi_compress as mc
from mpi_compress.algorithms import algorithms
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.link import Link

VERBS = ("start_worker", "worker_sends", "worker_hears")
V = np.random.default_rng(0).standard_normal((3, 20))


def of_round():
    return Round(0, Streams(0), Role.WORKER)


@pytest.mark.parametrize(("name", "parameters"), [("top-k", {"k": 3}), ("qsgd", {"levels": 4}), ("random-k", {"k": 5}), ("clip", {"threshold": 1.0})])
def test_a_derived_compressor_and_codec_go_by_the_shipped_ones(name, parameters):
    shipped, written = compressors[name], codecs[compressors[name].codec]

    @dataclass(frozen=True)
    class Twice(shipped):
        def compress(self, v, t, *state):
            return super().compress(2 * v, t, *state)

    @dataclass(frozen=True)
    class Framed(written):
        def encode(self, compressed):
            return np.append(np.uint8(7), super().encode(compressed))

        def decode(self, data, at, dim, kind, known):
            assert data[at] == 7
            return super().decode(data, at + 1, dim, kind, known)

    own, plain = Link(Twice(**parameters), Framed(), 20), Link(shipped(**parameters), written(), 20)
    for v in V:
        sent, wanted = own.pack(v, of_round()), plain.pack(2 * v, of_round())
        assert sent.raw.tobytes() == b"\x07" + wanted.raw.tobytes()
        sent.content = wanted.content = None
        np.testing.assert_array_equal(own.unpack(sent).dense(), plain.unpack(wanted).dense())


@pytest.mark.parametrize("verbs", [VERBS, *((verb,) for verb in VERBS)], ids="-".join)
@pytest.mark.parametrize("name", ["ef", "cat", "diana", "scaffnew", "ef21"])
def test_a_derived_method_goes_by_the_shipped_one(name, verbs):
    shipped, seen = algorithms[name], []

    def noting(verb):
        def call(self, *given):
            seen.append(verb)
            return getattr(shipped, verb)(self, *given)

        return call

    own = type("Own", (shipped,), {verb: noting(verb) for verb in verbs})
    up = {"name": "top-k"} if name == "cat" else {"name": "top-k", "k": 5} if name.startswith("ef") else {"name": "identity"}
    done, wanted = (play(problem(count=3), method(), up, 5) for method in (own, shipped))
    assert done.x.tobytes() == wanted.x.tobytes()
    assert all(np.array_equal(done.trace[c], wanted.trace[c], equal_nan=True) for c in wanted.trace)
    assert {verb: seen.count(verb) for verb in verbs} == {verb: 3 if verb == "start_worker" else 15 for verb in verbs}


@pytest.mark.usefixtures("registered_for_one_test_only")
@pytest.mark.parametrize(("returned", "kind"), [(lambda v: v, "ndarray"), (lambda v: None, "NoneType")])
def test_a_method_that_returns_what_is_no_message_is_refused_in_a_line(returned, kind, tmp_path):
    @mc.algorithms.register("unpacked")
    class Unpacked(mc.Estimator):
        """Sends what is not packed."""

        step: mc.Step = "1/L"

        def worker_sends(self, node, worker, f, t):
            return returned(f.gradient(node.x))

    tables = {"data": {"generator": "gspar", "samples": 40, "dim": 8}, "workers": {"count": 2}, "stop": {"rounds": 2}}
    with pytest.raises(mc.UserError, match=rf"unpacked: worker_sends returned an object of type {kind}; return self.up.pack\(v, t\)"):
        mc.run({**tables, "algorithm": {"name": "unpacked"}}, out=tmp_path)
